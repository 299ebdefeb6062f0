"""Ids that travel with the batch: from the sampler through the collate function to update()."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from ._carry import Carried
from ._core import INDEX_BITS

IDS_KEY = "tamis_ids"
LABEL_KEYS = ("labels", "label", "target", "targets")
INDEX_MASK = (1 << INDEX_BITS) - 1


def epoch_of(ids: Any) -> int | None:
    """The epoch that the ids of a batch were drawn in; None for plain indices."""
    part = int(ids[0]) >> INDEX_BITS if np.ndim(ids) == 1 and len(ids) > 0 else 0
    return part - 1 if part > 0 else None


def indices_of(ids: Any) -> NDArray[np.int64]:
    """The index of every sample in the data set, of ids or of plain indices."""
    if isinstance(ids, Tensor):
        ids = ids.detach().cpu()
    return np.asarray(ids, dtype=np.int64) & INDEX_MASK


class DatasetView(Dataset):  # type: ignore[type-arg]
    """The data set as loaders see it: the same samples, by index or by id.

    It holds nothing of the run, so that workers get no more than the data set. Attributes are those
    of the data set.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        is_id = isinstance(index, (int, np.integer)) and index > INDEX_MASK
        return self.dataset[index & INDEX_MASK if is_id else index]

    def __getitems__(self, ids: Any) -> Samples:
        """What torch's DataLoader calls for a whole batch."""
        indices: Any = ids
        if len(ids) > 0 and isinstance(ids[0], (int, np.integer)) and ids[0] > INDEX_MASK:
            ids = np.array(ids, dtype=np.int64)
            indices = (ids & INDEX_MASK).tolist()
        fetch = getattr(self.dataset, "__getitems__", None)
        samples = [self.dataset[i] for i in indices] if fetch is None else fetch(indices)
        return Samples(samples, ids)

    def __getattr__(self, name: str) -> Any:
        # From __dict__, because a copy in the making has no data set yet.
        dataset = self.__dict__.get("dataset")
        if dataset is None or name.startswith("__"):
            raise AttributeError(f"DatasetView has no attribute {name}")
        return getattr(dataset, name)


class Samples(list[Any]):
    """The samples of a batch before collation, with their ids."""

    def __init__(self, samples: Iterable[Any], ids: list[int] | NDArray[np.int64]) -> None:
        super().__init__(samples)
        self.ids = ids


class Batch(list[Any]):
    """A batch that was a tuple or a list: unpacks as before, and knows its ids.

    Attributes:
        ids: Epoch and index of every sample in one number each; None in a copy that was made
            element by element.
    """

    ids: NDArray[np.int64] | None = None

    @property
    def indices(self) -> NDArray[np.int64] | None:
        """Index of every sample in the data set."""
        return None if self.ids is None else indices_of(self.ids)


class Collate:
    """The user's collate function, after which the batch knows its ids.

    Dicts get them as a tensor under "tamis_ids", tuples and lists become a Batch; what is neither,
    such as a single tensor, stays as it is. With `on_labels` they ride on the labels instead: under
    "labels" or the like in a dict, the last element of a tuple or list.
    """

    def __init__(self, collate: Callable[[list[Any]], Any], on_labels: bool = False) -> None:
        self.collate = collate
        self.on_labels = on_labels

    def __call__(self, samples: list[Any]) -> Any:
        batch = self.collate(samples)
        ids = getattr(samples, "ids", None)
        if ids is None:
            return batch
        if self.on_labels:
            return _put_on_labels(batch, np.array(ids, dtype=np.int64))
        if isinstance(batch, MutableMapping):
            batch[IDS_KEY] = torch.tensor(ids, dtype=torch.int64)
        elif type(batch) in (list, tuple):
            batch = Batch(batch)
            batch.ids = np.array(ids, dtype=np.int64)
        return batch


def _put_on_labels(batch: Any, ids: NDArray[np.int64]) -> Any:
    if isinstance(batch, MutableMapping):
        name = next((name for name in LABEL_KEYS if name in batch), None)
        if name is not None and isinstance(batch[name], Tensor):
            batch[name] = Carried.of(batch[name], ids)
            return batch
    elif type(batch) in (list, tuple) and len(batch) > 1 and isinstance(batch[-1], Tensor):
        return type(batch)([*batch[:-1], Carried.of(batch[-1], ids)])
    raise TypeError(
        'loader: carry="labels" needs labels that are a tensor: the last element of a tuple or '
        f"list, or one of {', '.join(LABEL_KEYS)} in a dict; got {_describe(batch)}. Leave out "
        "carry= and call update(loss, batch)"
    )


def _describe(batch: Any) -> str:
    if isinstance(batch, Mapping):
        return f"a {type(batch).__name__} with {', '.join(map(str, batch))}"
    if isinstance(batch, (list, tuple)):
        return f"a {type(batch).__name__} of {', '.join(type(b).__name__ for b in batch)}"
    return f"a {type(batch).__name__}"


def find_ids(batch: Any) -> Any:
    """The ids of a batch, or None if it has none."""
    if isinstance(batch, Batch):
        return batch.ids
    if isinstance(batch, Mapping):
        labels = next((batch[name] for name in LABEL_KEYS if name in batch), None)
        return batch.get(IDS_KEY, labels.ids if isinstance(labels, Carried) else None)
    if isinstance(batch, Carried):
        return batch.ids
    if isinstance(batch, (list, tuple)) and len(batch) > 0 and isinstance(batch[-1], Carried):
        return batch[-1].ids
    return None


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


def strip_ids(module: torch.nn.Module) -> Any:
    """Takes the key "tamis_ids" out of what a module is called with; returns the hook's handle."""

    def strip(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if IDS_KEY in kwargs:
            kwargs = {name: value for name, value in kwargs.items() if name != IDS_KEY}
        return tuple(_without_ids(value) for value in args), kwargs

    return module.register_forward_pre_hook(strip, with_kwargs=True, prepend=True)


def _without_ids(value: Any) -> Any:
    if not isinstance(value, MutableMapping) or IDS_KEY not in value:
        return value
    kept = value.copy() if hasattr(value, "copy") else dict(value)
    del kept[IDS_KEY]
    return kept
