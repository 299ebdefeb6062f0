"""Labels that carry the ids of their batch, so that the loss computed from them has them too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_PLAIN = frozenset(torch.overrides.get_default_nowrap_functions())


class Carried(Tensor):
    """A tensor computed from the labels of a batch.

    Attributes:
        ids: Of the samples of that batch; None if it was computed from two batches.
    """

    ids: NDArray[np.int64] | None

    @staticmethod
    def of(tensor: Tensor, ids: NDArray[np.int64] | None) -> Carried:
        carried = tensor.as_subclass(Carried)
        carried.ids = ids
        return carried

    def plain(self) -> Tensor:
        """The tensor without its ids; gradients flow through."""
        with torch._C.DisableTorchFunctionSubclass():
            return self.as_subclass(Tensor)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunctionSubclass():
            result = function(*args, **kwargs)
            if function in _PLAIN:
                return result
            return _carry_on(result, args, kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild, (self.plain(), self.ids)


def _rebuild(tensor: Tensor, ids: NDArray[np.int64] | None) -> Carried:
    with torch._C.DisableTorchFunctionSubclass():
        return Carried.of(tensor, ids)


def _carry_on(result: Any, args: Any, kwargs: Any) -> Any:
    """The result with the ids of what it was computed from, if it is a new tensor."""
    if isinstance(result, Tensor):
        if type(result) is not Tensor or any(result is value for value in args):
            return result
        return Carried.of(result, _common_ids(args, kwargs))
    if type(result) in (list, tuple):
        return type(result)(_carry_on(value, args, kwargs) for value in result)
    return result


def _common_ids(args: Any, kwargs: Any) -> NDArray[np.int64] | None:
    """The ids of the tensors in a call; None if they are of different batches."""
    found: NDArray[np.int64] | None = None
    for carried in _carried([*args, *kwargs.values()]):
        ids = getattr(carried, "ids", None)
        if ids is None or (found is not None and ids is not found and not _same(ids, found)):
            return None
        found = ids
    return found


def _same(a: NDArray[np.int64], b: NDArray[np.int64]) -> bool:
    return bool(np.array_equal(a, b))


def _carried(values: Iterable[Any]) -> Iterator[Carried]:
    for value in values:
        if isinstance(value, Carried):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _carried(value)
