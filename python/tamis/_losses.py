"""Losses of any kind as what the core takes: a float, or one float32 per sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


def check(loss: Any) -> None:
    """Raises TypeError or ValueError unless a loss is a mean, or one loss per sample."""
    if isinstance(loss, Tensor):
        is_real = loss.is_floating_point()
    elif isinstance(loss, (np.ndarray, np.generic)):
        is_real = loss.dtype.kind == "f"
    elif isinstance(loss, (float, int)) and not isinstance(loss, bool):
        return
    else:
        raise TypeError(f"update: loss must be a tensor, an array or a number, got {type(loss)}")
    if not is_real:
        raise TypeError(f"update: loss must be floating point, got {loss.dtype}")
    if loss.ndim > 1:
        raise ValueError(
            "update: loss must be the mean of the batch or one loss per sample, got shape "
            f"{tuple(loss.shape)}"
        )


def is_plain_memory(loss: Tensor) -> bool:
    """True for per-sample losses that the core can read where they are."""
    return (
        loss.dtype is torch.float32
        and loss.ndim == 1
        and loss.is_cpu
        and loss.is_contiguous()
        and len(loss) > 0
    )


def to_host(loss: Any) -> Any:
    """A float, or a float32 array; waits for the device that computes the loss."""
    if not isinstance(loss, Tensor):
        return float(loss) if np.ndim(loss) == 0 else np.asarray(loss, dtype=np.float32)
    if loss.ndim == 0:
        return float(loss.item())
    detached = loss.detach()
    if loss.dtype is not torch.float32 or not loss.is_cpu:
        detached = detached.to("cpu", torch.float32)
    return detached.numpy()


def to_ids(ids: Any) -> Any:
    """Ids of any kind as an array in host memory."""
    return ids.detach().cpu().numpy() if isinstance(ids, Tensor) else np.asarray(ids)


def apply_weights(loss: Any, weights: Any) -> Any:
    """The mean loss times the mean weight (the loss itself if that is 1), or the weighted mean."""
    if isinstance(weights, float):
        return loss if weights == 1.0 else loss * weights
    if not isinstance(loss, Tensor):
        return (loss * weights.astype(loss.dtype)).mean()
    if loss.dtype is torch.float32 and loss.is_cpu:
        # One operation instead of two; half precision would round its shares of the mean.
        weights *= 1.0 / len(weights)
        return torch.dot(loss, torch.from_numpy(weights))
    factors = torch.from_numpy(weights).to(loss.device, loss.dtype, non_blocking=True)
    return (loss * factors).mean()


class DelayedLoss:
    """A loss on its way from the device to the host."""

    def __init__(self, loss: Any) -> None:
        self._event: Any = None
        if not isinstance(loss, Tensor):
            self._copy = to_host(loss)
        elif loss.device.type == "cuda":
            self._copy = torch.empty(loss.shape, dtype=loss.dtype, pin_memory=True)
            self._copy.copy_(loss.detach(), non_blocking=True)
            self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._event.record()
        else:
            self._copy = loss.detach().clone()

    def has_arrived(self) -> bool:
        return self._event is None or bool(self._event.query())

    def get(self) -> Any:
        """The loss as to_host() gives it; waits until it has arrived."""
        if not self.has_arrived():
            self._event.synchronize()
        return to_host(self._copy)
