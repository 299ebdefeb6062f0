"""Keras 3 on the torch backend, on a pruned data set.

    class Net(PrunedModel): ...
    data = PrunedData(x, y, "bls-infobatch", epochs=E, batch_size=128)
    model.fit(data, epochs=E, initial_epoch=data.next_epoch, shuffle=False, callbacks=[data.callback])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._extras import needed_by

with needed_by("tamis.integrations.keras", "keras", "keras"):
    import keras

from .._core import Pruner, methods
from .._ranks import num_ranks
from ._plan import PlannedRun

_HALF = 1 << 20  # ids travel as two numbers that float32 holds exactly


class PrunedData(keras.utils.PyDataset):  # type: ignore[misc]
    """Batches (x, y, sample_weight) of each epoch's samples; sample_weight also tells their ids.

    The weights are exact: one for each sample.

    Attributes:
        pruner: Its serialize() and deserialize() are the state of the run, exact after any batch.
        callback: To be passed to fit(); starts the epochs.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        method: str,
        *,
        epochs: int,
        batch_size: int,
        drop_last: bool = False,
        **options: Any,
    ) -> None:
        """x, y: indexed by arrays of indices. options: of tamis.Pruner."""
        if keras.backend.backend() != "torch":
            raise RuntimeError(
                "PrunedData: losses are read while the model is trained, which Keras allows on the "
                f'torch backend only; set KERAS_BACKEND="torch", got {keras.backend.backend()!r}'
            )
        if num_ranks() > 1:
            raise RuntimeError(f"PrunedData: for one process, but there are {num_ranks()} ranks")
        if method not in methods():
            raise ValueError(f"PrunedData: method must be one of {', '.join(methods())}")
        if "workers" in options:
            raise ValueError(
                "PrunedData: leave out workers: Keras' workers read the first batches of an epoch "
                "before it is planned"
            )
        super().__init__()
        chosen = methods()[method]
        self.pruner = Pruner(
            len(x), epochs, policy=chosen["policy"], score=chosen["score"], **options
        )
        self._run = PlannedRun(self.pruner, batch_size, drop_last)
        self._x, self._y = x, y
        # Until an epoch starts Keras only looks for shapes.
        self._order: Any = np.arange(len(x), dtype=np.uint32)
        self._weights: Any = None
        self.callback = _StartEpochs(self)

    @property
    def next_epoch(self) -> int:
        """initial_epoch of fit()."""
        return self._run.next_epoch

    def start(self, epoch: int) -> None:
        self._run.start(epoch)
        self._order, self._weights = self._run.rest(), self._run.plan.weights

    def __len__(self) -> int:
        count, size = len(self._order), self._run.batch_size
        return count // size if self._run.drop_last else -(-count // size)

    def __getitem__(self, number: int) -> tuple[Any, Any, Any]:
        size = self._run.batch_size
        ids = self._order[number * size : (number + 1) * size].astype(np.int64)
        if self._weights is None:
            return self._x[ids], self._y[ids], np.ones(len(ids), dtype=np.float32)
        columns = [self._weights[ids], ids // _HALF, ids % _HALF]
        return self._x[ids], self._y[ids], np.stack(columns, axis=1).astype(np.float32)

    def observe(self, columns: Any, loss: float) -> None:
        """The mean loss of the batch that these columns came with."""
        high, low = (columns[:, k].astype(np.int64) for k in (1, 2))
        self._run.observe(high * _HALF + low, loss)


class PrunedModel(keras.Model):  # type: ignore[misc]
    """A model, functional or subclassed, whose training losses reach the data."""

    pruned_data: PrunedData | None = None

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None,
        training: bool = True,
    ) -> Any:  # fmt: skip
        columns, weights = _split(sample_weight)
        loss = super().compute_loss(x, y, y_pred, weights, training)
        if columns is None or not training or self.pruned_data is None:
            return loss
        plain = super().compute_loss(x, y, y_pred, None, training)
        self.pruned_data.observe(columns.detach().cpu().numpy(), float(plain.detach()))
        return loss

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        return super().compute_metrics(x, y, y_pred, _split(sample_weight)[1])


def _split(sample_weight: Any) -> tuple[Any, Any]:
    """The columns of PrunedData and the weights in them; other weights are left as they are."""
    shape: Any = getattr(sample_weight, "shape", ())
    if len(shape) == 2 and shape[1] == 3:
        return sample_weight, sample_weight[:, 0]
    return None, sample_weight


class _StartEpochs(keras.callbacks.Callback):  # type: ignore[misc]
    def __init__(self, data: PrunedData) -> None:
        super().__init__()
        self._data = data

    def on_train_begin(self, logs: Any = None) -> None:
        if not isinstance(self.model, PrunedModel):
            raise TypeError(
                f"PrunedData: the model must be a PrunedModel, got {type(self.model).__name__}"
            )
        self.model.pruned_data = self._data

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._data.start(epoch)
