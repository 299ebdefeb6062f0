"""update() inside torch.compile: one operator that the compiler does not look into."""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ._batches import ids_of

if TYPE_CHECKING:
    from .handler import Handler

is_compiling = torch.compiler.is_compiling

_numbers = itertools.count()
_handlers: weakref.WeakValueDictionary[int, Handler] = weakref.WeakValueDictionary()


def register(handler: Handler) -> int:
    """A number by which compiled code finds the handler."""
    number = next(_numbers)
    _handlers[number] = handler
    return number


@torch.library.custom_op("tamis::weights", mutates_args=())
def weights(loss: Tensor, ids: Tensor | None, handler: int) -> Tensor:
    """Takes the loss of a batch; returns what it is multiplied by, in its shape."""
    given = _handlers[handler]._run.weigh(loss, ids, is_traced=True)
    return torch.as_tensor(given, dtype=loss.dtype, device=loss.device)


@weights.register_fake
def _(loss: Tensor, ids: Tensor | None, handler: int) -> Tensor:
    return torch.empty_like(loss)


def update(handler: Handler, loss: Tensor, batch: Any, ids: Any) -> Tensor:
    """Handler.update as the compiler traces it."""
    if batch is not None and ids is None:
        ids = ids_of(batch)
    if ids is not None:
        ids = torch.as_tensor(ids)
    weighted: Tensor = loss * torch.ops.tamis.weights(loss.detach(), ids, handler.number)
    return weighted if loss.ndim == 0 else weighted.mean()
