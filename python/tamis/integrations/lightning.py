"""Lightning on a pruned data set.

    class Data(PrunedDataModule):
        def setup(self, stage):
            self.prune(train_set(), "bls-infobatch", epochs=E, batch_size=128, num_workers=4)

    class Module(LightningModule):
        def training_step(self, batch, batch_idx):
            ...
            return self.trainer.datamodule.update(loss, batch)

    Trainer(max_epochs=E, use_distributed_sampler=False, reload_dataloaders_every_n_epochs=1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._extras import needed_by

try:
    from lightning.pytorch import LightningDataModule
except ModuleNotFoundError as error:
    if error.name != "lightning":
        raise
    with needed_by("tamis.integrations.lightning", "lightning", "pytorch_lightning"):
        from pytorch_lightning import LightningDataModule

from .._batches import Batch
from .._methods import prune
from ..loader import Sampler

if TYPE_CHECKING:
    from ..handler import Handler


class PrunedDataModule(LightningDataModule):  # type: ignore[misc]
    """Train loader and state of a pruned run. Call prune() in setup().

    The epochs are the trainer's; checkpoints hold the state, also in the middle of an epoch.

    Attributes:
        handler: Of the run; None before prune().
    """

    handler: Handler | None = None
    _resumed_after: int | None = None  # the epoch after one that a checkpoint has completed

    def prune(
        self,
        dataset: Any,
        method: str,
        *,
        epochs: int,
        batch_size: int,
        options: Any = None,
        **loader_options: Any,
    ) -> Handler:
        """Prunes the training set. To be called in setup(), where the process group exists.

        Args:
            dataset: With len() and [i].
            method: See tamis.prune.
            epochs: Length of the run: max_epochs of the trainer.
            batch_size: Samples per batch, of each rank.
            options: tamis.Options.
            **loader_options: num_workers and the others of handler.loader().
        """
        _check(self.trainer, epochs)
        if self.handler is None:
            self.handler = prune(dataset, method, epochs=epochs, options=options)
            self._loader = self.handler.loader(batch_size, **loader_options)
        return self.handler

    def update(self, loss: Any, batch: Any) -> Any:
        """Takes the loss of a batch; returns the one for training_step to return."""
        if not self.trainer.training:
            return loss
        handler = self._pruned()
        if not isinstance(self.trainer.train_dataloader.sampler, Sampler):
            raise RuntimeError(
                "PrunedDataModule: the trainer has replaced the sampler; make it with "
                "use_distributed_sampler=False and overfit_batches=0"
            )
        return handler.update(loss, batch)

    # What Lightning calls.

    def train_dataloader(self) -> Any:
        """Of the coming epoch, so that its length is known; also right after a checkpoint."""
        handler = self._pruned()
        epoch = self.trainer.current_epoch
        if epoch < handler.epochs:
            handler.set_epoch(epoch)
            # A checkpoint after the last batch of an epoch: Lightning goes on with the next one,
            # but compares the batches done with its length, not with that of their own epoch.
            loop = self.trainer.fit_loop.epoch_loop
            if loop.restarted_on_train_batch_end and epoch == self._resumed_after:
                loop.batch_progress.current.completed = len(self._loader)
        return self._loader

    def transfer_batch_to_device(self, batch: Any, device: Any, dataloader_idx: int) -> Any:
        """Keeps the ids of a batch that is rebuilt element by element."""
        moved = super().transfer_batch_to_device(batch, device, dataloader_idx)
        if isinstance(batch, Batch) and isinstance(moved, Batch):
            moved.ids = batch.ids
        return moved

    def state_dict(self) -> dict[str, Any]:
        return dict(self._pruned().state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        handler = self._pruned()
        handler.load_state_dict(state_dict)
        if handler.next_epoch > handler.epoch:
            self._resumed_after = handler.next_epoch

    def _pruned(self) -> Handler:
        if self.handler is None:
            raise RuntimeError("PrunedDataModule: call self.prune(...) in setup()")
        return self.handler


def _check(trainer: Any, epochs: int) -> None:
    if trainer is None:
        raise RuntimeError("PrunedDataModule: call prune() in setup(), where the trainer is known")
    if trainer.max_epochs != epochs:
        raise ValueError(
            f"PrunedDataModule: epochs must be the trainer's max_epochs ({trainer.max_epochs}), "
            f"got {epochs}"
        )
    if trainer.reload_dataloaders_every_n_epochs != 1:
        raise ValueError(
            "PrunedDataModule: Trainer(reload_dataloaders_every_n_epochs=1) is needed, because "
            "every epoch has its own length; got "
            f"{trainer.reload_dataloaders_every_n_epochs}"
        )
