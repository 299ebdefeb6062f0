"""Source and Pass: where batches come from, and one walk over the samples of an epoch."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from threading import get_ident

from ._core import EpochPlan


class Way(enum.Enum):
    """How an update finds its batch. Ids are right in every pass."""

    DELIVERY = "by delivery"
    ORDER = "in order"
    IDS = "by ids"
    LABELS = "by ids that ride on the labels"


@dataclass(frozen=True)
class Source:
    """What a sampler knows of the loader that it is for.

    Attributes:
        batch_size: None if it is not known; updates without ids are then refused.
        drop_last: Whether the loader leaves out an incomplete last batch.
        way: How updates find their batch if nobody rebuilds the loader.
        is_delayed: Losses are observed at a later update, once they have arrived from the device.
    """

    batch_size: int | None
    drop_last: bool = False
    way: Way = Way.ORDER
    is_delayed: bool = False


@dataclass(eq=False)
class Pass:
    """One walk over the samples of an epoch.

    Attributes:
        start, end: The samples of the plan that it draws.
        is_walking: The loop that draws exists and has not come to its end.
        is_exhausted: It has come to its end.
        is_doubtful: Another loop over the handler is open, so a loss without ids may be of either.
        has_refused: A loss without ids was refused.
        num_ids: Ids of this epoch that came with losses.
        delivered: By delivery, up to which sample batches have been handed out; None once that is
            not known any more.
    """

    source: Source
    way: Way
    plan: EpochPlan
    start: int
    end: int
    is_walking: bool = True
    is_exhausted: bool = False
    is_doubtful: bool = False
    has_refused: bool = False
    num_ids: int = 0
    delivered: int | None = None

    @property
    def is_counted(self) -> bool:
        """Updates without ids are counted."""
        return self.way is Way.ORDER and self.source.batch_size is not None


def check_plain(current: Pass | None, drawer: int) -> None:
    """Raises RuntimeError, with the cure, if a loss without ids cannot have a batch.

    `drawer` is the thread that draws the batches of the pass.
    """
    if current is not None and current.source.batch_size is None:
        raise RuntimeError(
            "update: the batch size of the loader is not known, so updates cannot be counted. "
            "Use handler.loader(B), or batch_sampler=handler.batch_sampler(B), or make the "
            "handler with options=tamis.Options(batch_size=B)"
        )
    if current is None or (current.is_exhausted and not current.is_counted):
        raise RuntimeError(
            "update: no loop over this handler's samples is running, so this loss has no "
            "batch. Iterate over handler.loader(B), or call update(loss, batch) with its batch"
        )
    if current.way is Way.LABELS:
        raise RuntimeError(
            "update: the ids ride on the labels, but this loss carries none: it was computed "
            "without them, by compiled code, or went through NumPy or .item(). Compute it from "
            "the labels as the loader gave them, or call update(loss, batch)"
        )
    if current.way is Way.IDS:
        raise RuntimeError(
            "update: a framework has made a loader of its own of handler.loader(), cuts each "
            "epoch by itself, or takes batches out of order, so the batch of this loss is not "
            "known. The ids travel with the batch: call update(loss, batch)"
        )
    if current.is_doubtful and not current.is_counted:
        raise RuntimeError(
            "update: another loop over this handler is open, so it is not certain which of "
            "them this loss comes from. Call handler.set_epoch(...) before each loop, or "
            "update(loss, batch)"
        )
    if not current.is_counted and get_ident() != drawer:
        raise RuntimeError(
            "update: another thread iterates over the loader, so the batch handed out last "
            "need not be the one of this loss; call update(loss, batch)"
        )
