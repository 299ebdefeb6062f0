"""A core Pruner whose batches come in the order of its plan and bring their ids; without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .._core import EpochPlan, Pruner


class PlannedRun:
    """Epochs of a pruner in batches of one size.

    Attributes:
        pruner: Its serialize() and deserialize() are the state of the run, exact after any batch.
    """

    def __init__(self, pruner: Pruner, batch_size: int, drop_last: bool) -> None:
        self.pruner = pruner
        self.batch_size = batch_size
        self.drop_last = drop_last

    @property
    def next_epoch(self) -> int:
        """The epoch to start, or to go on with after a state was loaded; num_epochs at the end."""
        if self.pruner.epoch is None:
            return 0
        return self.pruner.epoch + (self.pruner.position >= len(self.plan))

    @property
    def plan(self) -> EpochPlan:
        plan = self.pruner.plan
        assert plan is not None
        return plan

    def start(self, epoch: int) -> None:
        """Starts an epoch; what a loaded state has left of it, if it is that one."""
        is_loaded = epoch == self.pruner.epoch and self.pruner.position < len(self.plan)
        if not is_loaded:
            self.pruner.start_epoch(epoch)
        self.begin = self.pruner.position

    def rest(self) -> NDArray[np.uint32]:
        """The samples of the epoch that were still to come when it was started."""
        return self.plan.order[self.begin :]

    def observe(self, ids: NDArray[np.int64], loss: Any) -> None:
        """Takes the mean loss, or the losses, of the next batch of the plan."""
        position = self.pruner.position
        done = position + len(ids)
        expected = self.plan.order[position:done]
        if len(expected) != len(ids) or (expected != ids).any():
            raise RuntimeError(
                f"these are not the next {len(ids)} samples of epoch {self.plan.epoch}: observe "
                "every batch once, in the order in which they come (Keras: fit(shuffle=False))"
            )
        self.pruner.observe_samples(ids, loss)
        left = len(self.plan) - done
        is_over = self.drop_last and left < self.batch_size
        self.pruner.position = len(self.plan) if is_over else done
