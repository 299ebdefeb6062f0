"""Learning-rate schedules that follow the progress of a pruned run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from .handler import Handler

Schedule = Callable[[float], float]


class ProgressLR(LRScheduler):
    """A torch LR scheduler that is driven by the progress of a run instead of a count of steps.

    Made by lr_by_progress(). step() may be called as often as a framework likes: it sets the
    learning rates of the point that the run has reached.

    Attributes:
        scheduler: The scheduler that is driven; None if the rate follows a function.
    """

    def __init__(
        self,
        handler: Handler,
        optimizer: Optimizer,
        schedule: Schedule | None = None,
        scheduler: LRScheduler | None = None,
        length: tuple[int, int] = (0, 0),
    ) -> None:
        # Not LRScheduler.__init__, which takes a first step and patches the optimizer: a scheduler
        # that is driven has done so.
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.last_epoch = 0
        self._step_count = 1
        self._handler = handler
        self._schedule = schedule
        self._total_steps, self._last_step = length
        if schedule is not None:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", group["lr"])
            self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
            self._follow(schedule)
        else:
            assert scheduler is not None
            self.base_lrs = scheduler.base_lrs

    def step(self, epoch: int | None = None) -> None:
        """To be called after optimizer.step(). `epoch` is ignored: the handler knows."""
        self._step_count += 1
        self.last_epoch += 1
        if self._schedule is not None:
            self._follow(self._schedule)
            return
        assert self.scheduler is not None
        # The addend keeps a progress of s / total_steps, rounded down, from losing a step.
        target = math.floor(self._handler.progress * self._total_steps + 1e-6)
        while self.scheduler.last_epoch < min(target, self._last_step):
            self.scheduler.step()
        self._last_lr = self.scheduler.get_last_lr()

    def _follow(self, schedule: Schedule) -> None:
        factor = float(schedule(self._handler.progress))
        self._last_lr = [base * factor for base in self.base_lrs]
        for group, rate in zip(self.optimizer.param_groups, self._last_lr, strict=True):
            group["lr"] = rate

    def get_last_lr(self) -> list[Any]:
        """The learning rate of every parameter group."""
        return self._last_lr if self.scheduler is None else self.scheduler.get_last_lr()

    def get_lr(self) -> list[Any]:
        """The same: the rate depends on the progress alone."""
        return self.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """Of the scheduler that is driven; a function has none, the handler keeps the progress."""
        state: dict[str, Any] = {"last_epoch": self.last_epoch, "_step_count": self._step_count}
        if self.scheduler is not None:
            state["scheduler"] = self.scheduler.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the handler's state first."""
        if (self.scheduler is not None) != ("scheduler" in state_dict):
            raise RuntimeError("ProgressLR: the state is of another kind of schedule")
        self.last_epoch, self._step_count = state_dict["last_epoch"], state_dict["_step_count"]
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state_dict["scheduler"])
        elif self._schedule is not None:
            self._follow(self._schedule)


def lr_by_progress(
    schedule: LRScheduler | Schedule,
    handler: Handler,
    total_steps: int | None = None,
    *,
    optimizer: Optimizer | None = None,
) -> ProgressLR:
    """Makes a schedule follow the run: it ends exactly at the end of the last epoch.

    How many steps a pruned run has is not known before its end. So the scheduler is made for any
    number of steps, such as that of the unpruned run, and is stepped as far as the run has come.

    Args:
        schedule: Any torch LR scheduler that counts steps; or a function from the progress, in
            [0, 1], to the factor of the learning rate.
        handler: The handler of the run.
        total_steps: Length of the scheduler in steps. None: its own total_steps (OneCycleLR) or
            T_max (CosineAnnealingLR).
        optimizer: For a function: whose learning rates it sets.

    Example:
        >>> one_cycle = OneCycleLR(optimizer, max_lr=0.1, total_steps=10_000)
        >>> scheduler = tamis.lr_by_progress(one_cycle, handler)
        >>> ...
        >>> optimizer.step()
        >>> scheduler.step()
    """
    if isinstance(schedule, (LRScheduler, ReduceLROnPlateau)):
        if optimizer not in (None, schedule.optimizer):
            raise ValueError("lr_by_progress: optimizer must be the scheduler's own; leave it out")
        length = _length(schedule, total_steps)
        return ProgressLR(handler, schedule.optimizer, scheduler=schedule, length=length)
    if not callable(schedule):
        raise TypeError(
            "lr_by_progress: schedule must be a torch LR scheduler or a function of the progress, "
            f"got {schedule!r}"
        )
    if not isinstance(optimizer, Optimizer):
        raise TypeError(
            f"lr_by_progress: optimizer must be given with a function, got {optimizer!r}; write "
            "lr_by_progress(function, handler, optimizer=optimizer)"
        )
    if total_steps is not None:
        raise ValueError(
            f"lr_by_progress: total_steps must be left out with a function, got {total_steps}"
        )
    return ProgressLR(handler, optimizer, schedule=schedule)


def _length(scheduler: Any, total_steps: int | None) -> tuple[int, int]:
    """The scheduler's length in steps, and the last step that it can take."""
    if isinstance(scheduler, (ReduceLROnPlateau, ProgressLR)):
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
