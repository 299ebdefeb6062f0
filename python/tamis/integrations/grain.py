"""JAX with Grain on a pruned data set. Needs the core only, not torch.

    pruner = tamis.Pruner(len(source), E, policy="infobatch", score="batch-loss")
    run = PrunedGrain(pruner, source, batch_size=128)
    for epoch in range(run.next_epoch, E):
        for batch in run.batches(epoch):
            state, losses = train_step(state, batch["data"], batch["weights"])
            run.observe(batch, losses)
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from .._extras import needed_by

with needed_by("tamis.integrations.grain", "grain", "grain"):
    import grain

from ._plan import PlannedRun

if TYPE_CHECKING:
    from .._core import Pruner

IDS_KEY = "tamis_ids"


class PrunedGrain:
    """Epochs of a pruner as Grain data sets.

    Attributes:
        pruner: Its serialize() and deserialize() are the state of the run, exact after any
            observe().
    """

    def __init__(
        self, pruner: Pruner, source: Any, batch_size: int, *, drop_remainder: bool = True
    ) -> None:
        """Source: with len() and [i]. drop_remainder: JAX compiles again for a smaller batch."""
        if len(source) != pruner.num_samples:
            raise ValueError(
                f"PrunedGrain: source must have {pruner.num_samples} samples, got {len(source)}"
            )
        jax = sys.modules.get("jax")
        if jax is not None and jax.process_count() > 1:
            raise RuntimeError(
                f"PrunedGrain: for one process, but JAX has {jax.process_count()}; give tamis.Pruner "
                "a communicator that connects them, and draw from its plan.samples()"
            )
        self.pruner = pruner
        self._source = source
        self._run = PlannedRun(pruner, batch_size, drop_remainder)

    @property
    def next_epoch(self) -> int:
        """The epoch to start, or to go on with after a state was loaded."""
        return self._run.next_epoch

    def batches(self, epoch: int) -> Any:
        """Batches {"data", "weights", "tamis_ids"} of an epoch, or of its rest after a resume.

        A grain.IterDataset: map and prefetch as you like, but do not shuffle or repeat.
        """
        run = self._run
        run.start(epoch)
        planned = _Planned(self._source, run.rest(), run.plan.weights)
        data = grain.MapDataset.source(planned)
        return data.batch(run.batch_size, drop_remainder=run.drop_last).to_iter_dataset()

    def observe(self, batch: Any, losses: Any) -> None:
        """Takes the losses of a batch, one per sample or their mean; waits for the device."""
        values = np.asarray(losses, dtype=np.float32)
        ids = np.asarray(batch[IDS_KEY])
        self._run.observe(ids, float(values) if values.ndim == 0 else values)


class _Planned:
    """A random-access source: the samples of a plan, each with its index and weight."""

    def __init__(self, source: Any, order: Any, weights: Any) -> None:
        self._source, self._order, self._weights = source, order, weights

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, position: Any) -> dict[str, Any]:
        index = int(self._order[position])
        sample = self._source[index]
        return {"data": sample, IDS_KEY: np.int64(index), "weights": self._weights[index]}
