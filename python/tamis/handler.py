"""Handler: a data set whose samples are pruned while it is trained on. Start here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from threading import get_ident
from typing import Any, Literal, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import BatchSampler, IterableDataset, default_collate

from . import _compile, _losses
from ._batches import Collate, DatasetView, ids_of
from ._core import EpochPlan, Pruner
from ._options import Options, check_count
from ._ranks import Ranks, num_ranks
from ._run import Run
from .loader import Loader, Sampler

STATE_VERSION = 1


class Handler:
    """A data set, its pruning method and the state of the run.

        handler = tamis.prune(train_set, "bls-infobatch", epochs=200)
        loader = handler.loader(batch_size=128, num_workers=4)
        for epoch in range(200):
            for images, labels in loader:
                loss = handler.update(criterion(model(images), labels))
                loss.backward()

    A loss is attributed to its batch in one of three ways, and in no other:

    - by delivery: `update(loss)` in a plain loop over `handler.loader(...)` is for the batch that
      the loader handed out last. If something fetches ahead, it is refused.
    - by ids: `update(loss, batch)` or `update(loss, ids=...)`; the ids travel with the batch, also
      where a framework makes its own DataLoader of ours. Right in every loop.
    - in order: over a DataLoader of your own that draws from `handler.sampler`, the k-th update of
      a pass is for its k-th batch. The losses count when the pass ends, if there were as many
      updates as batches.

    To be used from one thread. If torch.distributed is initialised with several ranks when the
    handler is made, every rank makes one and trains on its share of each epoch. These calls are
    then for all ranks: making the handler, starting an epoch or set_epoch, record, state_dict and
    load_state_dict.

    Attributes:
        data: The data set as loaders see it, for DataLoaders of your own; holds no state of the
            run.
        number: Tells it from the other handlers of the process.
    """

    def __init__(
        self,
        dataset: Any,
        epochs: int,
        *,
        policy: str,
        policy_options: Mapping[str, float] | None = None,
        score: str | None = None,
        score_options: Mapping[str, float] | None = None,
        options: Options | None = None,
    ) -> None:
        name = type(self).__name__
        if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
            raise TypeError(f"{name}: dataset must have len() and [i], got {type(dataset)}")
        chosen = Options() if options is None else options
        size = num_ranks()
        self.data = DatasetView(dataset)
        self._settings: dict[str, Any] = {
            "num_samples": len(dataset),
            "num_epochs": check_count(name, "epochs", epochs, 1),
            "policy": policy,
            "policy_options": dict(policy_options or {}),
            "score": score,
            "score_options": dict(score_options or {}),
            "delta": chosen.delta,
            "seed": chosen.seed,
            # The batches of all ranks in a step are cut from one stretch of the plan.
            "homogeneous_batch_size": (chosen.batch_size or 0) * size if chosen.homogeneous else 0,
            "min_per_class": chosen.min_per_class,
            "labels": chosen.labels,
            "target_prune": chosen.target_prune,
            "layout": chosen.layout,
            "remainder": chosen.remainder,
        }
        self._batch = None if chosen.batch_size is None else (chosen.batch_size, chosen.drop_last)
        self._ranks = Ranks(chosen.time_limit) if size > 1 else None
        self._run = self._make_run(**self._settings)
        self.number = _compile.register(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.number = _compile.register(self)

    def _make_run(self, **settings: Any) -> Run:
        pruner = Pruner(**settings, communicator=self._ranks)
        return Run(pruner, self._batch, has_ranks=self._ranks is not None)

    # The training loop.

    def loader(
        self,
        batch_size: int,
        *,
        drop_last: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        delayed: bool = False,
        **options: Any,
    ) -> Loader:
        """A DataLoader over the samples of each epoch, whose batches know their ids.

        Args:
            batch_size: Samples per batch, of each rank.
            drop_last: Leaves out an incomplete last batch.
            collate_fn: As of DataLoader. Batches that it returns as dicts get a key "tamis_ids",
                tuples and lists become a list that knows its `ids`.
            delayed: Observes a loss at a later update, once it has arrived from the GPU, so that
                update() never waits for the device.
            **options: num_workers, pin_memory and the others of DataLoader.
        """
        for name in ("shuffle", "sampler", "batch_sampler"):
            if options.get(name):
                raise ValueError(f"loader: the handler decides the order; leave out {name}=")
        batch = (check_count("loader", "batch_size", batch_size, 1), drop_last)
        self._run.batch, self._run.is_delayed = batch, delayed
        return Loader(
            self.data,
            batch_size=batch_size,
            sampler=Sampler(self._run, batch),
            drop_last=drop_last,
            collate_fn=Collate(collate_fn or default_collate),
            **options,
        )

    @property
    def sampler(self) -> Sampler:
        """For `DataLoader(handler.data, sampler=handler.sampler, batch_size=B)` of your own.

        B must be that of `Options(batch_size=B)`, so that updates can be counted.
        """
        return Sampler(self._run, self._batch)

    def batch_sampler(self, batch_size: int, drop_last: bool = False) -> BatchSampler:
        """For `DataLoader(handler.data, batch_sampler=...)` of your own."""
        batch = (check_count("batch_sampler", "batch_size", batch_size, 1), drop_last)
        self._run.batch = batch
        return BatchSampler(Sampler(self._run, batch), batch_size, drop_last)

    def set_epoch(self, epoch: int) -> None:
        """The next iteration gives this epoch, from its start, or from where a state was saved."""
        self._run.set_epoch(epoch)

    def end_pass(self) -> None:
        """Ends the running pass: what was counted in order becomes part of the scores.

        The next iteration and set_epoch do so too; needed only to read the scores of a loop that
        was left early.
        """
        self._run.end_pass()

    def update(self, loss: Any, batch: Any = None, *, ids: Any = None) -> Any:
        """Takes the loss of a batch and returns the loss to call backward() on.

        Args:
            loss: Mean loss of the batch, or one loss per sample: a tensor on any device, an array
                or a number. It is not changed.
            batch: The batch as the loader gave it, which knows its ids.
            ids: Instead: the index of every sample of the batch in the data set.

        Returns:
            The mean loss times the mean weight of the batch (the loss itself if that is 1), or the
            mean of the weighted losses.
        """
        if _compile.is_compiling():
            return _compile.update(self, loss, batch, ids)
        run = self._run
        if (
            batch is None
            and ids is None
            and get_ident() == run.thread
            and not run.is_delayed
            and type(loss) is Tensor
            and loss.ndim == 0
            and type(value := loss.item()) is float
        ):
            weight = run.update_batch(value)
            return loss if weight == 1.0 else loss * weight
        if batch is not None and ids is None:
            ids = ids_of(batch)
        return _losses.apply_weights(loss, run.weigh(loss, ids))

    def __getitem__(self, index: Any) -> NoReturn:
        raise TypeError(
            "a handler is not a data set: use handler.loader(B), or handler.data in a DataLoader "
            "of your own"
        )

    def __len__(self) -> int:
        """Samples of the data set."""
        return len(self.data)

    # What is known about the run.

    @property
    def options(self) -> dict[str, Any]:
        """Score, policy, schedule, seed and so on, defaults filled in; labels numbered from 0."""
        return self._run.pruner.options

    @property
    def epochs(self) -> int:
        """Length of the run."""
        return self._run.pruner.num_epochs

    @property
    def epoch(self) -> int:
        """The running epoch; 0 before the first."""
        return self._run.epoch

    @property
    def progress(self) -> float:
        """Share of the run that is done, in [0, 1]; see lr_by_progress."""
        return self._run.progress

    @property
    def steps_in_epoch(self) -> int:
        """Batches of the whole current epoch: the running one, and once it is done the next."""
        return self._run.num_batches(is_rest=False)

    @property
    def steps_left(self) -> int:
        """Batches of the current epoch that are still to come."""
        return self._run.num_batches(is_rest=True)

    @property
    def plan(self) -> EpochPlan | None:
        """The running epoch's plan; None before the first."""
        return self._run.pruner.plan

    @property
    def weights(self) -> NDArray[np.float32]:
        """What the loss of each sample is multiplied by in the running epoch."""
        plan = self.plan
        return np.ones(len(self), dtype=np.float32) if plan is None else plan.weights

    @property
    def scores(self) -> NDArray[np.float32]:
        """One number per sample, NaN where unscored.

        Losses that are counted in order are part of it once their pass is complete, or after
        end_pass(). With ranks: as of the start of the epoch; sharded: of this rank's part.
        """
        self._run.settle()
        return self._run.pruner.scores

    @property
    def needs(self) -> Literal["mean-loss", "sample-losses"]:
        """What update() must get: the mean loss will do, or one loss per sample."""
        return self._run.pruner.needs

    @property
    def pruned_share(self) -> float:
        """Share of the run so far that was left out."""
        return self._run.pruner.pruned_share

    @property
    def num_observations(self) -> int:
        """Losses that became part of the scores."""
        self._run.settle()
        return self._run.pruner.num_observations

    @property
    def num_skipped_observations(self) -> int:
        """Losses that did not: NaN, infinite, or of no use to the score."""
        self._run.settle()
        return self._run.pruner.num_skipped_observations

    @property
    def num_missed_updates(self) -> int:
        """Batches of the passes so far that had no update."""
        self._run.end_pass(only_if_over=True)
        return self._run.num_missed

    # Recording.

    def record(
        self,
        folder: str | os.PathLike[str],
        num_recorded: int = 10_000,
        *,
        samples: Any = None,
        seed: int = 0,
    ) -> None:
        """Records every update from now on, for `tamis analyze` and `tamis replay`.

        Each step's samples and mean loss are kept, and the per-sample losses of the recorded
        samples where update() gets one loss per sample. A resumed run calls load_state_dict() first
        and then goes on with the recording that it had. With ranks, rank 0 records all of them.

        Args:
            folder: Where the files go; made if it is missing.
            num_recorded: Samples whose losses are kept, drawn at random; all if not as many.
            samples: These samples instead.
            seed: Draws them.
        """
        self._run.settle()
        self._run.pruner.record(folder, num_recorded=num_recorded, samples=samples, seed=seed)

    @property
    def recorded_samples(self) -> NDArray[np.uint32] | None:
        """The samples whose losses are recorded, ascending; None without a recording."""
        return self._run.pruner.recorded_samples

    def record_true_losses(self, losses: Any) -> None:
        """Keeps what the model now loses on each of recorded_samples, measured by yourself.

        `tamis analyze` compares the scores with them. Without them it takes the per-sample losses
        that update() has seen, if any.
        """
        self._run.settle()
        self._run.pruner.record_true_losses(_losses.to_host(losses))

    def flush_recording(self) -> None:
        """Puts every recorded step on disk; state_dict() and the end of the handler do so too."""
        self._run.settle()
        self._run.pruner.flush_recording()

    # State.

    def state_dict(self) -> dict[str, Tensor]:
        """The state of the run, for torch.save; exact also in the middle of an epoch.

        It stands after the last batch whose update was called, whatever workers have prefetched.
        With ranks, all of them call it, and all get the state of the whole run.
        """
        self._run.before_save()
        pruner = np.frombuffer(self._run.pruner.serialize(), dtype=np.uint8)
        return {
            "version": torch.tensor(STATE_VERSION),
            "pruner": torch.from_numpy(pruner.copy()),
            "num_missed_updates": torch.tensor(self._run.num_missed),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Goes on where a state was saved: the next iteration gives the rest of its epoch.

        Raises RuntimeError, and changes nothing, if the state is damaged or of another run.
        """
        missing = {"version", "pruner", "num_missed_updates"} - set(state)
        if missing:
            raise RuntimeError(f"load_state_dict: not a handler's state: no {sorted(missing)}")
        version = int(state["version"])
        if version > STATE_VERSION:
            raise RuntimeError(
                f"load_state_dict: written by a newer tamis (format {version}); this one reads up "
                f"to {STATE_VERSION}"
            )
        self._run.load(state["pruner"].cpu().contiguous().numpy())
        self._run.num_missed = int(state["num_missed_updates"])
