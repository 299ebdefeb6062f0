"""Passes: which epoch an iteration gives, and the book of its losses."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ._batches import INDEX_MASK, find_ids
from ._core import LossBook, Pruner
from ._losses import DelayedLoss
from ._notices import Notices
from ._pass import Pass, Source, Way
from ._ranks import num_ranks
from ._stream import Keeps

if TYPE_CHECKING:
    from ._core import PassSummary
    from ._watch import Watcher

_CHUNK = 1024  # samples drawn at once where it is not known how many make a batch


class Passes:
    """The epochs of a run and the passes over them, each with the book of its losses.

    Between two passes `_next` says what comes; while one is open it follows from the pass.

    Attributes:
        pruner: The core's state of the run.
        update_batch: The book's update, for a loss that comes without ids.
        update_memory: The same for per-sample losses in the memory of a tensor.
        owner: The Delivery that is asking torch for a batch at this moment, or None.
        thread: The one whose updates need no ids and are observed at once; 0 if there is none.
        source: Of the last loader or sampler.
        num_shares: Ranks that a framework cuts each epoch for; 1 if tamis does.
        is_stream: The source of samples has an order of its own; only their number is known.
        num_missed: Batches that were handed out and had no update.
        watcher: Ties watched outputs to updates; None as long as nothing is watched.
    """

    def __init__(
        self,
        pruner: Pruner,
        source: Source | None,
        *,
        ranks: int = 1,
        is_external: bool = False,
        is_stream: bool = False,
    ) -> None:
        self.source = source
        self.num_ranks = ranks
        self.num_shares = ranks if is_external else 1
        self.is_stream = is_stream
        self.num_missed = 0
        self._notices = Notices()
        self._keeps = Keeps(pruner.num_samples) if is_stream else None
        self._attach(pruner)

    @property
    def book(self) -> LossBook:
        return self._book

    def _attach(self, pruner: Pruner) -> None:
        options = pruner.options
        self.pruner = pruner
        self.watcher: Watcher | None = None
        self._homogeneous: int = options["homogeneous_batch_size"]
        self._target: float | None = options["target_prune"]
        self._open_book()
        self._restart()

    def _open_book(self) -> None:
        previous: LossBook | None = self.__dict__.get("_book")
        if previous is not None:
            previous.give_up()
        self._book = LossBook(self.pruner)
        self.update_batch = self._book.update
        self.update_memory = self._book.update_memory

    def _restart(self) -> None:
        """Goes on where the pruner stands."""
        self._book.after_load()
        self.owner: Any = None
        self.thread = 0
        self._drawer = 0  # the thread that draws the batches
        self._pass: Pass | None = None
        self._waiting: deque[tuple[DelayedLoss, Any]] = deque()
        self._preview: tuple[int, int, int] | None = None  # epoch, losses seen, size
        self._num_idle = 0  # whole passes without an update, one after the other
        self._loaded = self.pruner.epoch  # whose rest set_epoch gives
        self._next = (0, 0)  # epoch and first sample of the next pass
        plan = self.pruner.plan
        if self._keeps is not None and plan is not None:
            self._keeps.show(plan)
        if plan is not None:
            is_over = self.pruner.position >= len(plan)
            self._next = (plan.epoch + 1, 0) if is_over else (plan.epoch, self.pruner.position)

    # Epochs.

    @property
    def epoch(self) -> int:
        return self.pruner.epoch or 0

    @property
    def next_epoch(self) -> int:
        """Of the next pass; the number of epochs once the run is over."""
        return self._coming()[0]

    @property
    def progress(self) -> float:
        self._skip_rest()
        current = self._pass
        if self.num_shares == 1 or current is None or len(current.plan) == 0:
            return self.pruner.progress
        # Ranks are at different batches of a step, but have trained on equally many samples.
        done = current.start + self.num_shares * current.num_ids
        share = min(done / len(current.plan), 1.0)
        return (current.plan.epoch + share) / self.pruner.num_epochs

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
        current = self._pass
        if current is not None and epoch == self.pruner.epoch and self._is_fresh(current):
            return  # frameworks say it between making the iterator and its first batch, too
        if epoch == self._loaded and current is None:
            self._next = (epoch, self.pruner.position)
            return
        before = self.pruner.epoch
        # Accelerate counts the loops that come to their end: after a break it says the same again.
        is_again = current is not None and current.way is Way.IDS and self._has_trained(current)
        self._finish_pass()
        if before is not None and (epoch < before or (epoch == before and is_again)):
            self._notices.back(before, epoch)
        if self._num_idle > 0 and epoch != before:
            self._notices.idle(self.epoch)
        self._start_epoch(epoch)
        self.pruner.position = 0
        self._next = (epoch, 0)

    def _is_fresh(self, current: Pass) -> bool:
        """True if it is certain that nothing of the pass has been trained on."""
        is_new = current.way is not Way.DELIVERY or current.delivered == current.start
        in_order = current.way is Way.ORDER or current.is_doubtful
        return is_new and not in_order and not self._has_trained(current)

    def _start_epoch(self, epoch: int) -> None:
        if epoch >= self.pruner.num_epochs:
            raise ValueError(
                f"sampler: all {self.pruner.num_epochs} epochs of the run are done; make the "
                "handler with more epochs, or call set_epoch to repeat one"
            )
        if epoch == self.pruner.epoch:
            return
        if self.num_ranks == 1 and num_ranks() > 1:
            self._notices.late_group(num_ranks())
        self._report(self._book.end_pass())  # what a loaded state kept back
        self._book.keep_weights()
        self.pruner.start_epoch(epoch)
        self._loaded = None
        self._num_idle = 0
        plan = self.pruner.plan
        assert plan is not None
        if self._keeps is not None:
            self._keeps.show(plan)
        self._notices.plan(plan, self._target)

    @property
    def keeps(self) -> Keeps:
        """The selection of the running epoch, for streams."""
        if self._keeps is None:
            self._keeps = Keeps(self.pruner.num_samples)
            if self.pruner.plan is not None:
                self._keeps.show(self.pruner.plan)
        if self.pruner.epoch is None:
            self.set_epoch(0)
        return self._keeps

    def _coming(self) -> tuple[int, int]:
        """Epoch and first sample of the next pass."""
        current, plan = self._pass, self.pruner.plan
        if self.is_stream and plan is not None:
            is_over = self.pruner.position >= len(plan)
            return (plan.epoch + 1, 0) if is_over else (plan.epoch, self.pruner.position)
        return self._next if current is None else self._after(current)

    def _after(self, current: Pass) -> tuple[int, int]:
        if self._has_trained(current) or len(current.plan) == 0:
            return current.plan.epoch + 1, 0
        return current.plan.epoch, current.start

    def _has_trained(self, current: Pass) -> bool:
        return current.num_ids > 0 or self.pruner.position > current.start

    def _report(self, summary: PassSummary) -> None:
        self.num_missed += summary["num_missed"]
        self._notices.summary(summary)

    # Passes.

    def begin_pass(self, source: Source) -> Pass:
        """Starts the pass of whoever draws: the owner, or a loader that is not ours."""
        size = source.batch_size
        if size is not None and self._homogeneous % size != 0:
            raise ValueError(
                f"sampler: homogeneous batches are of Options.batch_size, and {size} does "
                f"not divide {self._homogeneous} (batch_size times ranks)"
            )
        is_nested = self._pass is not None and self._may_go_on(self._pass)
        epoch, start = self._coming()
        self._finish_pass()
        if self._num_idle > 1:
            self._notices.idle(self.epoch)
        self._start_epoch(epoch)
        plan = self.pruner.plan
        assert plan is not None
        rest = len(plan) - start
        if source.drop_last and size is not None:
            rest = rest // size * size
        way = source.way
        if self.num_shares > 1 or (way is Way.DELIVERY and self.owner is None):
            way = Way.IDS  # rebuilt, or cut, by a framework
        current = Pass(source, way, plan, start, start + rest, is_doubtful=is_nested)
        self._open_pass(current)
        return current

    def _may_go_on(self, current: Pass) -> bool:
        """True if losses of the pass may still come after the next one has begun.

        A loader that fetches ahead comes to its end before the loop does.
        """
        if current.is_walking:
            return True
        if current.way is Way.ORDER:
            is_short = self.pruner.position < current.end
            return current.is_exhausted and is_short and self._has_trained(current)
        return current.is_doubtful or current.has_refused or self._book.has_refused

    def _open_pass(self, current: Pass) -> None:
        self.pruner.position = current.start
        if current.way is not Way.ORDER:
            self._report(self._book.end_pass())  # what a loaded state kept back
        if current.source.batch_size is not None:
            self._book.begin_pass(in_order=current.way is Way.ORDER)
        if current.way is Way.DELIVERY:
            self.owner.current = current
            current.delivered = current.start
        if self.num_shares > 1:  # which of the batches come here is not ours to know
            for count in self._batches(current):
                self._book.deliver(count)
        self.source, self._pass, self._loaded = current.source, current, None
        is_plain = current.way is Way.DELIVERY and not current.is_doubtful
        is_at_once = current.is_counted or (is_plain and not current.source.is_delayed)
        self.thread = get_ident() if is_at_once else 0
        self._drawer = get_ident()

    def _batches(self, current: Pass) -> Iterator[int]:
        size = current.source.batch_size or _CHUNK
        for begin in range(current.start, current.end, size):
            yield min(size, current.end - begin)

    def draw(self, current: Pass) -> Iterator[int]:
        """The samples of a pass: their ids, or for a loader of the user's own their indices."""
        plan, begin = current.plan, current.start
        take = plan.samples if current.source.way is Way.ORDER else plan.ids
        is_told = current.way is not Way.DELIVERY and current.source.batch_size is not None
        try:
            for count in self._batches(current):
                if current is not self._pass:
                    self._doubt()
                elif is_told and self.num_shares == 1:
                    self._book.deliver(count)
                yield from take(begin, count)
                begin += count
            if current.way is not Way.DELIVERY:
                self._exhaust(current)
        finally:
            if current.way is not Way.DELIVERY:
                current.is_walking = False

    def deliver(self, current: Pass, batch: Any, has_failed: bool) -> None:
        """The owner of the pass hands out a batch, possibly after some that failed to load."""
        if current is not self._pass:
            self._doubt()
            return
        begin = current.delivered
        if begin is None:
            return
        size = current.source.batch_size or 1
        # Losses that have not arrived must not look like updates that never came.
        if self._waiting or self.watcher is not None:
            self.settle_waiting(wait=self.pruner.position == current.start)
        ids = find_ids(batch) if has_failed else None
        if has_failed and (ids is None or len(ids) == 0):
            self._lose(current)
            return
        while begin < current.end:
            count = min(size, current.end - begin)
            self._book.deliver(count)
            begin += count
            if ids is None or current.plan[begin - count] == int(ids[0]) & INDEX_MASK:
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
            if not self._pass.is_counted:
                self.thread = 0

    def finish_delivery(self, current: Pass) -> None:
        """The owner of the pass has handed out every batch; ids may still come."""
        if current is self._pass:
            self.settle_waiting(wait=True)
            self.thread = 0
        self._exhaust(current)

    def _exhaust(self, current: Pass) -> None:
        current.is_exhausted, current.is_walking = True, False
        # By ids, batches that were drawn may be far from being trained on.
        is_done = current.is_counted or (current.way is Way.DELIVERY and self._has_trained(current))
        if current is self._pass and self._book.in_pass and is_done:
            self._book.finish_delivery()

    def _finish_pass(self) -> None:
        current = self._pass
        if current is None:
            return
        self.settle_waiting(wait=True)
        has_trained = self._has_trained(current)
        if current.is_counted and current.is_doubtful:
            self._open_book()  # forgets the losses
            if has_trained:
                self._notices.doubtful(current.plan.epoch)
        else:
            if has_trained and current.is_exhausted:
                self._book.finish_delivery()
            summary = self._book.end_pass()
            if has_trained and self.num_shares == 1:
                self._report(summary)
        self._next = self._after(current)
        if not has_trained:
            self.pruner.position = current.start
        is_idle = not has_trained and current.is_exhausted and current.end > current.start
        self._num_idle = self._num_idle + 1 if is_idle else 0
        self._pass, self.thread = None, 0

    def end_pass(self, only_if_over: bool = False) -> None:
        """Observes what a pass in order has kept back, now rather than when the next one begins."""
        self.settle_waiting(wait=True)
        if not only_if_over or (self._pass is not None and self._is_over(self._pass)):
            self._finish_pass()

    def settle(self) -> None:
        """Observes all losses that are waiting, as far as it is certain where they belong."""
        self.settle_waiting(wait=True)
        current = self._pass
        if current is not None and current.way is Way.ORDER and self._is_over(current):
            self._finish_pass()

    def _is_over(self, current: Pass) -> bool:
        """True if no batch is to come and, but by delivery, the last has had its update."""
        has_all = current.way is Way.DELIVERY or self.pruner.position >= current.end
        is_waiting = self.watcher is not None and self.watcher.is_waiting
        return current.is_exhausted and has_all and not is_waiting

    def settle_waiting(self, wait: bool) -> None:
        """Observes the losses that have arrived; with `wait` all of them."""
        while self._waiting and (wait or self._waiting[0][0].has_arrived()):
            loss, ids = self._waiting.popleft()
            self._book.update_samples(ids, loss.get())
        if self.watcher is not None:
            self.watcher.settle_waiting(wait)
