"""Who iterates over a sampler, and how many batches it has handed out.

Nothing is patched. A sampler that is asked for an iterator looks at the frames above it: torch's own
BatchSampler tells the batch size, torch's own DataLoader iterator counts the batches that it has
handed out, in all versions from 1.2 on. Both are only read.
"""

from __future__ import annotations

import sys
import threading
import weakref
from types import CodeType, FrameType
from typing import Any, Dict, Optional

from torch.utils.data import BatchSampler
from torch.utils.data.dataloader import _BaseDataLoaderIter

DELIVERED = "_num_yielded"  # torch's name of its count of batches handed out

_BATCH_SAMPLER_CODE = BatchSampler.__iter__.__code__
_LOADER_MODULES = ("torch.utils.data", "torchdata")
_MAX_FRAMES = 32  # between a sampler and the loader's iterator


def _num_references(reference: "weakref.ref[Any]") -> int:
    return sys.getrefcount(reference())


class _Probe:
    pass


_probe = _Probe()
_ONE_REFERENCE = _num_references(weakref.ref(_probe))


class DrawCount:
    """Counts the batches drawn from the sampler itself, where no DataLoader is seen."""

    def __init__(self) -> None:
        self.counts: Dict[str, Any] = {DELIVERED: 0}
        self.closed = False

    def is_in_use(self) -> bool:
        return not self.closed

    def counts_for(self, iterator: Any) -> bool:
        return False

    def refusal(self) -> Optional[str]:
        return None


class LoaderCount:
    """The batches that one DataLoader iterator has handed out.

    Does not keep the iterator alive; when it goes, its last count stays.
    """

    def __init__(self, iterator: Any) -> None:
        self.counts: Dict[str, Any] = vars(iterator)
        self._in_order = getattr(iterator, "_in_order", True)
        self._iterator = weakref.ref(iterator, self._on_release)

    def _on_release(self, _: Any) -> None:
        self.counts = {DELIVERED: self.counts.get(DELIVERED, 0)}

    def is_in_use(self) -> bool:
        """False once the loop over the loader has ended, by exhaustion or by a break."""
        iterator = self._iterator()
        if iterator is None:
            return False
        persistent = getattr(iterator, "_persistent_workers", False)
        del iterator
        # A loader with persistent workers keeps its iterator; a running loop holds it as well.
        return not persistent or _num_references(self._iterator) > _ONE_REFERENCE

    def counts_for(self, iterator: Any) -> bool:
        return iterator is not None and self._iterator() is iterator

    def refusal(self) -> Optional[str]:
        if not self._in_order:
            return "the DataLoader was made with in_order=False and hands out batches in any order"
        return None


class Consumer:
    """The function that iterates over the loader: the user's loop, or a wrapper around the loader."""

    def __init__(self, frame: Optional[FrameType]) -> None:
        self.code: Optional[CodeType] = frame.f_code if frame is not None else None
        self._frame_id = id(frame)
        self._thread = threading.get_ident()

    def is_this_thread(self) -> bool:
        return threading.get_ident() == self._thread

    def is_calling(self, frame: Optional[FrameType]) -> bool:
        """True if it is `frame` or one of its callers."""
        while frame is not None:
            if id(frame) == self._frame_id and frame.f_code is self.code:
                return True
            frame = frame.f_back
        return False


class Caller:
    """What the frames above a sampler's __iter__ tell.

    Attributes:
        batch_size: Samples per batch, or None if nothing tells.
        drop_last: Whether an incomplete last batch is left out.
        iterator: The DataLoader's iterator, or None if no DataLoader iterates.
        is_direct: False if something that may regroup or leave out batches stands between the batch
            sampler and the loader.
        consumer: Who iterates over the loader.
    """

    def __init__(self, frame: Optional[FrameType]) -> None:
        self.batch_size: Optional[int] = None
        self.drop_last = False
        if frame is not None and frame.f_code is _BATCH_SAMPLER_CODE:
            batch_sampler = frame.f_locals["self"]
            self.batch_size = batch_sampler.batch_size
            self.drop_last = batch_sampler.drop_last
            frame = frame.f_back
        elif _loader_iterator(frame) is not None:
            self.batch_size = 1  # DataLoader(batch_size=None)
        loader_frame = _find_loader(frame)
        self.iterator: Any = _loader_iterator(loader_frame)
        self.is_direct = loader_frame is None or loader_frame is frame
        frame = loader_frame or frame
        while _is_loader_code(frame):
            frame = frame.f_back if frame is not None else None
        self.consumer = Consumer(frame)


def _is_loader_code(frame: Optional[FrameType]) -> bool:
    return frame is not None and str(frame.f_globals.get("__name__")).startswith(_LOADER_MODULES)


def _loader_iterator(frame: Optional[FrameType]) -> Any:
    """The DataLoader iterator whose method this frame runs, or None."""
    if frame is None or not _is_loader_code(frame):
        return None
    owner = frame.f_locals.get("self")
    return owner if isinstance(owner, _BaseDataLoaderIter) else None


def _find_loader(frame: Optional[FrameType]) -> Optional[FrameType]:
    """The nearest frame above that runs a DataLoader iterator."""
    for _ in range(_MAX_FRAMES):
        if frame is None or _loader_iterator(frame) is not None:
            return frame
        frame = frame.f_back
    return None
