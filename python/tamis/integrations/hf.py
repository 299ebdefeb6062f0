"""Hugging Face Trainer and TRL's SFTTrainer on a pruned data set.

    class PrunedTrainer(Pruned, Trainer): ...
    trainer = PrunedTrainer(model, args, train_dataset=train_set)
    trainer.prune("bls-infobatch")
    trainer.train()
"""

from __future__ import annotations

import os
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any

from .._extras import needed_by

with needed_by("tamis.integrations.hf", "hf", "torch", "transformers"):
    import torch
    from transformers import Trainer, TrainerCallback

from .._batches import IDS_KEY
from .._methods import prune
from ..lr import lr_by_progress
from ._hf_items import Items

if TYPE_CHECKING:
    from ..handler import Handler

STATE_NAME = "tamis.pt"


class Pruned:
    """Mixin, to be named before Trainer or a subclass of it. Call prune() before train().

    The order, the length of each epoch and the weights are the handler's; checkpoints hold its
    state. Every micro-batch is scored with its own mean loss, whatever the accumulation window or
    num_items_in_batch. The learning rate follows the progress of the run.

    Attributes:
        handler: Of the run; None before prune().
    """

    handler: Handler | None = None
    _ids: Any = None  # of the micro-batch that is being trained on
    _items: Items | None = None

    def prune(self, method: str, **options: Any) -> Handler:
        """Prunes train_dataset with the method; see tamis.prune for the options."""
        trainer: Any = self
        args = trainer.args
        _check(trainer)
        dataset = trainer.train_dataset
        self._collate = trainer.data_collator
        if hasattr(dataset, "column_names"):  # datasets.Dataset
            dataset = trainer._remove_unused_columns(dataset, description="training")
        else:
            self._collate = trainer._get_collator_with_removed_columns(
                trainer.data_collator, description="training"
            )
        self.handler = prune(dataset, method, epochs=int(args.num_train_epochs), **options)
        trainer.add_callback(_Epochs(self.handler))
        return self.handler

    # What the loop of Trainer draws, and for how long.

    def get_train_dataloader(self) -> Any:
        trainer: Any = self
        args = trainer.args
        options: dict[str, Any] = {}
        if args.dataloader_num_workers > 0:
            options = {
                "persistent_workers": args.dataloader_persistent_workers,
                "prefetch_factor": args.dataloader_prefetch_factor,
            }
        # Not prepared by Accelerate, which would shard it again; Trainer moves the batches.
        return self._handler().loader(
            trainer._train_batch_size,
            drop_last=args.dataloader_drop_last,
            collate_fn=self._collate,
            num_workers=args.dataloader_num_workers,
            pin_memory=args.dataloader_pin_memory,
            **options,
        )

    def set_initial_training_values(self, args: Any, dataloader: Any) -> Any:
        """Plans with the length of the whole data set: an upper bound for every epoch."""
        whole = _Whole(self._handler().data, self._train_batch_size, args)  # type: ignore[attr-defined]
        return super().set_initial_training_values(args, whole)  # type: ignore[misc]

    def _init_training_state(
        self, max_steps: int, num_steps: int, num_epochs: int, checkpoint: str | None, trial: Any
    ) -> tuple[int, int]:
        super()._init_training_state(max_steps, num_steps, num_epochs, checkpoint, trial)  # type: ignore[misc]
        if checkpoint is None:
            return 0, 0
        path = os.path.join(checkpoint, STATE_NAME)
        if not os.path.exists(path):
            raise FileNotFoundError(
                f"{checkpoint} has no {STATE_NAME}: it was not saved by a pruned trainer, or with "
                "save_only_model=True"
            )
        self._handler().load_state_dict(torch.load(path, weights_only=True))
        return self._handler().next_epoch, 0  # the handler skips what was trained on

    def _run_epoch(self, *, epoch: int, train_dataloader: Any, **options: Any) -> None:
        handler = self._handler()
        handler.set_epoch(epoch)
        accumulation = self.args.gradient_accumulation_steps  # type: ignore[attr-defined]
        steps = handler.steps_left
        options.update(
            steps_in_epoch=steps,
            num_update_steps_per_epoch=-(-steps // accumulation),
            steps_trained_in_current_epoch=0,
        )
        super()._run_epoch(epoch=epoch, train_dataloader=train_dataloader, **options)  # type: ignore[misc]

    # The loss.

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Any:
        self._ids = inputs.pop(IDS_KEY, None)
        if self._ids is None:
            raise RuntimeError(
                f"Pruned: the batch has no {IDS_KEY}; the data collator must return a dict, and "
                "get_train_dataloader must be left to this mixin"
            )
        loss = super().training_step(model, inputs, num_items_in_batch)  # type: ignore[misc]
        if self._ids is not None:
            raise RuntimeError(
                "Pruned: the loss was not seen, because compute_loss of a subclass does not call "
                "super().compute_loss; name this mixin first: class T(Pruned, YourTrainer)"
            )
        return loss

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        trainer: Any = self
        compute = partial(super().compute_loss, model)  # type: ignore[misc]
        ids, self._ids = self._ids, None
        if ids is None:  # evaluation
            return compute(inputs, return_outputs, num_items_in_batch)
        to_mean = 1.0
        if num_items_in_batch is not None:
            if self._items is None:
                averages = trainer.args.average_tokens_across_devices
                num_ranks = trainer.accelerator.num_processes if averages else 1
                self._items = Items(trainer._loss_shifts_labels, num_ranks)
            if not self._items.is_known_for(inputs):
                metrics = deepcopy(getattr(trainer, "_metrics", None))
                self._items.measure(model, compute, inputs)
                if metrics is not None:  # SFTTrainer notes every forward pass
                    trainer._metrics = metrics
            to_mean = self._items.to_mean(num_items_in_batch, inputs)
        result = compute(inputs, return_outputs, num_items_in_batch)
        loss = result[0] if return_outputs else result
        weighted = loss * self._handler().factor(loss.detach() * to_mean, ids=ids)
        return (weighted, *result[1:]) if return_outputs else weighted

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """The scheduler of Trainer, driven by the progress of the run."""
        trainer: Any = self
        is_given = trainer.lr_scheduler is not None
        scheduler = super().create_scheduler(num_training_steps, optimizer)  # type: ignore[misc]
        if is_given or num_training_steps < 1:
            return scheduler
        trainer.lr_scheduler = lr_by_progress(scheduler, self._handler(), num_training_steps)
        return trainer.lr_scheduler

    # Checkpoints.

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)  # type: ignore[misc]
        state = self._handler().state_dict()  # all ranks
        if self.args.should_save:  # type: ignore[attr-defined]
            os.makedirs(output_dir, exist_ok=True)
            path = os.path.join(output_dir, STATE_NAME)
            torch.save(state, path + ".new")
            os.replace(path + ".new", path)

    def _handler(self) -> Handler:
        if self.handler is None:
            raise RuntimeError(
                'Pruned: say how to prune first: trainer.prune("bls-infobatch") before train()'
            )
        return self.handler


class _Epochs(TrainerCallback):  # type: ignore[misc]
    """Trainer counts the steps of a resumed epoch from its rest; logs show the whole epoch."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        state.epoch = self._handler.progress * self._handler.epochs


class _Whole:
    """What Trainer asks a loader for when it plans."""

    def __init__(self, dataset: Any, batch_size: int, args: Any) -> None:
        self.dataset = dataset
        self._batch_size = batch_size
        self._num_ranks: int = args.world_size
        self._drop_last: bool = args.dataloader_drop_last

    def __len__(self) -> int:
        batch_size, num_ranks, drop_last = self._batch_size, self._num_ranks, self._drop_last
        share = -(-len(self.dataset) // num_ranks)
        return max(share // batch_size, 1) if drop_last else -(-share // batch_size)


def _check(trainer: Any) -> None:
    """Refuses what a pruned run cannot do, before it starts."""
    args = trainer.args
    for name in ("_run_epoch", "_init_training_state", "set_initial_training_values"):
        if not hasattr(Trainer, name):
            raise RuntimeError(f"Pruned: this transformers has no Trainer.{name}; 5.x is needed")
    rules = [
        (args.max_steps <= 0, "max_steps", "left out, because pruning changes the steps"),
        (args.num_train_epochs == int(args.num_train_epochs), "num_train_epochs", "whole"),
        (not args.auto_find_batch_size, "auto_find_batch_size", "False: it starts runs over"),
        (args.n_gpu <= 1, "n_gpu", "at most 1; use torchrun instead of DataParallel"),
        (
            getattr(args, "train_sampling_strategy", "random") == "random",
            "train_sampling_strategy",
            '"random": the handler decides the order',
        ),
    ]
    for is_met, name, rule in rules:
        if not is_met:
            raise ValueError(f"Pruned: {name} must be {rule}; got {getattr(args, name)}")
    if trainer.get_tp_size() * trainer.get_cp_size() * trainer.get_sp_size() != 1:
        raise ValueError("Pruned: tensor, context and sequence parallel ranks share their batches")
