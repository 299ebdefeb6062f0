"""Two loaders in one loop, each of its own handler.

    for batch, due in together(unlabelled_loader, labelled_loader, passes=4):
        loss = unlabelled.update(consistency(model, batch))
        for images, labels in due:                                # none, one or more
            loss = loss + labelled.update(F.cross_entropy(model(images), labels))
        loss.backward()
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tamis


def together(leader: tamis.Loader, other: tamis.Loader, passes: int) -> Iterator[tuple[Any, Iterator[Any]]]:
    """One epoch of the leader, with that many passes over the other: yields a batch and those of the other that are due with it.

    Pruning shortens the two by different shares, so the number of batches that are due changes from epoch to epoch; both come
    to their end in the same step. A batch of the other must have its update before the next is taken, and its backward pass
    in the same step: a step never has batches of two passes.
    """
    companion, steps = _Companion(other, passes), 0
    for step, batch in enumerate(leader):
        steps = steps or len(leader)
        if passes > steps:
            raise ValueError(
                f"together: passes must be at most the leader's batches of an epoch, {steps} now, got {passes}; make its "
                "batches smaller, or those passes fewer"
            )
        yield batch, companion.until((step + 1) / steps)


class _Companion:
    def __init__(self, loader: tamis.Loader, passes: int) -> None:
        self._loader, self._passes = loader, passes
        self._whole = self._taken = self._length = 0  # passes that are over; batches of the running one, of so many
        self._batches: Iterator[Any] = iter(())

    def until(self, share: float) -> Iterator[Any]:
        """The batches up to this share of the epoch, or up to the end of a pass."""
        while self._whole + self._taken / (self._length or 1) < share * self._passes - 1e-9:
            if self._taken == 0:
                self._batches = iter(self._loader)
            batch = next(self._batches)
            if self._taken == 0:
                self._length = len(self._loader)
            self._taken += 1
            yield batch
            if self._taken == self._length:
                next(self._batches, None)  # the loader learns that its pass is over
                self._whole, self._taken = self._whole + 1, 0
                return
