"""check: whether and how the losses of a loop over a loader find their batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ._batches import Collate
from ._pass import Way
from ._run import Run
from .loader import Loader, Sampler

# Under which names loaders and samplers hold what they are made of.
_PARTS = ("batch_sampler", "sampler", "loader", "base_dataloader", "dataloader", "base_loader")


@dataclass(frozen=True)
class Check:
    """What check() found; true if the losses of the loop can be attributed.

    Attributes:
        way: "by delivery", "by ids", "in order", ...; None if there is no way.
        reason: In a sentence, with the cure where it is needed.
    """

    way: str | None
    reason: str

    def __bool__(self) -> bool:
        return self.way is not None

    def __str__(self) -> str:
        return f"{self.way or 'not attributable'}: {self.reason}"


def check(run: Run, loader: Any) -> Check:
    """Looks at what a loader is made of; draws nothing."""
    name = type(loader).__name__
    sampler = next((part for part in _parts_of(loader) if isinstance(part, Sampler)), None)
    if sampler is None:
        return Check(
            None,
            f"this {name} does not draw from the handler's sampler, so it gives every sample in "
            "an order of its own; use handler.loader(B)",
        )
    if sampler.run is not run:
        return Check(None, f"this {name} draws from another handler; use that one's update()")
    has_ids = any(
        isinstance(getattr(part, "collate_fn", None), Collate) for part in _parts_of(loader)
    )
    if type(loader) is Loader and sampler.source.way is Way.DELIVERY and run.num_shares == 1:
        return Check(
            Way.DELIVERY.value,
            "update(loss) in a plain loop is for the batch handed out last; update(loss, batch) "
            "is right in every loop",
        )
    if sampler.source.way is Way.LABELS and has_ids:
        return Check(Way.LABELS.value, "update(loss), for a loss computed from the labels")
    if has_ids:
        return Check(
            Way.IDS.value, f"the ids travel with the batches of this {name}: update(loss, batch)"
        )
    if sampler.source.way is not Way.ORDER:
        return Check(
            None,
            f"the batches of this {name} do not know their ids, because its collate_fn is not that "
            "of handler.loader(); make it with handler.loader_options(B, collate_fn=...)",
        )
    if run.num_shares > 1:
        return Check(
            None,
            'with sharding="external" the batches must bring their ids; make the loader with '
            "handler.loader(B) or handler.loader_options(B)",
        )
    if sampler.source.batch_size is None:
        return Check(
            None,
            "the batch size is not known, so updates cannot be counted; use handler.loader(B), or "
            "make the handler with options=tamis.Options(batch_size=B)",
        )
    return Check(
        Way.ORDER.value,
        f"the k-th update(loss) is for the k-th batch of {sampler.source.batch_size} samples, if "
        "there are as many updates as batches",
    )


def _parts_of(loader: Any, depth: int = 0) -> Iterator[Any]:
    """The loader, and what it is made of, however often it was wrapped."""
    yield loader
    if depth == 8:
        return
    for name in _PARTS:
        part = getattr(loader, name, None)
        if part is not None and part is not loader:
            yield from _parts_of(part, depth + 1)
