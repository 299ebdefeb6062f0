"""One pass over a sampler: on which batch is a loss to be booked?

A loader delivers batches 0, 1, 2, ... of the pass in order. When an update comes, the loop is on
the batch that was delivered last, or `ahead` batches before it if a wrapper fetches ahead, as those
of Accelerate and timm do by one batch. `ahead` is constant during a pass, except that at the end
nothing is left to fetch: the last ahead + 1 batches, the tail, are all worked on when everything
has been delivered.

If more than one batch had been delivered at the first update, either a wrapper fetches ahead or the
first updates were left out. The tail tells: ahead + 1 batches are updated in it. So losses are held
until then, once per loop; afterwards the answer is known. What the pass does not tell is not booked
at all, rather than on a batch that it may not belong to.
"""

from __future__ import annotations

from collections import Counter
from types import CodeType, FrameType
from typing import Any, Callable, Dict, List, Optional, Tuple

from ._loader import Caller, count_batches

NEVER = -1


class Pass:
    """Counts one pass over the rest of an epoch, from sample `start` of its plan on.

    Attributes:
        epoch: The epoch.
        start: First sample of the plan that belongs to the pass.
        batch_size: Samples per batch; None if it is not known where batches end.
        num_batches: Number of batches of the pass.
        trained: True once an update belonged to this pass.
        is_counted: False if updates came that could be booked by their indices only.
        exhausted: True once all batches have been drawn.
        expected: Delivered batches at the next update if it is an ordinary one, which moves
            `begin` and this by itself; NEVER if it cannot be.
        source, key: source.counts[key] is the number of batches delivered so far.
        begin, count: Samples [begin, begin + count) of the plan are that update's batch.
        num_missed: Batches known to have been delivered without an update.
        num_missed_reported: Of these, those that the run has counted.
    """

    def __init__(
        self,
        *,
        epoch: int,
        start: int,
        size: int,
        batch_size: Optional[int],
        drop_last: bool,
        caller: Caller,
        is_ordinary: bool,
        lookahead: Optional[int],
        known_lookaheads: Dict[CodeType, int],
        book: Callable[[int, int, Any], None],
    ) -> None:
        self.epoch = epoch
        self.start = start
        self.size = size
        self.batch_size = batch_size
        self.num_batches = 0
        if batch_size is not None:
            self.num_batches = (size - start + (0 if drop_last else batch_size - 1)) // batch_size
        self.trained = False
        self.is_counted = True
        self.finished = False
        self.exhausted = False
        self.expected = NEVER
        self.begin = start
        self.count = batch_size or 0
        self.num_missed = 0
        self.num_missed_reported = 0
        self.source = count_batches(caller)
        self.key = self.source.key
        self._is_ordinary = is_ordinary  # updates may be done by Handler.update itself
        self._consumer = caller.consumer
        self._lookahead = lookahead
        self._known_lookaheads = known_lookaheads
        self._book = book
        self._ahead: Optional[int] = None
        self._is_sure = True
        self._num_repeated = 0  # updates beyond the first of a batch
        self._num_tail = 0  # updates since everything was delivered
        self._tail_repeats = 1  # updates of each batch before that
        self._held: List[Tuple[int, Any]] = []  # (delivered, loss) whose batch is not certain yet

    @property
    def num_samples(self) -> int:
        """Samples of the plan from `start` on, also those that drop_last leaves out."""
        return self.size - self.start

    @property
    def num_delivered(self) -> int:
        return int(self.source.counts.get(self.key, 0))

    @property
    def _next(self) -> int:
        """The batch after the last one that was updated."""
        return (self.begin - self.start) // max(self.count, 1)

    @_next.setter
    def _next(self, batch: int) -> None:
        self.begin = self.start + batch * self.count

    @property
    def is_complete(self) -> bool:
        """True once every batch had its update."""
        return self._next >= self.num_batches or self._num_tail >= self._num_tail_expected()

    @property
    def can_finish(self) -> bool:
        """True if the loop has ended, as far as can be seen from here.

        A wrapper that fetches ahead may let go of the loader before it yields the last batches.
        """
        if not self.trained or self.is_in_use():
            return False
        return self.is_complete or self._num_tail == 0 or not self._is_sure

    def count_draw(self) -> None:
        """Another batch is being drawn."""
        if self.source.counts_draws:
            drawn = self.num_delivered + 1
            self.source.counts[self.key] = min(drawn, self.num_batches or drawn)

    def refusal(self) -> Optional[str]:
        """Why an update cannot be booked by counting, or None."""
        if self.batch_size is None:
            return "it is not known how the batch sampler groups the samples"
        if not self._consumer.is_this_thread():
            return "another thread iterates over the loader, any number of batches ahead"
        if self.num_delivered == 0:
            return "no batch of the present pass has been delivered"
        return self.source.refusal()

    def locate(self, frame: FrameType) -> Tuple[int, int]:
        """The batch that an update called from `frame` belongs to, and its first sample.

        Requires: refusal() is None.
        """
        delivered = self.num_delivered
        if self._ahead is None:
            self._calibrate(delivered, frame)
        assert self._ahead is not None and self.batch_size is not None
        batch = delivered - 1 - self._ahead
        if delivered >= self.num_batches:
            if self._num_tail == 0 or not self._is_sure:
                self._tail_repeats = self._updates_per_batch()
            batch = self._tail_batch(self._num_tail)
        return batch, self.start + batch * self.batch_size

    def record(self, batch: int, loss: Any) -> None:
        """Takes the loss of an update that locate() put on `batch`; None if it is booked."""
        self.trained = True
        delivered = self.num_delivered
        if delivered >= self.num_batches:
            self._num_tail += 1
        if not self._is_sure or (self._ahead != 0 and delivered >= self.num_batches):
            self._held.append((delivered, loss))
            self.expected = NEVER
        else:
            self._book_on(batch, loss)
            self._expect_next()

    def _expect_next(self) -> None:
        assert self._ahead is not None
        following = self._next + 1 + self._ahead
        is_last = following >= self.num_batches
        self.expected = NEVER if is_last or not self._is_ordinary else following

    def settle(self, final: bool) -> None:
        """Books what is held: by what the pass has told if it is over, else as is likeliest."""
        held, self._held = self._held, []
        if not held:
            return
        tail = [loss for delivered, loss in held if delivered >= self.num_batches]
        if not self._is_sure and not self._decide_ahead(held, len(tail), final):
            self._give_up()
            return
        assert self._ahead is not None
        for delivered, loss in held:
            if delivered < self.num_batches:
                self._book_on(delivered - 1 - self._ahead, loss)
        if tail and final and self._ahead > 0 and not self._is_tail_whole():
            self._give_up()  # which of the last batches had no update cannot be told
            return
        num_booked = self._num_tail - len(tail)  # by an earlier settle()
        for k, loss in enumerate(tail, num_booked):
            self._book_on(self._tail_batch(k), loss)
        self._expect_next()

    def finish(self) -> None:
        """The pass is over: settles, and counts the batches at its end that had no update."""
        if self.finished:
            return
        self.finished = True
        self.settle(final=True)
        delivered = self.num_delivered
        if delivered < self._next:  # a loader with persistent workers has started over
            delivered = self.num_batches if self.exhausted else 0
        # With a lookahead the loop may have been left before it saw what was delivered.
        is_whole = self._ahead == 0 and delivered >= self.num_batches
        if self.trained and self.is_counted and is_whole:
            self._give_up()

    def is_in_use(self) -> bool:
        return self.source.is_in_use()

    def _calibrate(self, delivered: int, frame: FrameType) -> None:
        code = self._consumer.code
        known = self._known_lookaheads.get(code) if code is not None else None
        if self._lookahead is not None:
            self._ahead = min(self._lookahead, delivered - 1)
        elif delivered == 1:
            self._ahead = 0
            if code is not None and self.num_batches > 1:
                self._known_lookaheads[code] = 0
        elif known is not None:
            self._ahead = min(known, delivered - 1)
        else:
            # A loop that stands in the call stack fetches its batches itself.
            self._ahead = 0 if self._consumer.is_calling(frame) else delivered - 1
            self._is_sure = False

    def _decide_ahead(self, held: List[Tuple[int, Any]], num_tail: int, final: bool) -> bool:
        """Finds out the lookahead. Returns False if a whole pass does not tell it."""
        self._is_sure = True
        self._tail_repeats = self._updates_per_batch_of(held)
        if not final:
            return True
        if num_tail == 0:  # left early, or the last updates are missing as well
            return self._ahead == 0 or self.num_delivered < self.num_batches
        ahead, rest = divmod(num_tail, self._tail_repeats)
        first_delivered = held[0][0]
        if rest == 0 and ahead <= first_delivered:
            self._ahead = ahead - 1
            # In a pass that is shorter than the lookahead not all of it shows.
            if self._consumer.code is not None and first_delivered < self.num_batches:
                self._known_lookaheads[self._consumer.code] = ahead - 1
        return True

    def _give_up(self) -> None:
        """The batches from here on are not scored."""
        self.num_missed += max(self.num_batches - self._next, 0)
        self._next = self.num_batches

    def _tail_begin(self) -> int:
        return max(self.num_batches - 1 - (self._ahead or 0), 0)

    def _tail_batch(self, k: int) -> int:
        """The batch of update k of those that came after everything had been delivered."""
        return min(self._tail_begin() + k // self._tail_repeats, self.num_batches - 1)

    def _num_tail_expected(self) -> int:
        return self._tail_repeats * (self.num_batches - self._tail_begin())

    def _is_tail_whole(self) -> bool:
        """True if each of the last batches had its updates."""
        num_batches = self.num_batches - self._tail_begin()
        if self._next == 0 and self._num_tail % num_batches == 0:
            self._tail_repeats = self._num_tail // num_batches  # no batch before them tells
        return self._num_tail == self._num_tail_expected()

    def _updates_per_batch(self) -> int:
        """More than 1 if every batch so far had the same number of updates."""
        if not self._is_sure:
            return self._updates_per_batch_of(self._held)
        num_updated = self._next - self.num_missed
        if num_updated <= 0 or self._num_repeated % num_updated != 0:
            return 1
        return 1 + self._num_repeated // num_updated

    def _updates_per_batch_of(self, held: List[Tuple[int, Any]]) -> int:
        counts = set(Counter(d for d, _ in held if d < self.num_batches).values())
        return counts.pop() if len(counts) == 1 else 1

    def _book_on(self, batch: int, loss: Any) -> None:
        if batch >= self._next:
            self.num_missed += batch - self._next
            self._next = batch + 1
        else:
            self._num_repeated += 1
        if loss is not None:
            assert self.batch_size is not None
            self._book(self.start + batch * self.batch_size, self.batch_size, loss)
