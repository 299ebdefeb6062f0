"""Who iterates over a sampler, and how many batches it has handed out.

Nothing is patched. A sampler that is asked for an iterator looks at the frames above it: torch's
own BatchSampler tells the batch size, and the DataLoader's iterator, if it has workers, counts the
batches that it has handed out, those that failed to load as well. Both are only read. Without
workers a batch is handed out as soon as it is drawn, so drawn batches are counted.
"""

from __future__ import annotations

import sys
import threading
import weakref
from types import CodeType, FrameType
from typing import Any, Dict, Optional

from torch.utils.data import BatchSampler
from torch.utils.data.dataloader import _BaseDataLoaderIter

# torch's names of what its iterators count.
_RECEIVED = "_rcvd_idx"  # batches taken from the workers, in order
_YIELDED = "_num_yielded"  # batches handed out without an error

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
    """Counts the batches drawn from the sampler itself, where no DataLoader is seen.

    Attributes:
        counts: The number of delivered batches is counts[key].
        key: See counts.
        counts_draws: True if who draws the batches is to count them.
        closed: True once whoever draws them has ended.
    """

    def __init__(self) -> None:
        self.counts: Dict[str, Any] = {_YIELDED: 0}
        self.key = _YIELDED
        self.counts_draws = True
        self.closed = False

    def is_in_use(self) -> bool:
        """False once the loop over the batches has ended, by exhaustion or by a break."""
        return not self.closed

    def counts_for(self, iterator: Any) -> bool:
        """True if it counts the batches of this DataLoader iterator."""
        return False

    def refusal(self) -> Optional[str]:
        """Why the count does not tell which batch was delivered, or None."""
        return None


class LoaderCount(DrawCount):
    """The batches that one DataLoader iterator has handed out.

    Does not keep the iterator alive; when it goes, its last count stays.
    """

    def __init__(self, iterator: Any, is_direct: bool) -> None:
        super().__init__()
        has_workers = getattr(iterator, "_num_workers", 0) > 0
        if has_workers or not is_direct:
            self.counts = vars(iterator)
            self.key = _RECEIVED if has_workers else _YIELDED
            self.counts_draws = False
        self._in_order = getattr(iterator, "_in_order", True)
        self._iterator = weakref.ref(iterator, self._on_release)

    def _on_release(self, _: Any) -> None:
        self.counts = {self.key: self.counts.get(self.key, 0)}

    def is_in_use(self) -> bool:
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


def count_batches(caller: "Caller") -> DrawCount:
    """Counts the batches that are delivered to whoever iterates."""
    if caller.iterator is None:
        return DrawCount()
    return LoaderCount(caller.iterator, caller.is_direct)


class Consumer:
    """The function that iterates over the loader: the user's loop, or a wrapper."""

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
