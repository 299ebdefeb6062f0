"""Handler: a data set whose samples are pruned while it is trained on. Start here."""

from __future__ import annotations

import multiprocessing.context
import operator
import os
import sys
from functools import partial
from typing import Any, Dict, Mapping, Optional, Union

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset

from . import _losses
from ._core import EpochPlan
from ._pass import NEVER
from ._ranks import DEFAULT_TIME_LIMIT, make_pruner, num_ranks
from ._run import Run
from .samplers import BatchSampler, Sampler

STATE_VERSION = 1


class Handler(Dataset):  # type: ignore[type-arg]
    """A data set, its pruning method and the state of the run.

    It takes the place of the data set, `handler.sampler` that of shuffling, and
    `loss = handler.update(loss)` is called for every batch before backward():

        handler = tamis.prune(train_set, method="bls-infobatch", epochs=200)
        loader = DataLoader(handler, sampler=handler.sampler, batch_size=128, num_workers=4)
        for epoch in range(200):
            for images, labels in loader:
                loss = handler.update(criterion(model(images), labels))
                loss.backward()

    Attributes that the handler does not have are those of the data set. To be used from one thread.

    Args:
        dataset: A map-style data set: `len(dataset)` and `dataset[i]`.
        epochs: Length of the whole run.
        policy: Name of a registered policy.
        policy_options: Its options; those not given have their defaults.
        score: Name of a registered score; None for the one that the policy's authors use.
        score_options: Its options.
        delta: Share of the epochs that are pruned, in [0, 1]; None for the policy's default.
        seed: All randomness of the plans comes from this number and the epoch.
        batch_size: Samples per batch. Needed only if the loader does not tell: with a batch sampler
            of your own over handler.sampler, or to ask for steps_in_epoch before the first epoch.
        drop_last: Whether that batch sampler leaves out an incomplete last batch.
        lookahead: Batches that a wrapper fetches before the one worked on. None: found out.
        homogeneous: Every batch holds samples of one weight, so that the mean loss of a batch can
            be weighted exactly; needs batch_size=.
        min_per_class: Least share of every class in each epoch, in [0, 1]; needs labels=.
        labels: The class of every sample, as integers.
        target_prune: Share of the whole run to prune; sets the policy's prune_ratio in every epoch.
            Warns if it turns out to be out of reach.
        delayed: Books a loss at a later update, once it has arrived from the GPU, so that update()
            never waits for the device.
        layout: With torch.distributed: who keeps which scores, "replicated" (every rank all of
            them), "sharded" (every rank those of its part) or "automatic".
        remainder: With torch.distributed: "pad" uses some samples twice where an epoch cannot be
            divided equally, "drop" leaves some out.
        time_limit: With torch.distributed: seconds to wait for a rank before giving up.

    If torch.distributed is initialised with several ranks when the handler is made, every rank
    makes one and trains on its share of each epoch. The calls that exchange something are then for
    all ranks: making the handler, starting an epoch or set_epoch, state_dict and load_state_dict.
    """

    dataset: Any

    def __init__(
        self,
        dataset: Any,
        epochs: int,
        *,
        policy: str = "infobatch",
        policy_options: Optional[Mapping[str, float]] = None,
        score: Optional[str] = None,
        score_options: Optional[Mapping[str, float]] = None,
        delta: Optional[float] = None,
        seed: int = 0,
        batch_size: Optional[int] = None,
        drop_last: bool = False,
        lookahead: Optional[int] = None,
        delayed: bool = False,
        homogeneous: bool = False,
        min_per_class: float = 0.0,
        labels: Any = None,
        target_prune: Optional[float] = None,
        layout: str = "automatic",
        remainder: str = "pad",
        time_limit: float = DEFAULT_TIME_LIMIT,
    ) -> None:
        name = type(self).__name__
        if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
            raise TypeError(f"{name}: dataset must have len() and [i], got {type(dataset)}")
        epochs = _count(name, "epochs", epochs, 1)
        seed = _count(name, "seed", seed, 0)
        if batch_size is not None:
            batch_size = _count(name, "batch_size", batch_size, 1)
        if lookahead is not None:
            lookahead = _count(name, "lookahead", lookahead, 0)
        if homogeneous and batch_size is None:
            raise ValueError(f"{name}: homogeneous batches need batch_size=")
        settings = {
            "num_samples": len(dataset),
            "num_epochs": epochs,
            "policy": policy,
            "policy_options": dict(policy_options or {}),
            "score": score,
            "score_options": dict(score_options or {}),
            "delta": delta,
            "seed": seed,
            # The batches of all ranks in a step are cut from one stretch of the plan.
            "homogeneous_batch_size": (batch_size or 0) * num_ranks() if homogeneous else 0,
            "min_per_class": min_per_class,
            "labels": labels,
            "target_prune": target_prune,
        }
        self._run = Run(
            partial(make_pruner, layout=layout, remainder=remainder, time_limit=time_limit),
            settings,
            batch_size=batch_size,
            drop_last=drop_last,
            lookahead=lookahead,
            delayed=delayed,
        )
        self.dataset = dataset

    # The data set.

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[index]

    def __getattr__(self, name: str) -> Any:
        # From __dict__, because a copy in the making has no data set yet. Special methods are the
        # handler's own, except torch's __getitems__, which is there only if the data set has it.
        dataset = self.__dict__.get("dataset")
        if dataset is None or (name.startswith("__") and name != "__getitems__"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        return getattr(dataset, name)

    def __setattr__(self, name: str, value: Any) -> None:
        dataset = self.__dict__.get("dataset")
        is_own = name in self.__dict__ or hasattr(type(self), name)
        if dataset is not None and not is_own and hasattr(dataset, name):
            setattr(dataset, name, value)
        else:
            object.__setattr__(self, name, value)

    # The training loop.

    @property
    def sampler(self) -> Sampler:
        """For `DataLoader(sampler=...)`."""
        return Sampler(self._run)

    def batch_sampler(self, batch_size: int, drop_last: bool = False) -> BatchSampler:
        """For `DataLoader(batch_sampler=...)`."""
        return BatchSampler(self._run, batch_size, drop_last)

    def set_epoch(self, epoch: int) -> None:
        """The next iteration gives this epoch, from its start, or from where a state was saved."""
        self._run.set_epoch(epoch)

    def update(self, loss: Any, indices: Any = None) -> Any:
        """Books the loss of a batch and returns the loss to call backward() on.

        Args:
            loss: Mean loss of the batch, or one loss per sample: a tensor on any device, an array
                or a number. It is not changed.
            indices: The samples of the batch, where they are known better than by counting batches.

        Returns:
            The mean loss times the mean weight of the batch (the loss itself if that is 1), or the
            mean of the weighted losses.
        """
        run = self._run
        current = run.current
        if (
            indices is None
            and current is not None
            and type(loss) is Tensor
            and current.source.counts.get(current.key) == current.expected
            and loss.ndim == 0
            and type(value := loss.item()) is float
        ):
            begin, count = current.begin, current.count
            weight = run.step(begin, count, value)
            current.begin = begin + count
            expected = current.expected + 1
            current.expected = expected if expected < current.num_batches else NEVER
            return loss if weight == 1.0 else loss * weight
        return run.update(loss, indices, sys._getframe(1))

    # What is known about the run.

    @property
    def options(self) -> Dict[str, Any]:
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
        return self._run.pruner.progress

    @property
    def steps_in_epoch(self) -> int:
        """Batches of the running epoch, and once its loop has ended those of the coming one."""
        return self._run.num_shown_batches()

    @property
    def plan(self) -> Optional[EpochPlan]:
        """A copy of the running epoch's plan; None before the first."""
        return self._run.pruner.plan

    @property
    def weights(self) -> NDArray[np.float32]:
        """What the loss of each sample is multiplied by in the running epoch, float32."""
        plan = self.plan
        return np.ones(len(self), dtype=np.float32) if plan is None else plan.weights

    @property
    def scores(self) -> NDArray[np.float32]:
        """One float32 per sample, NaN where unscored.

        With ranks: as of the start of the epoch; sharded: of this rank's part.
        """
        self._run.settle()
        return self._run.pruner.scores

    @property
    def pruned_share(self) -> float:
        """Share of the run so far that was left out."""
        return self._run.pruner.pruned_share

    @property
    def num_observations(self) -> int:
        """Losses that were booked."""
        self._run.settle()
        return self._run.pruner.num_observations

    @property
    def num_skipped_observations(self) -> int:
        """Losses that were not booked: NaN, infinite, or of no use to the score."""
        self._run.settle()
        return self._run.pruner.num_skipped_observations

    @property
    def num_missed_updates(self) -> int:
        """Batches that were delivered but for which update() was not called."""
        self._run.settle()
        return self._run.missed.count

    # Recording.

    def record(
        self,
        folder: Union[str, "os.PathLike[str]"],
        num_recorded: int = 10_000,
        *,
        samples: Any = None,
        seed: int = 0,
    ) -> None:
        """Records every update from now on, for `tamis analyze` and `tamis replay`.

        Each step's samples and mean loss are kept, and the own losses of the recorded samples where
        update() gets one loss per sample. A resumed run calls load_state_dict() first and then goes
        on with the recording that it had.

        Args:
            folder: Where the files go; made if it is missing.
            num_recorded: Samples whose own losses are kept, drawn at random; all if not as many.
            samples: These samples instead.
            seed: Draws them.
        """
        if self._run.has_ranks:
            raise RuntimeError("record: only a run of one process can be recorded")
        self._run.settle()
        self._run.pruner.record(folder, num_recorded=num_recorded, samples=samples, seed=seed)

    @property
    def recorded_samples(self) -> Optional[NDArray[np.uint32]]:
        """The samples whose own losses are recorded, ascending; None without a recording."""
        return None if self._run.has_ranks else self._run.pruner.recorded_samples

    def record_true_losses(self, losses: Any) -> None:
        """Keeps what the model now loses on each of recorded_samples, measured by yourself.

        `tamis analyze` compares the scores with them. Without them it takes the own losses that
        update() has seen, if any.
        """
        self._run.settle()
        self._run.pruner.record_true_losses(_losses.to_host(losses))

    def flush_recording(self) -> None:
        """Puts every recorded step on disk; state_dict() and the end of the handler do so too."""
        self._run.settle()
        self._run.pruner.flush_recording()

    # State.

    def state_dict(self) -> Dict[str, Tensor]:
        """The state of the run, for torch.save; exact also in the middle of an epoch.

        It stands after the last batch whose update was called, whatever workers have prefetched.
        With ranks, all of them call it, and all get the state of the whole run, which any number
        of ranks can go on from.
        """
        self._run.settle()
        pruner = np.frombuffer(self._run.pruner.serialize(), dtype=np.uint8)
        return {
            "version": torch.tensor(STATE_VERSION),
            "pruner": torch.from_numpy(pruner.copy()),
            "num_missed_updates": torch.tensor(self._run.missed.count),
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
        self._run.pruner.deserialize(state["pruner"].cpu().contiguous().numpy())
        self._run.missed.count = int(state["num_missed_updates"])
        self._run.restart_iteration()

    def __getstate__(self) -> Dict[str, Any]:
        state = dict(self.__dict__)
        if multiprocessing.context.get_spawning_popen() is not None:
            state["_run"] = None  # a loader's worker only reads samples
        return state

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)


def _count(owner: str, name: str, value: Any, least: int) -> int:
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if number < least:
        rule = f"a whole number of at least {least}"
        raise ValueError(f"{owner}: {name} must be {rule}, got {value!r}")
    return number
