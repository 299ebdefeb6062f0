"""torchdata's StatefulDataLoader on a pruned data set.

    loader = stateful_loader(handler, batch_size=128, num_workers=4)
    ...
    loss = handler.update(loss, batch)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._extras import needed_by

with needed_by("tamis.integrations.torchdata", "torchdata", "torchdata", "torch"):
    from torchdata.stateful_dataloader import StatefulDataLoader

if TYPE_CHECKING:
    from ..handler import Handler


class PrunedStatefulDataLoader(StatefulDataLoader):  # type: ignore[misc]
    """Its state is the handler's, which stands after the last batch that had an update.

    That of StatefulDataLoader counts what was handed out, in a plan that it does not know.
    """

    handler: Handler

    def state_dict(self) -> dict[str, Any]:
        return dict(self.handler.state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The next iteration gives the rest of the epoch."""
        self.handler.load_state_dict(state_dict)


def stateful_loader(
    handler: Handler,
    batch_size: int,
    *,
    drop_last: bool = False,
    collate_fn: Any = None,
    **options: Any,
) -> PrunedStatefulDataLoader:
    """A StatefulDataLoader over the samples of each epoch, whose batches know their ids.

    Args:
        handler: Of the run.
        batch_size: Samples per batch, of each rank.
        drop_last: Leaves out an incomplete last batch.
        collate_fn: As of DataLoader.
        **options: num_workers and the others of StatefulDataLoader.
    """
    parts = handler.loader_options(batch_size, drop_last=drop_last, collate_fn=collate_fn)
    loader = PrunedStatefulDataLoader(**parts, **options)
    loader.handler = handler
    return loader
