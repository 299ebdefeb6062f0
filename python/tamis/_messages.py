"""What is said to somebody who gives a handler the wrong thing."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader, IterableDataset


def check_dataset(owner: str, dataset: Any) -> None:
    """TypeError, with the cure, unless the data set has a length and can be indexed."""
    from ._methods import Proxy
    from .handler import Handler

    if isinstance(dataset, Proxy):
        name = type(dataset).__name__
        cure = f"it needs .proxy(), as in {name}(InfoBatch(train_set, epochs=200)).proxy()"
        raise TypeError(f"{owner}: dataset must be a data set, got {name}(...); {cure}")
    if isinstance(dataset, Handler):
        raise TypeError(
            f"{owner}: dataset must be a data set, got {dataset!r}; a run has one handler, so pass "
            "its data set"
        )
    if isinstance(dataset, DataLoader):
        raise TypeError(
            f"{owner}: dataset must be a data set, got a DataLoader; pass its data set, and make "
            "the loader with handler.loader(B)"
        )
    if isinstance(dataset, IterableDataset) or not (
        hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
    ):
        raise TypeError(
            f"{owner}: dataset must have len() and [i], got {type(dataset).__name__}; for a stream "
            "pass tamis.Stream(num_samples), and filter it with handler.keeps(ids)"
        )
    if len(dataset) == 0:
        raise ValueError(f"{owner}: dataset must have at least one sample, got none")
