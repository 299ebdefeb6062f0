"""Lightning's Trainer: tuple batches, which it rebuilds when it moves them to the device."""

import warnings

import lightning.pytorch as L
import pytest
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from matrix import cell
from ranks import in_turn, run_ranks
from torch.utils.data import DataLoader
from truth import (
    BATCH,
    EPOCHS,
    METHOD,
    Classifier,
    Log,
    Samples,
    indices_in,
    judge,
    shares,
)

from tamis.integrations.lightning import PrunedDataModule

NAME = "Lightning"


class Data(PrunedDataModule):
    def __init__(self, as_dict=False, **options):
        super().__init__()
        self.as_dict, self.options = as_dict, options

    def setup(self, stage):
        self.prune(Samples(self.as_dict), METHOD, epochs=EPOCHS, batch_size=BATCH, **self.options)

    def val_dataloader(self):
        return DataLoader(Samples(self.as_dict), batch_size=BATCH)


class Module(L.LightningModule):
    def __init__(self, log, skip_last=False):
        super().__init__()
        torch.manual_seed(0)
        self.model, self.truth, self.skip_last = Classifier(), log, skip_last
        self.num_steps = 0

    def forward_loss(self, batch):
        x, y = (batch["x"], batch["labels"]) if isinstance(batch, dict) else batch
        return x, torch.nn.functional.cross_entropy(self.model(x), y)

    def training_step(self, batch, batch_idx):
        if self.skip_last and batch_idx == self.trainer.num_training_batches - 1:
            return None
        x, loss = self.forward_loss(batch)
        self.truth.see(self.current_epoch, indices_in(x), loss)
        return self.trainer.datamodule.update(loss, batch)

    def validation_step(self, batch, batch_idx):
        self.trainer.datamodule.update(self.forward_loss(batch)[1], batch)

    def optimizer_step(self, *args, **kwargs):
        super().optimizer_step(*args, **kwargs)
        self.num_steps += 1

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def make_trainer(folder, **options):
    options = {
        "max_epochs": EPOCHS, "accelerator": "cpu", "devices": 1, "logger": False,
        "enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False,
        "use_distributed_sampler": False, "reload_dataloaders_every_n_epochs": 1,
        "limit_val_batches": 0, "default_root_dir": str(folder), "num_sanity_val_steps": 0,
        **options,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return L.Trainer(**options)


def fit(folder, skip_last=False, data=None, checkpoint=None, **options):
    log = Log()
    data = Data() if data is None else data
    module = Module(log, skip_last)
    trainer = make_trainer(folder, **options)
    trainer.fit(module, datamodule=data, ckpt_path=checkpoint, weights_only=False)
    return trainer, data.handler, log, module


@cell(NAME, "plain")
@pytest.mark.parametrize("as_dict", [False, True])
def test_a_plain_run_is_right(tmp_path, as_dict):
    _, handler, log, _ = fit(tmp_path, data=Data(as_dict))
    judge(log.steps, handler.scores)
    assert handler.num_missed_updates == 0


@cell(NAME, "accumulation")
@pytest.mark.parametrize("accumulation", [2, 3])
def test_windows_end_with_the_epoch(tmp_path, accumulation):
    _, handler, log, module = fit(tmp_path, accumulate_grad_batches=accumulation)
    judge(log.steps, handler.scores, scales=[1 / accumulation] * len(log.steps))
    counts = [sum(step.epoch == epoch for step in log.steps) for epoch in range(EPOCHS)]
    assert module.num_steps == sum(-(-count // accumulation) for count in counts)


@cell(NAME, "workers")
def test_workers_fetch_ahead(tmp_path):
    _, handler, log, _ = fit(tmp_path, data=Data(num_workers=2, persistent_workers=True))
    judge(log.steps, handler.scores)


@cell(NAME, "validation")
def test_validation_inside_the_epoch_is_not_scored(tmp_path):
    _, handler, log, _ = fit(tmp_path, limit_val_batches=2, val_check_interval=2)
    judge(log.steps, handler.scores)


@cell(NAME, "last skipped")
def test_a_last_batch_without_update_keeps_its_scores(tmp_path):
    _, handler, log, _ = fit(tmp_path, skip_last=True)
    counts = {e: sum(step.epoch == e for step in log.steps) for e in range(EPOCHS)}
    judge(log.steps, handler.scores, cut=counts)


@cell(NAME, "break")
def test_limited_epochs_are_followed_by_the_next(tmp_path):
    _, handler, log, _ = fit(tmp_path, limit_train_batches=3)
    judge(log.steps, handler.scores, cut=dict.fromkeys(range(EPOCHS), 3))


class Save(Callback):
    """A checkpoint after every training batch."""

    def __init__(self, folder):
        self.folder, self.count = folder, 0

    def on_train_batch_end(self, trainer, *rest):
        self.count += 1
        trainer.save_checkpoint(self.folder / f"{self.count}.ckpt")


@cell(NAME, "resume")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_resumed_after_any_batch_is_the_run_that_was_not_interrupted(tmp_path, workers):
    save = Save(tmp_path)
    _, handler, whole, module = fit(tmp_path, data=Data(num_workers=workers), callbacks=[save])
    judge(whole.steps, handler.scores)
    for count in range(1, save.count + 1, 1 if workers == 0 else 5):
        _, again, log, resumed = fit(
            tmp_path, data=Data(num_workers=workers), checkpoint=tmp_path / f"{count}.ckpt"
        )
        assert log.batches == whole.batches[count:], f"resumed after batch {count}"
        judge(whole.steps[:count] + log.steps, again.scores)
        torch.testing.assert_close(resumed.model.layer.weight, module.model.layer.weight)


@cell(NAME, "resume")
def test_a_checkpoint_at_the_end_of_an_epoch_goes_on_with_the_next(tmp_path):
    keep = ModelCheckpoint(tmp_path, filename="{epoch}", save_top_k=-1, save_on_train_epoch_end=True)
    _, handler, whole, _ = fit(tmp_path, enable_checkpointing=True, callbacks=[keep])
    for epoch in range(EPOCHS - 1):
        _, again, log, _ = fit(tmp_path, checkpoint=tmp_path / f"epoch={epoch}.ckpt")
        done = [step for step in whole.steps if step.epoch <= epoch]
        assert log.batches == whole.batches[len(done):]
        judge(done + log.steps, again.scores)


def be_rank(rank, folder, options):
    torch.set_num_threads(1)
    _, handler, log, _ = fit(folder, strategy="ddp", devices=2, **options)
    handler.state_dict()  # ranks exchange their scores
    return log.steps, handler.scores


@cell(NAME, "two processes")
def test_two_processes_share_every_epoch(tmp_path):
    results = run_ranks(be_rank, tmp_path, {})
    steps = in_turn([steps for steps, _ in results])
    judge(steps, results[0][1], ordered=False, num_ranks=2)


@cell(NAME, "two processes", refused=True)
def test_a_sampler_that_lightning_replaces_is_refused(tmp_path):
    with pytest.raises(AssertionError, match="use_distributed_sampler=False"):
        run_ranks(be_rank, tmp_path, {"use_distributed_sampler": True})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reload_dataloaders_every_n_epochs": 0}, "reload_dataloaders_every_n_epochs=1"),
        ({"max_epochs": EPOCHS + 1}, "max_epochs"),
        ({"overfit_batches": 3}, "overfit_batches=0"),
    ],
)
def test_settings_that_would_go_wrong_are_refused(tmp_path, options, message):
    with pytest.raises((ValueError, RuntimeError), match=message):
        fit(tmp_path, **options)


def test_shares_of_a_window_are_those_of_a_partial_one():
    steps = [type("S", (), {"epoch": 0})() for _ in range(3)]
    assert shares(steps, 2) == [0.5, 0.5, 1.0]
