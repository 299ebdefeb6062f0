"""Loader and Sampler: what torch draws batches with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch.utils.data
from torch.utils.data import DataLoader

from ._pass import Pass, Source
from ._run import Run


class Sampler(torch.utils.data.Sampler[int]):
    """The samples of the coming epoch in training order, for `DataLoader(sampler=...)`.

    Iterating again before any update gives the same epoch again; afterwards the next epoch.
    """

    def __init__(self, run: Run, source: Source) -> None:
        self.run = run
        self.source = source

    def __iter__(self) -> Iterator[int]:
        return self.run.draw(self.run.begin_pass(self.source))

    def __len__(self) -> int:
        """Samples of the whole current epoch: the running one, and once it is done the next."""
        return self.run.num_samples()

    def set_epoch(self, epoch: int) -> None:
        """See Handler.set_epoch."""
        self.run.set_epoch(epoch)


class Loader(DataLoader[Any]):
    """A DataLoader that knows which batch it has handed out last. Made by handler.loader().

    Everything but that is in its data set, sampler and collate function, so that a DataLoader that
    a framework makes of these still gives batches that know their ids.
    """

    def __iter__(self) -> Any:
        if not isinstance(self.sampler, Sampler):
            return super().__iter__()
        return Delivery(self, self.sampler.run)

    def set_epoch(self, epoch: int) -> None:
        """See Handler.set_epoch."""
        if isinstance(self.sampler, Sampler):
            self.sampler.set_epoch(epoch)


class Delivery:
    """One walk of a Loader."""

    def __init__(self, loader: Loader, run: Run) -> None:
        self.current: Pass | None = None  # set by the run if it is told of each batch
        self._run = run
        self._has_failed = False
        self._batches = self._ask(DataLoader.__iter__, loader)

    def __iter__(self) -> Delivery:
        return self

    def __next__(self) -> Any:
        try:
            batch = self._ask(next, self._batches)
        except StopIteration:
            if self.current is not None:
                self._run.finish_delivery(self.current)
            raise
        except Exception:
            self._has_failed = True
            raise
        if self.current is not None:
            self._run.deliver(self.current, batch, self._has_failed)
            self._has_failed = False
        return batch

    def __del__(self) -> None:
        current = getattr(self, "current", None)
        if current is not None:
            current.is_walking = False

    def _ask(self, function: Any, argument: Any) -> Any:
        """A sampler that torch iterates over in here draws for this walk."""
        before, self._run.owner = self._run.owner, self
        try:
            return function(argument)
        finally:
            self._run.owner = before
