"""In random loops every loss reaches its own batch, or it is refused or dropped; never elsewhere.

Losses are numbers that stand for one update each, and the score is the loss of the last visit, so
that a score tells which update it came from.
"""

import random
import warnings

import numpy as np
import pytest
import support
import tamis
from support import WRAPPERS, make_loader, rebuild
from tamis import LossBook, Pruner

pytestmark = [
    pytest.mark.filterwarnings("ignore::tamis.MissedUpdateWarning"),
    pytest.mark.filterwarnings("ignore::tamis.LoopWarning"),
]


@pytest.fixture(autouse=True)
def missed_updates_are_errors():
    """Here they are part of the game."""


class Truth:
    """Which samples each loss was computed from."""

    def __init__(self):
        self.batches = []

    def next_loss(self, samples):
        self.batches.append({int(i) for i in samples})
        return float(len(self.batches))

    def check(self, scores):
        """Every score is the number of an update whose batch held the sample."""
        for sample in np.flatnonzero(~np.isnan(scores)):
            assert sample in self.batches[int(scores[sample]) - 1]

    def check_complete(self, scores):
        """And of the last such update."""
        last = {i: float(n) for n, batch in enumerate(self.batches, 1) for i in batch}
        seen = np.flatnonzero(~np.isnan(scores))
        assert {int(i): float(scores[i]) for i in seen} == last


# On the level of the book: thousands of loops.


def run_book(seed):
    """Delivers, updates, skips, repeats, looks ahead and breaks at random."""
    choose = random.Random(seed)
    size, batch_size = choose.randint(1, 60), choose.randint(1, 9)
    pruner = Pruner(size, 4, policy="random-dynamic", score="last-batch-loss", seed=seed)
    book, truth = LossBook(pruner), Truth()
    for epoch in range(choose.randint(1, 4)):
        pruner.start_epoch(epoch)
        plan = pruner.plan
        in_order = choose.random() < 0.5
        ahead = choose.choice([0, 0, 0, 1, 3])
        fault = choose.choice([(1,), (1,), (0, 1), (1, 2)])
        # In order, updates by ids are not counted: as if they were skipped.
        by_ids = choose.choice([0.0, 1.0] if in_order else [0.0, 0.1, 1.0])
        drawn, position = [], 0
        book.begin_pass(in_order=in_order)

        def draw(plan=plan, book=book, drawn=drawn):
            begin = sum(len(batch) for batch in drawn)
            count = min(batch_size, len(plan) - begin)
            if count <= 0:
                book.finish_delivery()
                return False
            book.deliver(count)
            drawn.append(plan.samples(begin, count))
            return True

        stop = choose.randint(0, size) if 2 not in fault and choose.random() < 0.2 else None
        while stop is None or position < stop:
            while len(drawn) <= position + ahead and draw():
                pass
            if position >= len(drawn):
                break
            samples = drawn[position]
            position += 1
            for _ in range(choose.choice(fault)):
                loss = truth.next_loss(samples)
                try:
                    if choose.random() < by_ids:
                        book.update_samples(samples, loss)
                    else:
                        book.update(loss)
                except RuntimeError as error:
                    assert "update" in str(error)
        book.end_pass()
        truth.check(pruner.scores)
    return pruner.num_observations


def test_the_book_is_right_in_thousands_of_loops():
    assert sum(run_book(seed) for seed in range(4000)) > 20_000


# With real DataLoaders.


class RandomLoop:
    """One run of several epochs, each with a loop of its own."""

    def __init__(self, seed, num_workers):
        self.choose = random.Random(seed)
        self.size = self.choose.randint(1, 150)
        self.epochs = self.choose.randint(1, 4)
        self.batch_size = self.choose.randint(1, 20)
        self.drop_last = self.size >= self.batch_size and self.choose.random() < 0.3
        self.method = self.choose.choice(["infobatch", "random-dynamic", "full"])
        self.num_workers = num_workers
        self.truth = Truth()
        self.num_refused = 0
        self.late = None  # a batch of the epoch before that has had no update
        self.start()

    def start(self):
        options = tamis.Options(batch_size=self.batch_size, drop_last=self.drop_last)
        self.handler = tamis.prune(
            support.IndexDataset(self.size),
            self.method,
            epochs=self.epochs,
            score="last-batch-loss",
            options=options,
        )

    def restart_from_state(self):
        state = self.handler.state_dict()
        self.start()
        self.handler.load_state_dict(state)

    def loader(self, mode):
        options = {"num_workers": self.num_workers}
        if mode in ("rebuilt", "labels", "rebuilt labels"):
            carry = "labels" if "labels" in mode else "batch"
            more = {} if "rebuilt" in mode else options
            loader = make_loader(
                self.handler, "loader", self.batch_size, self.drop_last, carry=carry, **more
            )
            return rebuild(loader, **options) if "rebuilt" in mode else loader
        return make_loader(self.handler, mode, self.batch_size, self.drop_last, **options)

    def run_epoch(self):
        """A loop that fetches ahead, skips, repeats, breaks or nests as chance has it."""
        mode = self.choose.choice([*support.MODES, "rebuilt", "labels", "rebuilt labels"])
        by_ids = mode in ("loader", "rebuilt") and self.choose.random() < 0.4
        wrap = WRAPPERS[self.choose.choice(list(WRAPPERS))]
        # In order, a loop that skips a batch and repeats another has the right number of updates.
        fault = self.choose.choice([(1,), (1,), (0, 1), (1, 2)])
        # Neither can a state tell, in its middle, or a loop inside another at its first batches.
        carries = "labels" in mode
        is_exact = mode == "loader" or by_ids or carries or fault == (1,)
        self.may_restart = is_exact
        nested = is_exact and self.choose.random() < 0.1
        may_stop = 2 not in fault and self.choose.random() < 0.3
        stop = self.choose.randint(0, 20) if may_stop else None
        loader = self.loader(mode)
        if len(loader) == 0:
            return
        other = self.open_another(mode)
        for step, batch in enumerate(wrap(loader)):
            if step == stop:
                break
            if nested and step == 2 and self.handler.epoch + 1 < self.epochs:
                next(iter(self.loader(mode)))
            if other is not None and step == 1:
                next(other, None)
            indices = support.indices_of(batch)
            for _ in range(self.choose.choice(fault)):
                loss = self.truth.next_loss(indices)
                if carries:
                    loss = batch[1].sum() * 0.0 + loss
                self.update(loss, batch if by_ids else None)
        if mode == "loader" and self.choose.random() < 0.5:
            self.late = batch

    def update(self, loss, batch):
        try:
            self.handler.update(loss, batch)
        except (RuntimeError, ValueError) as error:  # of an epoch that a state does not know
            assert "update" in str(error)
            self.num_refused += 1

    def open_another(self, mode):
        """At times another loop over the handler is open, and one of its batches is taken."""
        if mode not in ("loader", "rebuilt") or self.choose.random() > 0.1:
            return None
        other = iter(self.loader(mode))
        next(other, None)
        return other

    def update_late(self):
        """A batch of an epoch that is over: by ids that is right, too."""
        late, self.late = self.late, None
        if late is not None:
            self.update(self.truth.next_loss(support.indices_of(late)), late)


def run(seed, num_workers):
    loop = RandomLoop(seed, num_workers)
    for epoch in range(loop.epochs):
        loop.handler.set_epoch(epoch)
        loop.update_late()
        loop.run_epoch()
        if loop.may_restart and loop.choose.random() < 0.2:
            loop.restart_from_state()
        loop.handler.end_pass()
        loop.truth.check(loop.handler.scores)
    return loop.handler.num_observations


@pytest.mark.parametrize("block", range(8))
def test_losses_reach_their_own_batch_in_random_loops(block):
    assert sum(run(seed, 0) for seed in range(50 * block, 50 * (block + 1))) > 300


@pytest.mark.parametrize("seed", range(16))
def test_losses_reach_their_own_batch_in_random_loops_with_workers(seed):
    run(1000 + seed, num_workers=2)


def test_nothing_is_refused_or_dropped_in_plain_loops():
    for seed in range(60):
        loop = RandomLoop(seed, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for epoch in range(loop.epochs):
                loop.handler.set_epoch(epoch)
                mode = loop.choose.choice([*support.MODES, "rebuilt", "labels"])
                for batch in loop.loader(mode):
                    loss = loop.truth.next_loss(support.indices_of(batch))
                    if mode == "labels":
                        loss = batch[1].sum() * 0.0 + loss
                    loop.handler.update(loss, batch if mode == "rebuilt" else None)
                loop.handler.end_pass()
                loop.truth.check_complete(loop.handler.scores)
