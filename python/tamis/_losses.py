"""Losses of any kind as what the core takes: a float, or one float32 per sample."""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Deque, Optional, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def check(loss: Any) -> int:
    """Number of dimensions of a loss: 0 for the mean of a batch, 1 for one loss per sample."""
    if isinstance(loss, Tensor):
        if not loss.is_floating_point():
            raise TypeError(f"update: loss must be floating point, got {loss.dtype}")
        num_dimensions = int(loss.ndim)
    elif isinstance(loss, (float, int)) and not isinstance(loss, bool):
        num_dimensions = 0
    elif isinstance(loss, (np.ndarray, np.generic)):
        if loss.dtype.kind != "f":
            raise TypeError(f"update: loss must be floating point, got {loss.dtype}")
        num_dimensions = loss.ndim
    else:
        raise TypeError(f"update: loss must be a tensor, an array or a number, got {type(loss)}")
    if num_dimensions > 1:
        raise ValueError(
            "update: loss must be the mean of the batch or one loss per sample, got shape "
            f"{tuple(loss.shape)}"
        )
    return num_dimensions


def check_count(loss: Any, num_dimensions: int, count: int, pruner: Any) -> None:
    """Raises ValueError unless a loss fits a batch of `count` samples and the score."""
    if num_dimensions == 1 and len(loss) != count:
        raise ValueError(
            f"update: losses must be as many as the samples of the batch ({count}), got "
            f"{len(loss)}; if the batch was filtered, pass indices="
        )
    if num_dimensions == 0 and pruner.needs_sample_losses:
        raise ValueError(
            f"update: score {pruner.options['score']} needs one loss per sample, got the mean of "
            f"{count}; tamis.BLS(...).proxy() works with the mean"
        )


def to_host(loss: Any) -> Any:
    """A float or a float32 array of its own; waits for the device that computes the loss."""
    if isinstance(loss, Tensor):
        if loss.ndim == 0:
            return float(loss.item())
        return loss.detach().to(device="cpu", dtype=torch.float32, copy=True).numpy()
    return float(loss) if np.ndim(loss) == 0 else np.array(loss, dtype=np.float32)


def to_indices(indices: Any) -> Any:
    """Indices of any kind as an array in host memory; not copied if they are there already."""
    if isinstance(indices, Tensor):
        return indices.detach().cpu().numpy()
    if hasattr(indices, "__dlpack__") and not hasattr(indices, "__array__"):
        return np.from_dlpack(indices)
    return np.asarray(indices)


def apply_mean_weight(loss: Any, weight: float) -> Any:
    """The mean loss of a batch times the mean weight of the batch; the same object if that is 1."""
    return loss if weight == 1.0 else loss * weight


def apply_weights(losses: Any, weights: NDArray[np.float32]) -> Any:
    """Mean of the weighted losses of a batch."""
    if bool((weights == 1.0).all()):
        return losses.mean()
    if isinstance(losses, Tensor):
        factors = torch.from_numpy(weights).to(losses.device, losses.dtype, non_blocking=True)
        return (losses * factors).mean()
    return (losses * weights.astype(losses.dtype)).mean()


class DelayedLoss:
    """A loss on its way from the device to the host."""

    def __init__(self, copy: Any, event: Optional[Any] = None) -> None:
        self._copy = copy
        self._event = event

    def has_arrived(self) -> bool:
        return self._event is None or bool(self._event.query())

    def get(self) -> Any:
        """The loss as to_host() gives it; waits until it has arrived."""
        if self._event is not None and not self.has_arrived():
            self._event.synchronize()
        return to_host(self._copy)


def start_copy(loss: Any) -> DelayedLoss:
    """Sends a loss on its way without waiting for the device that computes it."""
    if not isinstance(loss, Tensor):
        return DelayedLoss(to_host(loss))
    if loss.device.type != "cuda":
        return DelayedLoss(loss.detach().clone())
    copy = torch.empty(loss.shape, dtype=loss.dtype, pin_memory=True)
    copy.copy_(loss.detach(), non_blocking=True)
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record()  # type: ignore[no-untyped-call]
    return DelayedLoss(copy, event)


class DelayedBookings:
    """Losses to be booked, in order, once they have arrived."""

    def __init__(self) -> None:
        self._waiting: Deque[Tuple[DelayedLoss, Callable[[Any], Any]]] = deque()

    def add(self, loss: DelayedLoss, book: Callable[[Any], Any]) -> None:
        self._waiting.append((loss, book))

    def book_arrived(self) -> None:
        """Never waits."""
        while self._waiting and self._waiting[0][0].has_arrived():
            self._book_first()

    def book_all(self) -> None:
        while self._waiting:
            self._book_first()

    def _book_first(self) -> None:
        loss, book = self._waiting.popleft()
        book(loss.get())
