"""Run: the epochs and passes of a training run; shared by a handler and its samplers."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _losses
from ._batches import find_ids
from ._core import EpochPlan, LossBook, Pruner
from ._warnings import MissedUpdateWarning, TargetWarning, warn

if TYPE_CHECKING:
    from ._core import PassSummary

_CHUNK = 1024  # samples drawn at once where it is not known how many make a batch
_TARGET_TOLERANCE = 0.005


@dataclass(eq=False)
class Pass:
    """One walk over the samples of an epoch.

    Attributes:
        is_ours: A Loader of ours hands the batches out; otherwise the loop counts in order.
        start, end: The samples of the plan that it draws.
        batch_size: None if it is not known; updates without ids are then refused.
        num_seen: Losses that the pruner had seen when the pass began.
        delivered: By delivery, up to which sample batches have been handed out; None once that is
            not known any more.
        is_exhausted: No more batches are handed out (in order: drawn).
        is_doubtful: Another loop over the handler was left with a batch that had no update, or is
            still running. Updates without ids are refused; in order, dropped.
    """

    is_ours: bool
    plan: EpochPlan
    start: int
    end: int
    batch_size: int | None
    num_seen: int
    delivered: int | None = None
    is_exhausted: bool = False
    is_doubtful: bool = False


class Run:
    """Decides which epoch an iteration gives, and keeps the book of its losses.

    Attributes:
        pruner: The core's state of the run.
        update_batch: The book's update, for a loss that comes without ids.
        owner: The Delivery that is asking torch for a batch at this moment, or None.
        thread: That of the loop that batches are handed out to; 0 if updates without ids are
            refused.
        batch: Batch size and drop_last of the last loader.
        is_delayed: Losses are observed at a later update, once they have arrived from the device.
        num_missed: Batches that were handed out and had no update.
    """

    def __init__(self, pruner: Pruner, batch: tuple[int, bool] | None, has_ranks: bool) -> None:
        self.batch = batch
        self.has_ranks = has_ranks
        self.is_delayed = False
        self.num_missed = 0
        self._has_warned = self._has_warned_of_target = False
        self._attach(pruner)

    def _attach(self, pruner: Pruner) -> None:
        options = pruner.options
        self.pruner = pruner
        self._homogeneous: int = options["homogeneous_batch_size"]
        self._target: float | None = options["target_prune"]
        self._open_book()
        self._restart()

    def _open_book(self) -> None:
        self._book = LossBook(self.pruner)
        self.update_batch = self._book.update

    def _restart(self) -> None:
        """Goes on where the pruner stands."""
        self._book.after_load()
        self.owner: Any = None
        self.thread = 0
        self._pass: Pass | None = None
        self._waiting: deque[tuple[_losses.DelayedLoss, Any]] = deque()
        self._preview: tuple[int, int, int] | None = None  # epoch, losses seen, size
        self._is_left = False  # in the last pass batches waited for their update
        self._is_loaded = self.pruner.epoch is not None
        self._is_asked = False  # set_epoch said what comes next
        plan = self.pruner.plan
        self._is_trained = plan is not None and self.pruner.position >= len(plan)
        self._start = self.pruner.position  # of the last pass

    def __getstate__(self) -> dict[str, Any]:
        if self.has_ranks:
            raise RuntimeError("a handler of several ranks cannot be copied; use its state_dict()")
        self.before_save()
        kept = ("pruner", "batch", "has_ranks", "is_delayed", "num_missed")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._has_warned = self._has_warned_of_target = False
        self._attach(self.pruner)

    def before_save(self) -> None:
        self.end_pass(only_if_over=True)
        self._skip_rest()
        self._book.before_save()

    def load(self, state: Any) -> None:
        self.pruner.deserialize(state)
        self._restart()

    # Epochs.

    @property
    def epoch(self) -> int:
        return self.pruner.epoch or 0

    @property
    def progress(self) -> float:
        self._skip_rest()
        return self.pruner.progress

    def _skip_rest(self) -> None:
        """After the last full batch an epoch with drop_last is complete."""
        current = self._pass
        if current is not None and self.pruner.position >= current.end:
            self.pruner.position = len(current.plan)

    def set_epoch(self, epoch: int) -> None:
        """The next pass is over this epoch; of a loaded state's epoch, over its rest."""
        if not 0 <= epoch < self.pruner.num_epochs:
            raise ValueError(
                f"set_epoch: epoch must be in [0, {self.pruner.num_epochs}), got {epoch}"
            )
        if not (self._is_loaded and epoch == self.pruner.epoch):
            self._finish_pass()
            self._is_left = False
            self._start_epoch(epoch)
            self.pruner.position = 0
        self._is_asked = True

    def _start_epoch(self, epoch: int) -> None:
        if epoch >= self.pruner.num_epochs:
            raise ValueError(
                f"sampler: all {self.pruner.num_epochs} epochs of the run are done; make the "
                "handler with more epochs, or call set_epoch to repeat one"
            )
        if epoch != self.pruner.epoch:
            self._report(self._book.end_pass())  # what a loaded state kept back
            self.pruner.start_epoch(epoch)
            self._is_loaded = False
            self._check_target()

    def _coming(self) -> tuple[int, int]:
        """Epoch and first sample of the next pass."""
        if self.pruner.epoch is None:
            return 0, 0
        if self._is_asked or (self._is_loaded and not self._is_trained):
            return self.pruner.epoch, self.pruner.position
        if self._has_trained():
            return self.pruner.epoch + 1, 0
        return self.pruner.epoch, self._start

    def _num_seen(self) -> int:
        return self.pruner.num_observations + self.pruner.num_skipped_observations

    def _has_trained(self) -> bool:
        """True if the last pass, which may go on, has had an update."""
        current = self._pass
        if current is None:
            return self._is_trained
        return self.pruner.position > current.start or self._num_seen() > current.num_seen

    def _check_target(self) -> None:
        plan = self.pruner.plan
        if self._target is None or self._has_warned_of_target or plan is None:
            return
        if "lowest_reachable" not in plan.report:  # an annealing epoch
            return
        lowest, highest = plan.report["lowest_reachable"], plan.report["highest_reachable"]
        if not lowest - _TARGET_TOLERANCE <= self._target <= highest + _TARGET_TOLERANCE:
            self._has_warned_of_target = True
            warn(
                f"target_prune is {self._target:g}, but by the scores of epoch {plan.epoch} the "
                f"whole run can prune only between {lowest:.3f} and {highest:.3f}",
                TargetWarning,
            )

    # Passes.

    def begin_pass(self, batch: tuple[int, bool] | None) -> Pass:
        """Starts the pass of whoever draws: the owner, or a loader that is not ours."""
        batch_size, drop_last = batch or (None, False)
        if batch_size is not None and self._homogeneous % batch_size != 0:
            raise ValueError(
                f"sampler: homogeneous batches are of Options.batch_size, and {batch_size} does "
                f"not divide {self._homogeneous} (batch_size times ranks)"
            )
        epoch, start = self._coming()
        self._finish_pass()
        self._start_epoch(epoch)
        plan = self.pruner.plan
        assert plan is not None
        rest = len(plan) - start
        if drop_last and batch_size is not None:
            rest = rest // batch_size * batch_size
        self.pruner.position = start
        current = Pass(
            is_ours=self.owner is not None,
            plan=plan,
            start=start,
            end=start + rest,
            batch_size=batch_size,
            num_seen=self._num_seen(),
            is_doubtful=self._is_left,
        )
        if self.owner is not None:
            self._report(self._book.end_pass())  # what a loaded state kept back
            self._book.begin_pass(in_order=False)
            self.owner.current = current
            current.delivered = start
        elif batch_size is not None:
            self._book.begin_pass(in_order=True)
        if batch is not None:
            self.batch = batch
        self._pass, self._start = current, start
        is_plain = batch_size is not None and not (current.is_ours and current.is_doubtful)
        self.thread = get_ident() if is_plain else 0
        self._is_asked = self._is_loaded = self._is_left = False
        return current

    def draw(self, current: Pass) -> Iterator[int]:
        """The samples of a pass."""
        is_counted = not current.is_ours and current.batch_size is not None
        size = current.batch_size or _CHUNK
        for begin in range(current.start, current.end, size):
            count = min(size, current.end - begin)
            if current is not self._pass:
                self._doubt()
            elif is_counted:
                self._book.deliver(count)
            yield from current.plan.samples(begin, count)
        if not current.is_ours:
            current.is_exhausted = True
        if is_counted and current is self._pass:
            self._book.finish_delivery()

    def deliver(self, current: Pass, batch: Any, has_failed: bool) -> None:
        """The owner of the pass hands out a batch, possibly after some that failed to load."""
        begin = current.delivered
        if current is not self._pass:
            self._doubt()
            return
        if begin is None:
            return
        ids = find_ids(batch)
        is_known = ids is not None and len(ids) > 0
        if has_failed and not is_known:
            self._lose(current)
            return
        size = current.batch_size or 1
        # Losses that have not arrived must not look like updates that never came.
        self.settle_waiting(wait=self.pruner.position == current.start)
        while begin < current.end:
            count = min(size, current.end - begin)
            self._book.deliver(count)
            begin += count
            if not is_known or current.plan[begin - count] == int(ids[0]):
                current.delivered = begin
                return
        self._lose(current)

    def _lose(self, current: Pass) -> None:
        """It is not known any more which batch was handed out."""
        current.delivered = None
        self._report(self._book.end_pass())

    def _doubt(self) -> None:
        """A loop that is not the last to have started goes on."""
        if self._pass is not None:
            self._pass.is_doubtful = True
            if self._pass.is_ours:
                self.thread = 0

    def finish_delivery(self, current: Pass) -> None:
        """The owner of the pass has handed out every batch; ids may still come."""
        if current is self._pass:
            self.settle_waiting(wait=True)
            self.thread = 0
            current.is_exhausted = True
            if self._has_trained() and self._book.in_pass:
                self._book.finish_delivery()

    def _finish_pass(self) -> None:
        current = self._pass
        if current is None:
            return
        self.settle_waiting(wait=True)
        has_trained = self._has_trained()
        if current.is_doubtful and not current.is_ours:
            self._open_book()  # forgets the losses
            if has_trained:
                self._warn_once(
                    f"epoch {current.plan.epoch}: another loop over this handler was left with a "
                    "batch that had no update, or is still running, so which loss belongs to which "
                    "batch is not known and none of them was used; call handler.set_epoch(...) "
                    "before each loop, or update(loss, batch)"
                )
        else:
            is_open = current.is_ours and not current.is_exhausted
            waits = is_open and self.pruner.position < (current.delivered or 0)
            summary = self._book.end_pass()
            if has_trained:
                self._is_left = waits or summary["dropped"]
                self._report(summary)
            else:  # a look at the first batch is no harm: the next pass begins with it, too
                self._is_left = waits and summary["num_batches"] > 1
        if not has_trained:
            self.pruner.position = current.start
        self._is_trained, self._pass, self.thread = has_trained, None, 0

    def _report(self, summary: PassSummary) -> None:
        self.num_missed += summary["num_missed"]
        if summary["warning"]:
            self._warn_once(summary["warning"])

    def _warn_once(self, message: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            warn(message, MissedUpdateWarning)

    def end_pass(self, only_if_over: bool = False) -> None:
        """Observes what a pass in order has kept back, now rather than when the next one begins."""
        self.settle_waiting(wait=True)
        if not only_if_over or (self._pass is not None and self._is_over(self._pass)):
            self._finish_pass()
            self._is_left = False

    def settle(self) -> None:
        """Observes all losses that are waiting, as far as it is certain where they belong."""
        self.settle_waiting(wait=True)
        current = self._pass
        if current is not None and not current.is_ours and self._is_over(current):
            self._finish_pass()

    def _is_over(self, current: Pass) -> bool:
        """True if no batch is to come and, in order, every one has had its update."""
        is_in_order = not current.is_ours and current.batch_size is not None
        has_all = not is_in_order or self.pruner.position >= len(current.plan)
        return current.is_exhausted and has_all

    # Lengths.

    def _shown(self) -> tuple[int, int]:
        """Epoch and position of the running pass, or of the coming one if none is running."""
        self.settle()
        current = self._pass
        if current is not None and not self._is_asked and not self._is_over(current):
            return self.epoch, self.pruner.position
        epoch, start = self._coming()
        return (epoch, start) if epoch < self.pruner.num_epochs else (self.epoch, 0)

    def _plan_size(self, epoch: int) -> int:
        plan = self.pruner.plan
        if plan is not None and epoch == plan.epoch:
            return len(plan)
        if self.has_ranks:
            # TypeError: progress bars and list() then do without.
            raise TypeError(
                f"the length of epoch {epoch} is not known before all ranks start it; call "
                "set_epoch on every rank first"
            )
        seen = self._num_seen()
        if self._preview is None or self._preview[:2] != (epoch, seen):
            self._preview = (epoch, seen, len(self.pruner.preview(epoch)))
        return self._preview[2]

    def num_samples(self) -> int:
        """Of the whole current epoch."""
        return self._plan_size(self._shown()[0])

    def num_batches(self, is_rest: bool) -> int:
        """Of the whole current epoch, or of its rest."""
        if self.batch is None:
            raise RuntimeError(
                "the batch size is not known yet: make the loader with handler.loader(B), or pass "
                "options=tamis.Options(batch_size=B)"
            )
        epoch, position = self._shown()
        size = self._plan_size(epoch) - (position if is_rest else 0)
        batch_size, drop_last = self.batch
        return size // batch_size if drop_last else math.ceil(size / batch_size)

    # Updates.

    def weigh(self, loss: Any, ids: Any) -> Any:
        """Takes a loss; returns the mean weight of its batch, or one weight per sample."""
        _losses.check(loss)
        if ids is not None:
            ids = _losses.to_ids(ids)
            if self.pruner.epoch is None:
                self._start_epoch(0)
        else:
            self._check_plain()
        if self.is_delayed and (ids is not None or (self._pass and self._pass.is_ours)):
            return self._delay(loss, ids)
        value = _losses.to_host(loss)
        return self.update_batch(value) if ids is None else self._book.update_samples(ids, value)

    def _check_plain(self) -> None:
        """Raises RuntimeError if a loss without ids cannot have a batch."""
        current = self._pass
        if current is not None and current.is_ours and current.is_doubtful:
            raise RuntimeError(
                "update: another loop over this handler was left with a batch that had no update, "
                "or is still running, so it is not certain which of them this loss comes from. "
                "Call handler.set_epoch(...) before each loop, or update(loss, batch)"
            )
        if current is None or (current.is_ours and self.thread == 0):
            raise RuntimeError(
                "update: no loop over this handler's samples is running, so this loss has no "
                "batch. Iterate over handler.loader(B), or call update(loss, batch) with its batch"
            )
        if current.batch_size is None:
            raise RuntimeError(
                "update: the batch size of the loader is not known, so updates cannot be counted. "
                "Use handler.loader(B), or batch_sampler=handler.batch_sampler(B), or make the "
                "handler with options=tamis.Options(batch_size=B)"
            )
        if current.is_ours and get_ident() != self.thread:
            raise RuntimeError(
                "update: another thread iterates over the loader, so the batch handed out last "
                "need not be the one of this loss; call update(loss, batch)"
            )

    def _delay(self, loss: Any, ids: Any) -> Any:
        """The weights now, the loss at a later update."""
        self.settle_waiting(wait=False)
        plan = self.pruner.plan
        assert plan is not None
        if ids is None:
            ids = plan.samples(*self._book.next_batch())
        weights = plan.weights_of(ids)
        self._waiting.append((_losses.DelayedLoss(loss), ids))
        return float(weights.mean(dtype=np.float64)) if np.ndim(loss) == 0 else weights

    def settle_waiting(self, wait: bool) -> None:
        """Observes the losses that have arrived; with `wait` all of them."""
        while self._waiting and (wait or self._waiting[0][0].has_arrived()):
            loss, ids = self._waiting.popleft()
            self._book.update_samples(ids, loss.get())
