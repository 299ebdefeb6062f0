"""Samplers for torch's DataLoader that draw the planned samples of a handler."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Iterator, List

import torch.utils.data

from ._loader import Caller

if TYPE_CHECKING:
    from ._run import Run


class Sampler(torch.utils.data.Sampler):  # type: ignore[type-arg]
    """The samples of the coming epoch in training order, for `DataLoader(sampler=...)`.

    Iterating again before any loss has been booked gives the same epoch again; afterwards the next
    epoch.
    """

    def __init__(self, run: "Run") -> None:
        self._run = run

    def __iter__(self) -> Iterator[int]:
        return self._run.iterate_samples(Caller(sys._getframe(1)))

    def __len__(self) -> int:
        """Samples of the running epoch, and once its loop has ended those of the coming one."""
        return self._run.num_shown_samples()

    def set_epoch(self, epoch: int) -> None:
        """The next iteration gives this epoch, from its start, or from where a state was saved."""
        self._run.set_epoch(epoch)


class BatchSampler(torch.utils.data.BatchSampler):
    """The same in batches, for `DataLoader(batch_sampler=...)`."""

    sampler: Sampler

    def __init__(self, run: "Run", batch_size: int, drop_last: bool = False) -> None:
        super().__init__(Sampler(run), batch_size, drop_last)
        self._run = run

    def __iter__(self) -> Iterator[List[int]]:
        caller = Caller(sys._getframe(1))
        caller.batch_size = self.batch_size
        caller.drop_last = self.drop_last
        return self._run.iterate_batches(caller)

    def set_epoch(self, epoch: int) -> None:
        """See Sampler.set_epoch."""
        self._run.set_epoch(epoch)
