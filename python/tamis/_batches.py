"""Ids that travel with the batch: from the data set through the collate function to update()."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

IDS_KEY = "tamis_ids"


class DatasetView(Dataset):  # type: ignore[type-arg]
    """The data set as loaders see it: the same samples, and in batches that know their ids.

    It holds nothing of the run, so that workers get no more than the data set. Attributes are those
    of the data set.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[index]

    def __getitems__(self, indices: list[int]) -> Samples:
        """What torch's DataLoader calls for a whole batch."""
        fetch = getattr(self.dataset, "__getitems__", None)
        samples = [self.dataset[i] for i in indices] if fetch is None else fetch(indices)
        return Samples(samples, indices)

    def __getattr__(self, name: str) -> Any:
        # From __dict__, because a copy in the making has no data set yet.
        dataset = self.__dict__.get("dataset")
        if dataset is None or name.startswith("__"):
            raise AttributeError(f"DatasetView has no attribute {name}")
        return getattr(dataset, name)


class Samples(list[Any]):
    """The samples of a batch before collation, with their ids."""

    def __init__(self, samples: Iterable[Any], ids: list[int]) -> None:
        super().__init__(samples)
        self.ids = ids


class Batch(list[Any]):
    """A batch that was a tuple or a list: unpacks as before, and knows its ids.

    Attributes:
        ids: Index of every sample in the data set; None in a copy that was made element by element.
    """

    ids: NDArray[np.int64] | None = None


class Collate:
    """The user's collate function, after which the batch knows its ids.

    Dicts get them as a tensor under "tamis_ids", tuples and lists become a Batch; what is neither,
    such as a single tensor, stays as it is.
    """

    def __init__(self, collate: Callable[[list[Any]], Any]) -> None:
        self.collate = collate

    def __call__(self, samples: list[Any]) -> Any:
        batch = self.collate(samples)
        ids = getattr(samples, "ids", None)
        if ids is None:
            return batch
        if isinstance(batch, MutableMapping):
            batch[IDS_KEY] = torch.tensor(ids)
        elif type(batch) in (list, tuple):
            batch = Batch(batch)
            batch.ids = np.array(ids, dtype=np.int64)
        return batch


def find_ids(batch: Any) -> Any:
    """The ids of a batch, or None if it has none."""
    if isinstance(batch, Batch):
        return batch.ids
    return batch.get(IDS_KEY) if isinstance(batch, Mapping) else None


def ids_of(batch: Any) -> Any:
    """The ids of a batch; ValueError, with the cure, if it has none."""
    ids = find_ids(batch)
    if ids is None:
        raise ValueError(
            f"update: this batch ({type(batch).__name__}) does not know its ids. Pass the batch as "
            "handler.loader() gave it, before it is copied or moved (dicts may be moved), or its "
            "samples with ids=..., or call update(loss) in a plain loop over handler.loader()"
        )
    return ids
