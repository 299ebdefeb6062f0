"""Run: the updates, lengths and state of a training run; shared by a handler and its samplers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _losses
from ._batches import epoch_of
from ._core import Pruner
from ._notices import Notices
from ._pass import Pass, Way, check_plain
from ._passes import Passes
from ._stream import Keeps
from ._watch import Watcher


class Run(Passes):
    """Takes the losses of the passes, and says how long they are."""

    def _attach(self, pruner: Pruner) -> None:
        super()._attach(pruner)
        # A score that needs watched outputs says so at the first update.
        if pruner.needs == "output-gradients":
            self.watch()

    # Updates.

    @property
    def is_delayed(self) -> bool:
        """True if a loss is observed at a later update, once it has arrived from the device."""
        current = self._pass
        return current is not None and current.source.is_delayed and not current.is_counted

    def watch(self) -> Watcher:
        """The watcher, made when it is first needed."""
        if self.watcher is None:
            self.watcher = Watcher(self)
        return self.watcher

    def weigh(self, loss: Any, ids: Any, is_traced: bool = False) -> Any:
        """Takes a loss; returns the mean weight of its batch, or one weight per sample."""
        _losses.check(loss)
        if ids is None:
            try:
                check_plain(self._pass, self._drawer)
            except RuntimeError:
                if self._pass is not None:
                    self._pass.has_refused = True
                raise
            return self._take(loss, None, is_traced)
        ids = _losses.to_ids(ids)
        self._expect_ids(ids)
        weights = self._take(loss, ids, is_traced)
        self._count_ids(ids)
        return weights

    def _take(self, loss: Any, ids: Any, is_traced: bool) -> Any:
        if self.watcher is not None and self.watcher.takes(loss):
            self.settle_waiting(wait=False)
            return self.watcher.claim(loss, ids, is_traced)
        if self.is_delayed:
            return self._delay(loss, ids)
        value = _losses.to_host(loss)
        return self.update_batch(value) if ids is None else self._book.update_samples(ids, value)

    def _is_late(self, ids: Any) -> bool:
        """True if the ids are of an epoch that is over."""
        return epoch_of(ids) not in (None, self.pruner.epoch)

    def _expect_ids(self, ids: Any) -> None:
        """There is a plan, and where another rank reads for this one a pass."""
        if self.pruner.epoch is None:
            self._start_epoch(0)
        plan, source = self.pruner.plan, self.source
        if self._pass is None and self.num_shares > 1 and source is not None and plan is not None:
            epoch, start = self._next
            if epoch == plan.epoch and not self._is_late(ids):
                self._open_pass(Pass(source, Way.IDS, plan, start, len(plan), is_walking=False))

    def _count_ids(self, ids: Any) -> None:
        """The samples have had their update."""
        if self._is_late(ids):
            return
        if self._pass is not None:
            self._pass.num_ids += len(ids)
        plan = self.pruner.plan
        if self.is_stream and plan is not None:
            if self.pruner.position >= len(plan) > 0:
                self._notices.stream_again(plan)
            self.pruner.position = min(self.pruner.position + len(ids), len(plan))

    def _delay(self, loss: Any, ids: Any) -> Any:
        """The weights now, the loss at a later update."""
        self.settle_waiting(wait=False)
        plan = self.pruner.plan
        assert plan is not None
        if ids is None:
            ids = plan.samples(*self._book.next_batch())
        weights = self._book.weights_of(ids)
        self._waiting.append((_losses.DelayedLoss(loss), ids))
        return float(weights.mean(dtype=np.float64)) if np.ndim(loss) == 0 else weights

    # Lengths.

    def _shown(self) -> tuple[int, int]:
        """Epoch and position of the running pass, or of the coming one if none is running."""
        self.settle()
        current = self._pass
        if current is not None and not self._is_over(current):
            return self.epoch, self.pruner.position
        epoch, start = self._coming()
        return (epoch, start) if epoch < self.pruner.num_epochs else (self.epoch, 0)

    def _plan_size(self, epoch: int) -> int:
        plan = self.pruner.plan
        if plan is not None and (epoch == plan.epoch or self.num_ranks > 1):
            # Before all ranks start the next epoch, none of them knows its length.
            return len(plan)
        if self.num_ranks > 1 and self.pruner.options["layout"] == "sharded":
            # TypeError: progress bars and list() then do without.
            raise TypeError(
                f"the length of epoch {epoch} is not known before all ranks start it; call "
                "set_epoch on every rank first"
            )
        seen = self.pruner.num_observations + self.pruner.num_skipped_observations
        if self._preview is None or self._preview[:2] != (epoch, seen):
            self._preview = (epoch, seen, len(self.pruner.preview(epoch)))
        return self._preview[2]

    def num_samples(self) -> int:
        """Of the whole current epoch."""
        return self._plan_size(self._shown()[0])

    def num_batches(self, is_rest: bool) -> int:
        """Of the whole current epoch, or of its rest."""
        source = self.source
        if source is None or source.batch_size is None:
            raise RuntimeError(
                "the batch size is not known yet: make the loader with handler.loader(B), or pass "
                "options=tamis.Options(batch_size=B)"
            )
        epoch, position = self._shown()
        size = self._plan_size(epoch) - (position if is_rest else 0)
        count = size / source.batch_size
        return math.floor(count) if source.drop_last else math.ceil(count)

    # State.

    def __getstate__(self) -> dict[str, Any]:
        if self.num_ranks > 1:
            raise RuntimeError("a handler of several ranks cannot be copied; use its state_dict()")
        self.before_save()
        kept = ("pruner", "source", "num_ranks", "num_shares", "is_stream", "num_missed")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._notices = Notices()
        self._keeps = Keeps(self.pruner.num_samples) if self.is_stream else None
        self._attach(self.pruner)

    def before_save(self) -> None:
        self.end_pass(only_if_over=True)
        current = self._pass
        if current is not None and current.is_counted and current.is_doubtful:
            self._finish_pass()  # a state would not know of the doubt
        self._skip_rest()
        self._book.before_save()

    def load(self, state: Any) -> None:
        self.pruner.deserialize(state)
        self._restart()
