"""timm's training script on a pruned data set.

    loader_train = create_loader(dataset_train, ...)
    loader_train = PrunedLoader(loader_train, "bls-infobatch", epochs=num_epochs)
    ...
    loss = loader_train.update(loss)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .._extras import needed_by

with needed_by("tamis.integrations.timm", "timm", "timm", "torch"):
    from timm.data.loader import MultiEpochsDataLoader, PrefetchLoader
    from torch.utils.data import BatchSampler

from .._methods import prune

if TYPE_CHECKING:
    from ..handler import Handler


class PrunedLoader:
    """A loader of timm.data.create_loader() over the samples of each epoch.

    Everything else about it stays, mixup and prefetching included.

    Attributes:
        handler: Of the run; its state_dict() belongs into the checkpoint.
        ids: The samples of the batch that was yielded last.
    """

    def __init__(self, loader: Any, method: str, *, epochs: int, options: Any = None) -> None:
        """Options: tamis.Options."""
        is_prefetched = isinstance(loader, PrefetchLoader)
        inner = loader.loader if is_prefetched else loader
        _check(inner)
        self.handler: Handler = prune(inner.dataset, method, epochs=epochs, options=options)
        workers: dict[str, Any] = {}
        if inner.num_workers > 0:
            workers = {
                "persistent_workers": inner.persistent_workers,
                "prefetch_factor": inner.prefetch_factor,
            }
        pruned = self.handler.loader(
            inner.batch_size,
            drop_last=inner.drop_last,
            collate_fn=inner.collate_fn,
            num_workers=inner.num_workers,
            pin_memory=inner.pin_memory,
            worker_init_fn=inner.worker_init_fn,
            **workers,
        )
        self.ids: Any = None
        self._waiting: deque[Any] = deque()
        tap = _Tap(pruned, inner.collate_fn, self._waiting)
        if is_prefetched:
            loader.loader = tap
        self._loader: Any = loader if is_prefetched else tap

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        self._waiting.clear()
        for inputs, target in self._loader:
            # PrefetchLoader hands out every batch once, in the order in which it took them.
            self.ids = self._waiting.popleft()
            yield inputs, target

    def __len__(self) -> int:
        """Batches of the current epoch."""
        return len(self._loader)

    def update(self, loss: Any) -> Any:
        """Takes the loss of the batch that was yielded last; returns the one to go backward from."""
        if self.ids is None:
            raise RuntimeError("PrunedLoader: no batch has been yielded yet")
        return self.handler.update(loss, ids=self.ids)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._loader, name)

    @property
    def mixup_enabled(self) -> bool:
        return bool(getattr(self._loader, "mixup_enabled", False))

    @mixup_enabled.setter
    def mixup_enabled(self, value: bool) -> None:
        self._loader.mixup_enabled = value


class _Tap:
    """Our loader as timm knows it; notes the ids of the batches as they are taken."""

    def __init__(self, loader: Any, collate: Any, waiting: deque[Any]) -> None:
        self.loader, self.collate_fn, self._waiting = loader, collate, waiting

    def __iter__(self) -> Iterator[Any]:
        for batch in self.loader:
            self._waiting.append(batch.ids)
            yield batch

    def __len__(self) -> int:
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.loader, name)


def _check(loader: Any) -> None:
    if isinstance(loader, MultiEpochsDataLoader):
        raise TypeError(
            "PrunedLoader: MultiEpochsDataLoader repeats one order for ever; call create_loader "
            "with use_multi_epochs_loader=False"
        )
    if type(loader.batch_sampler) is not BatchSampler:
        raise TypeError(
            f"PrunedLoader: {type(loader.batch_sampler).__name__} makes batches of its own; leave "
            "out input_size_choices"
        )
    if type(loader.sampler).__name__ == "RepeatAugSampler":
        raise TypeError("PrunedLoader: repeated augmentation repeats samples; num_aug_repeats=0")
