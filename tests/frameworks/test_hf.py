"""transformers.Trainer and trl.SFTTrainer with the mixin of tamis.integrations.hf."""

import os

import numpy as np
import pytest
import tamis
import torch
from kits import KITS, HfKit, PrunedTrainer, collate, indices_in, make_trainer
from matrix import cell
from ranks import in_turn, run_ranks
from torch.utils.data import DataLoader, Subset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback
from truth import BATCH, EPOCHS, SIZE, Log, judge

from tamis.integrations.hf import STATE_NAME

HF = "HF Trainer"
BOTH = pytest.mark.parametrize("name", [HF, "TRL SFTTrainer"])


def window_shares(steps, accumulation):
    """Items of each step over those that Trainer counts in its window: num_items_in_batch."""
    result = []
    for epoch in dict.fromkeys(step.epoch for step in steps):
        own = [step for step in steps if step.epoch == epoch]
        for begin in range(0, len(own), accumulation):
            window = own[begin : begin + accumulation]
            total = sum(step.num_counted for step in window)
            result += [step.num_items / total for step in window]
    return result


def num_windows(steps, accumulation):
    return sum(
        -(-sum(step.epoch == epoch for step in steps) // accumulation) for epoch in range(EPOCHS)
    )


def train(name, folder, accumulation=1, **options):
    log = Log()
    trainer = make_trainer(name, folder, log, gradient_accumulation_steps=accumulation, **options)
    trainer.train()
    return trainer, log


def check(trainer, log, accumulation=1, **options):
    judge(log.steps, trainer.handler.scores, scales=window_shares(log.steps, accumulation), **options)


@BOTH
@cell(None, "plain", "accumulation")
@pytest.mark.parametrize("accumulation", [1, 3, 4])
def test_every_micro_batch_is_scored_with_its_own_mean_loss(name, tmp_path, accumulation):
    trainer, log = train(name, tmp_path, accumulation)
    check(trainer, log, accumulation)
    assert trainer.state.global_step == num_windows(log.steps, accumulation)
    assert trainer.state.epoch == EPOCHS


@BOTH
@cell(None, "workers")
def test_workers_fetch_ahead(name, tmp_path):
    trainer, log = train(name, tmp_path, 3, dataloader_num_workers=2)
    check(trainer, log, 3)


@BOTH
@cell(None, "validation")
def test_validation_inside_the_epoch_is_not_scored(name, tmp_path):
    trainer, log = train(name, tmp_path, 2, eval_strategy="steps", eval_steps=1)
    check(trainer, log, 2)


@BOTH
@cell(None, "last skipped")
def test_an_incomplete_last_batch_is_dropped(name, tmp_path):
    trainer, log = train(name, tmp_path, 2, dataloader_drop_last=True)
    check(trainer, log, 2, drop_last=True)


class Stop(TrainerCallback):
    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **rest):
        control.should_epoch_stop = state.global_step == self.step


@BOTH
@cell(None, "break")
@pytest.mark.parametrize("accumulation", [1, 2])
def test_an_epoch_that_is_left_early_is_followed_by_the_next(name, tmp_path, accumulation):
    trainer, log = train(name, tmp_path, accumulation, callbacks=[Stop(2)])
    check(trainer, log, accumulation, cut={0: 2 * accumulation})


@BOTH
@cell(None, "resume")
@pytest.mark.parametrize("accumulation", [1, 2])
def test_a_run_resumed_after_any_step_is_the_run_that_was_not_interrupted(name, tmp_path, accumulation):
    options = {"gradient_accumulation_steps": accumulation, "lr_scheduler_type": "cosine"}
    whole = Log()
    trainer = make_trainer(name, tmp_path, whole, save_strategy="steps", save_steps=1, **options)
    trainer.train()
    check(trainer, whole, accumulation)
    assert trainer.lr_scheduler.get_last_lr()[0] < 1e-6
    steps = trainer.state.global_step
    weights = torch.nn.utils.parameters_to_vector(trainer.model.parameters())
    for step in range(1, steps + 1):
        log = Log()
        again = make_trainer(name, tmp_path, log, **options)
        again.train(resume_from_checkpoint=os.path.join(tmp_path, f"checkpoint-{step}"))
        rest = whole.steps[len(whole.steps) - len(log.steps):]
        assert log.batches == [(one.epoch, one.ids) for one in rest], f"resumed after step {step}"
        assert again.state.global_step == steps
        both = whole.steps[: len(whole.steps) - len(log.steps)] + log.steps
        judge(both, again.handler.scores, scales=window_shares(both, accumulation))
        torch.testing.assert_close(
            torch.nn.utils.parameters_to_vector(again.model.parameters()), weights
        )


def test_a_checkpoint_without_our_state_is_refused(tmp_path):
    train(HF, tmp_path, save_strategy="steps", save_steps=5)
    os.remove(tmp_path / "checkpoint-5" / STATE_NAME)
    with pytest.raises(FileNotFoundError, match=STATE_NAME):
        make_trainer(HF, tmp_path, Log()).train(resume_from_checkpoint=str(tmp_path / "checkpoint-5"))


@pytest.mark.parametrize(
    ("options", "name"), [({"max_steps": 10}, "max_steps"), ({"auto_find_batch_size": True}, "auto_find")]
)
def test_what_cannot_be_pruned_is_refused_before_it_starts(tmp_path, options, name):
    with pytest.raises(ValueError, match=name):
        make_trainer(HF, tmp_path, Log(), **options)


class OwnLoss(PrunedTrainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        return model(**inputs).loss


def test_a_loss_that_bypasses_the_mixin_is_refused(tmp_path):
    trainer = make_trainer(HF, tmp_path, Log(), trainer_class=OwnLoss)
    with pytest.raises(RuntimeError, match="compute_loss"):
        trainer.train()


class ClassifierKit(HfKit):
    """A model that takes num_items_in_batch and returns the mean all the same."""

    def make_model(self):
        torch.manual_seed(0)
        return BertForSequenceClassification(
            BertConfig(vocab_size=16, hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
                       intermediate_size=8, max_position_embeddings=8, num_labels=3,
                       hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        )

    def make(self, args, **options):
        trainer = super().make(args, **options)
        trainer.data_collator = collate_classes
        return trainer

    def listen(self, model, log, epoch_of):
        def note(module, args, inputs, output):
            if module.training:
                mean = torch.nn.functional.cross_entropy(output.logits, inputs["labels"]).detach()
                log.see(epoch_of(), indices_in(inputs["input_ids"]), output.loss, mean)

        model.register_forward_hook(note, with_kwargs=True)


def collate_classes(samples):
    batch = collate(samples)
    return {"input_ids": batch["input_ids"], "labels": batch["input_ids"][:, 2] % 3}


@pytest.mark.parametrize("kit", [HfKit(), ClassifierKit()])
def test_without_pruning_the_run_is_what_trainer_does_by_itself(tmp_path, monkeypatch, kit):
    """The first epoch has all samples and weights 1."""
    monkeypatch.setitem(KITS, HF, kit)
    log = Log()
    options = {"num_train_epochs": 1, "gradient_accumulation_steps": 3, "lr_scheduler_type": "constant"}
    pruned = make_trainer(HF, tmp_path, log, **options)
    pruned.train()
    plain = make_trainer(HF, tmp_path, log, trainer_class=Trainer, **options)
    order = Subset(plain.train_dataset, [i for step in log.steps for i in step.ids])
    plain.get_train_dataloader = lambda: DataLoader(
        order, batch_size=BATCH, collate_fn=pruned.data_collator
    )
    plain.train()
    assert pruned.state.global_step == plain.state.global_step
    torch.testing.assert_close(*(
        torch.nn.utils.parameters_to_vector(trainer.model.parameters()) for trainer in (pruned, plain)
    ))
    reference = tamis.Pruner(SIZE, 1, policy="infobatch", score="batch-loss")
    reference.start_epoch(0)
    for step in log.steps:
        reference.observe_samples(np.array(step.ids), step.loss)
    np.testing.assert_allclose(pruned.handler.scores, reference.scores, rtol=2e-5)


def be_rank(rank, name, folder, accumulation):
    torch.set_num_threads(1)
    trainer, log = train(name, folder, accumulation, ddp_backend="gloo")
    trainer.handler.state_dict()  # ranks exchange their scores
    return log.steps, trainer.handler.scores


@BOTH
@cell(None, "two processes")
@pytest.mark.parametrize("accumulation", [1, 2])
def test_two_processes_share_every_epoch(name, tmp_path, accumulation):
    results = run_ranks(be_rank, name, tmp_path, accumulation)
    steps = in_turn([steps for steps, _ in results])
    scales = [2 * share for share in window_shares(steps, 2 * accumulation)]
    judge(steps, results[0][1], scales=scales, ordered=False, num_ranks=2)
