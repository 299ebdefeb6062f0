"""Run: the epochs, passes and bookings of a training run; shared by a handler and its samplers."""

from __future__ import annotations

import math
from functools import partial
from types import CodeType, FrameType
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from . import _losses
from ._core import DistributedPruner
from ._loader import Caller
from ._losses import DelayedBookings, DelayedLoss
from ._missed import MissedUpdates
from ._pass import Pass
from ._target import TargetWatch

_KEPT_BY_COPIES = (
    "make_pruner",
    "pruner",
    "batch_size",
    "drop_last",
    "missed",
    "_given_batches",
    "_lookahead",
    "_delayed",
    "_target",
)
_CHUNK = 1024  # samples drawn at once where it is not known how many make a batch


class Run:
    """Decides which epoch an iteration gives, and books every loss on its batch.

    Attributes:
        make_pruner: Makes a pruner with other settings for the same ranks.
        pruner: The core's state of the run.
        step: pruner.step, for the ordinary update.
        current: The pass over the sampler that updates belong to.
        batch_size: Samples per batch as given by the user or as last seen.
        missed: The batches delivered without an update.
    """

    def __init__(
        self,
        make_pruner: Callable[[Mapping[str, Any]], Any],
        settings: Mapping[str, Any],
        *,
        batch_size: Optional[int] = None,
        drop_last: bool = False,
        lookahead: Optional[int] = None,
        delayed: bool = False,
    ) -> None:
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.missed = MissedUpdates()
        self._target = TargetWatch()
        self._given_batches = None if batch_size is None else (batch_size, drop_last)
        self._lookahead = lookahead
        self._delayed = delayed
        self.make_pruner = make_pruner
        self.set_pruner(make_pruner(settings))

    def set_pruner(self, pruner: Any) -> None:
        """Goes on where the pruner stands."""
        self.pruner = pruner
        self.step = pruner.step
        self.restart_iteration()

    def restart_iteration(self) -> None:
        """Forgets all passes; the next one starts at the pruner's position."""
        self.current: Optional[Pass] = None
        self._outer: List[Pass] = []  # loops around the current one
        self._plan_token = object()  # identifies the running plan
        self._lookaheads: Dict[CodeType, int] = {}  # of the loops seen so far
        self._bookings = DelayedBookings()
        self._preview: Optional[Tuple[int, int, int]] = None  # epoch, observations, size
        self._asked_for = False  # _coming comes from set_epoch
        self._coming = (0, 0)  # epoch and first sample of the next pass
        self._resume: Optional[Tuple[int, int]] = None  # the same, as the loaded state has it
        if self.pruner.epoch is not None:
            self._resume = (self.pruner.epoch, self.pruner.position)
            is_done = self.pruner.position >= self.pruner.plan_size
            self._coming = (self.pruner.epoch + 1, 0) if is_done else self._resume

    def __getstate__(self) -> Dict[str, Any]:
        self.settle()
        return {name: self.__dict__[name] for name in _KEPT_BY_COPIES}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.set_pruner(self.pruner)

    def set_epoch(self, epoch: int) -> None:
        """See Sampler.set_epoch."""
        if not 0 <= epoch < self.pruner.num_epochs:
            raise ValueError(
                f"set_epoch: epoch must be in [0, {self.pruner.num_epochs}), got {epoch}"
            )
        saved = self._resume
        self._coming = saved if saved is not None and saved[0] == epoch else (epoch, 0)
        self._asked_for = True
        if self.has_ranks:  # all ranks are here: now they can plan
            self._start_epoch(epoch)

    # Iterating.

    def iterate_samples(self, caller: Caller) -> Iterator[int]:
        """The samples of a new pass."""
        drawn = self._start_pass(caller)
        return self._draw_samples(drawn, self._plan_token)

    def iterate_batches(self, caller: Caller) -> Iterator[List[int]]:
        """The batches of a new pass; caller.batch_size is set."""
        drawn = self._start_pass(caller)
        size = caller.batch_size
        assert size is not None
        end = drawn.start + drawn.num_samples // size * size if caller.drop_last else drawn.size
        return self._draw(drawn, self._plan_token, size, end)

    def _draw_samples(self, drawn: Pass, token: object) -> Iterator[int]:
        for batch in self._draw(drawn, token, drawn.batch_size or _CHUNK, drawn.size):
            yield from batch

    def _draw(self, drawn: Pass, token: object, chunk: int, end: int) -> Iterator[List[int]]:
        try:
            for begin in range(drawn.start, end, chunk):
                if token is not self._plan_token:
                    raise RuntimeError(f"sampler: an iterator of epoch {drawn.epoch} outlived it")
                drawn.count_draw()
                yield self.pruner.planned_indices(begin, chunk)
            drawn.exhausted = True
        finally:
            drawn.source.closed = True

    def _start_pass(self, caller: Caller) -> Pass:
        batch_size: Optional[int] = caller.batch_size if caller.is_direct else None
        drop_last = caller.drop_last
        if batch_size is None and self._given_batches is not None:
            batch_size, drop_last = self._given_batches
        self._check_homogeneous(batch_size)
        is_nested = self._suspend_or_finish(caller)
        epoch, start = (self.epoch, 0) if is_nested else self._coming
        self._start_epoch(epoch)
        if not is_nested:
            self.pruner.position = start
        if batch_size is not None:
            self.batch_size, self.drop_last = batch_size, drop_last
        self.current = Pass(
            epoch=epoch,
            start=start,
            size=self.pruner.plan_size,
            batch_size=batch_size,
            drop_last=drop_last,
            caller=caller,
            is_ordinary=not self._delayed and not self.pruner.needs_sample_losses,
            lookahead=self._lookahead,
            known_lookaheads=self._lookaheads,
            book=self._book_planned,
        )
        return self.current

    def _check_homogeneous(self, batch_size: Optional[int]) -> None:
        wanted = self.pruner.homogeneous_batch_size
        if batch_size is not None and wanted % batch_size != 0:
            raise ValueError(
                f"sampler: homogeneous batches are of the handler's batch_size ({wanted}), but the "
                f"loader makes batches of {batch_size}"
            )

    def _suspend_or_finish(self, caller: Caller) -> bool:
        """Ends the current pass, unless its loop goes on around the new one; returns True then."""
        if self.current is not None and self.current.trained:
            self._outer.append(self.current)
        self.current = None
        if self._outer:
            around = self._outer[-1]
            starts_over = around.source.counts_for(caller.iterator)
            if not starts_over and not around.is_complete and around.is_in_use():
                return True
        self._finish()
        return False

    def _start_epoch(self, epoch: int) -> None:
        if epoch >= self.pruner.num_epochs:
            raise ValueError(
                f"sampler: all {self.pruner.num_epochs} epochs of the run are done; make the "
                "handler with more epochs, or call set_epoch to repeat one"
            )
        if epoch != self.pruner.epoch:
            self._finish()
            self.pruner.start_epoch(epoch)
            self._target.check(self.pruner)
            self._plan_token = object()
            self._resume = None

    def _finish(self) -> None:
        """All passes are over."""
        for done in self._passes():
            done.finish()
            self._report_missed(done)
        self._outer = []
        self._bookings.book_all()

    def _innermost(self) -> Optional[Pass]:
        """The current pass, after loops that ended without an update have given way."""
        while self.current is not None and not self.current.trained and self._outer:
            if self.current.is_in_use():
                break
            self.current = self._outer.pop()
        return self.current

    def _passes(self) -> List[Pass]:
        return self._outer if self.current is None else [*self._outer, self.current]

    def settle(self) -> None:
        """Books all losses that are waiting, as far as it is known where they belong."""
        for running in self._passes():
            if running.can_finish:
                running.finish()
            else:
                running.settle(final=False)
            self._report_missed(running)
        self._bookings.book_all()

    # Lengths.

    @property
    def has_ranks(self) -> bool:
        """True if the run is shared with other processes."""
        return isinstance(self.pruner, DistributedPruner)

    @property
    def epoch(self) -> int:
        return self.pruner.epoch or 0

    def shown_epoch(self) -> Tuple[int, int]:
        """Epoch and first sample of the running pass, or of the coming one if none is running."""
        current = self._innermost()
        if current is not None and current.trained and not self._asked_for and current.is_in_use():
            return current.epoch, current.start
        if self._coming[0] >= self.pruner.num_epochs:
            return self.epoch, 0
        return self._coming

    def plan_size(self, epoch: int) -> int:
        """Samples of an epoch: of its plan if it is running, else as it would be planned now."""
        if epoch == self.pruner.epoch:
            return int(self.pruner.plan_size)
        if self.has_ranks:
            # TypeError: progress bars and list() then do without.
            raise TypeError(
                f"the length of epoch {epoch} is not known before all ranks start it; call "
                "set_epoch on every rank first"
            )
        self.settle()
        observed = self.pruner.num_observations
        if self._preview is None or self._preview[:2] != (epoch, observed):
            self._preview = (epoch, observed, len(self.pruner.preview(epoch)))
        return self._preview[2]

    def num_shown_samples(self) -> int:
        epoch, start = self.shown_epoch()
        return self.plan_size(epoch) - start

    def num_shown_batches(self) -> int:
        if self.batch_size is None:
            raise RuntimeError(
                "steps_in_epoch: the batch size is not known before the first iteration; pass "
                "batch_size= to the handler"
            )
        size = self.plan_size(self.shown_epoch()[0])
        return size // self.batch_size if self.drop_last else math.ceil(size / self.batch_size)

    # Updates.

    def update(self, loss: Any, indices: Any, frame: FrameType) -> Any:
        """Any update but the ordinary one that Handler.update does itself."""
        num_dimensions = _losses.check(loss)
        if indices is not None:
            return self._update_at(loss, num_dimensions, indices, frame)
        current = self._pass_of_update()
        batch, begin = current.locate(frame)
        assert current.batch_size is not None
        count = min(current.batch_size, current.size - begin)
        _losses.check_count(loss, num_dimensions, count, self.pruner)
        self._bookings.book_arrived()
        self._mark_trained(current)
        current.record(batch, _losses.start_copy(loss) if self._delayed else _losses.to_host(loss))
        self._set_position(current, batch, begin + count)
        self._report_missed(current)
        if num_dimensions == 0:
            weight = self.pruner.mean_weight_planned(begin, count)
            return _losses.apply_mean_weight(loss, weight)
        return _losses.apply_weights(loss, self.pruner.weights_planned(begin, count))

    def _pass_of_update(self) -> Pass:
        current = self._innermost()
        reason = "no batch of this handler's sampler has been delivered"
        if current is not None:
            refusal = current.refusal()
            if refusal is None:
                return current
            reason = refusal
        raise RuntimeError(
            f"update: {reason}. Pass sampler=handler.sampler (with batch_size=) or batch_sampler="
            "handler.batch_sampler(...) to the DataLoader; or give the samples of the batch with "
            "update(loss, indices=...); or, if a batch sampler of your own takes the samples in "
            "order, pass its batch_size= to the handler"
        )

    def _update_at(self, loss: Any, num_dimensions: int, indices: Any, frame: FrameType) -> Any:
        chosen = _losses.to_indices(indices)
        _losses.check_count(loss, num_dimensions, len(chosen), self.pruner)
        if self.pruner.epoch is None:
            self._start_epoch(0)
        weights = self.pruner.weights_of(chosen)
        self._bookings.book_arrived()
        if self._delayed:
            book = partial(self.pruner.observe, chosen.copy())
            self._bookings.add(_losses.start_copy(loss), book)
        else:
            self.pruner.observe(chosen, _losses.to_host(loss))
        self._count_explicit(len(chosen), frame)
        if num_dimensions == 0:
            mean = float(weights.mean(dtype=np.float64)) if len(weights) > 0 else 1.0
            return _losses.apply_mean_weight(loss, mean)
        return _losses.apply_weights(loss, weights)

    def _count_explicit(self, num_samples: int, frame: FrameType) -> None:
        """Moves the position past a batch that was booked by its indices."""
        current = self._innermost()
        if current is None or current.num_delivered == 0:
            return
        self._mark_trained(current)
        if current.refusal() is None:
            batch, begin = current.locate(frame)
            assert current.batch_size is not None
            current.record(batch, None)
            self._set_position(current, batch, min(begin + current.batch_size, current.size))
            self._report_missed(current)
        else:
            current.trained = True
            current.is_counted = False
            position = self.pruner.position + num_samples
            self.pruner.position = min(position, self.pruner.plan_size)

    def _mark_trained(self, current: Pass) -> None:
        if not current.trained:
            self._coming = (current.epoch + 1, 0)
            self._resume = None
            self._asked_for = False

    def _set_position(self, current: Pass, batch: int, end: int) -> None:
        # The samples that drop_last leaves out belong to no batch: the epoch ends without them.
        is_last = batch == current.num_batches - 1
        self.pruner.position = current.size if is_last else end

    def _book_planned(self, begin: int, count: int, loss: Any) -> None:
        if isinstance(loss, DelayedLoss):
            self._bookings.add(loss, partial(self.pruner.observe_planned, begin, count))
        else:
            self.pruner.observe_planned(begin, count, loss)

    def _report_missed(self, current: Pass) -> None:
        num_new = current.num_missed - current.num_missed_reported
        current.num_missed_reported += num_new
        self.missed.add(num_new, current.epoch)
