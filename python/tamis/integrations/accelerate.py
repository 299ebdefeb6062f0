"""Accelerate on a pruned data set.

    accelerator = Accelerator(gradient_accumulation_steps=4)
    handler = tamis.prune(train_set, "bls-infobatch", epochs=E)  # after the Accelerator
    loader = prepare_loader(accelerator, handler, batch_size=128)
    model, optimizer = accelerator.prepare(model, optimizer)
    ...
    loss = handler.update(loss, batch)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .._extras import needed_by

with needed_by("tamis.integrations.accelerate", "accelerate", "accelerate"):
    from accelerate.state import GradientState
    from accelerate.utils import send_to_device

from .._batches import Batch
from .._ranks import num_ranks

if TYPE_CHECKING:
    from accelerate import Accelerator

    from ..handler import Handler


def prepare_loader(
    accelerator: Accelerator, handler: Handler, batch_size: int, **options: Any
) -> PreparedLoader:
    """What accelerator.prepare() makes of a loader, but without look-ahead and second sharding.

    accelerator.save_state() and load_state() take the handler's state along.

    Args:
        accelerator: Made before the handler, so that the handler knows its ranks.
        handler: Of the run.
        batch_size: Samples per batch, of each rank.
        **options: num_workers and the others of handler.loader().
    """
    if accelerator.num_processes not in (1, num_ranks()) or handler.num_ranks != num_ranks():
        raise RuntimeError(
            f"prepare_loader: the Accelerator has {accelerator.num_processes} processes, the "
            f"handler knows {handler.num_ranks}; make the handler after the Accelerator"
        )
    accelerator.register_for_checkpointing(handler)
    return PreparedLoader(handler, handler.loader(batch_size, **options), accelerator.device)


class PreparedLoader:
    """Batches on the device that know their ids; accumulation windows end with the epoch."""

    def __init__(self, handler: Handler, loader: Any, device: Any) -> None:
        self.loader = loader
        self.end_of_dataloader = False  # read by GradientState
        self.remainder = -1
        self._handler, self._device = handler, device
        self._gradient_state = GradientState()

    def __len__(self) -> int:
        """Batches of the whole current epoch."""
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """See Handler.set_epoch; needed only to repeat or skip epochs."""
        self._handler.set_epoch(epoch)

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self.loader)
        count = self._handler.steps_left
        self.end_of_dataloader = False
        self._gradient_state._add_dataloader(self)
        try:
            for number, batch in enumerate(batches, 1):
                self.end_of_dataloader = number == count
                moved = send_to_device(batch, self._device)
                if isinstance(moved, Batch):
                    moved.ids = batch.ids
                yield moved
        finally:
            self._gradient_state._remove_dataloader(self)
