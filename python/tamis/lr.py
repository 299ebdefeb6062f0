"""Learning-rate schedules that follow the progress of a pruned run."""

from __future__ import annotations

import math
from typing import Any

from .handler import Handler


class ProgressLR:
    """Drives a torch LR scheduler by the progress of a run instead of by a count of steps.

    Has no state of its own: save and load the scheduler as usual.
    """

    def __init__(self, scheduler: Any, handler: Handler, total_steps: int | None = None) -> None:
        self.scheduler = scheduler
        self._handler = handler
        self._total_steps, self._last_step = _length(scheduler, total_steps)

    def step(self) -> None:
        """To be called after optimizer.step(), in the place of scheduler.step()."""
        # The addend keeps a progress of s / total_steps, rounded down, from losing a step.
        target = math.floor(self._handler.progress * self._total_steps + 1e-6)
        while self.scheduler.last_epoch < min(target, self._last_step):
            self.scheduler.step()


def lr_by_progress(scheduler: Any, handler: Handler, total_steps: int | None = None) -> ProgressLR:
    """Makes a scheduler follow the run: it ends exactly at the end of the last epoch.

    How many steps a pruned run has is not known before its end. So the scheduler is made for any
    number of steps, such as that of the unpruned run, and is stepped as far as the run has come.

    Args:
        scheduler: Any torch LR scheduler that counts steps.
        handler: The handler of the run.
        total_steps: Length of the scheduler in steps. None: its own total_steps (OneCycleLR) or
            T_max (CosineAnnealingLR).

    Example:
        >>> scheduler = OneCycleLR(optimizer, max_lr=0.1, total_steps=10_000)
        >>> progress_lr = tamis.lr_by_progress(scheduler, handler)
        >>> ...
        >>> optimizer.step()
        >>> progress_lr.step()
    """
    return ProgressLR(scheduler, handler, total_steps)


def _length(scheduler: Any, total_steps: int | None) -> tuple[int, int]:
    """The scheduler's length in steps, and the last step that it can take."""
    if not hasattr(scheduler, "last_epoch") or hasattr(scheduler, "num_bad_epochs"):
        raise TypeError(f"lr_by_progress: scheduler must count steps, got {type(scheduler)}")
    own = getattr(scheduler, "total_steps", None)
    if own is not None and total_steps not in (None, own):
        raise ValueError(
            f"lr_by_progress: total_steps must be the scheduler's own ({own}), got {total_steps}"
        )
    total_steps = own or total_steps or getattr(scheduler, "T_max", None)
    if total_steps is None or total_steps < 1:
        raise ValueError(
            "lr_by_progress: total_steps must be the scheduler's length in steps, at least 1, got "
            f"{total_steps}"
        )
    # OneCycleLR starts on its first step, so that one fewer brings it to its end.
    return int(total_steps), int(total_steps) - (1 if own is not None else 0)
