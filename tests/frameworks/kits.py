"""Tiny trainers of transformers and TRL that log what the model really gets.

Sequences have different lengths, so that the mean over a window is not the mean of its batches.
"""

from __future__ import annotations

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)
from trl import SFTConfig, SFTTrainer
from truth import BATCH, EPOCHS, METHOD, SIZE

from tamis.integrations.hf import Pruned

VOCABULARY = 16


class PrunedTrainer(Pruned, Trainer):
    pass


class PrunedSFTTrainer(Pruned, SFTTrainer):
    pass


def tokens_of(i):
    """Two tokens that say the index, then two to five more."""
    return [8 + i // 8, i % 8] + [(i * k + 3 * k) % VOCABULARY for k in range(2 + i % 4)]


def indices_in(tokens):
    return ((tokens[:, 0] - 8) * 8 + tokens[:, 1]).tolist()


class Sentences(torch.utils.data.Dataset):
    def __init__(self, size=SIZE):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        return {"input_ids": tokens_of(i), "labels": tokens_of(i)}


def collate(samples):
    length = max(len(sample["input_ids"]) for sample in samples)

    def pad(key, value):
        rows = [sample[key] + [value] * (length - len(sample[key])) for sample in samples]
        return torch.tensor(rows)

    return {"input_ids": pad("input_ids", 0), "labels": pad("labels", -100)}


def count(labels):
    return int((labels != -100).sum())


class HfKit:
    """GPT-2: Trainer also counts the first label of every row, which the model does not predict."""

    config = TrainingArguments

    def make_model(self):
        torch.manual_seed(0)
        return GPT2LMHeadModel(
            GPT2Config(vocab_size=VOCABULARY, n_positions=8, n_embd=8, n_layer=1, n_head=1,
                       bos_token_id=0, eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
        )

    def make(self, args, trainer_class=PrunedTrainer, **options):
        return trainer_class(
            self.make_model(), args, train_dataset=Sentences(), eval_dataset=Sentences(9),
            data_collator=collate, **options,
        )

    def listen(self, model, log, epoch_of):
        def note(module, args, inputs, output):
            if not module.training or not torch.is_grad_enabled():
                return
            labels = inputs["labels"][:, 1:].contiguous()
            mean = torch.nn.functional.cross_entropy(
                output.logits[:, :-1].reshape(-1, VOCABULARY).double(), labels.view(-1), ignore_index=-100
            )
            log.see(epoch_of(), indices_in(inputs["input_ids"]), output.loss, mean.detach(),
                    count(labels), count(inputs["labels"]))

        model.register_forward_hook(note, with_kwargs=True)


class TrlKit:
    """A Llama whose logits are never made: the model returns the log-probabilities of the labels."""

    config = SFTConfig

    def make(self, args, trainer_class=PrunedSFTTrainer, **options):
        torch.manual_seed(0)
        model = LlamaForCausalLM(
            LlamaConfig(vocab_size=VOCABULARY, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                        num_attention_heads=1, max_position_embeddings=16, bos_token_id=0,
                        eos_token_id=1, pad_token_id=2)
        )
        words = {str(i): i for i in range(VOCABULARY)}
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="0")), eos_token="1", pad_token="2"
        )
        return trainer_class(
            model, args, train_dataset=self.make_data(SIZE), eval_dataset=self.make_data(9),
            processing_class=tokenizer, **options,
        )

    def make_data(self, size):
        return Dataset.from_list([{"input_ids": tokens_of(i)} for i in range(size)])

    def listen(self, model, log, epoch_of):
        def note(module, args, inputs, output):
            if not module.training or not torch.is_grad_enabled():
                return
            labels = inputs["labels"][:, 1:]
            num_items = count(labels)
            log_probs = output.log_probs
            mean = -float(log_probs.detach().double().sum()) / num_items
            step = log.add(epoch_of(), indices_in(inputs["input_ids"]), mean, num_items, num_items)

            def note_factor(gradient):
                step.factor = -float(gradient[labels != -100].mean()) * num_items

            log_probs.register_hook(note_factor)

        model.register_forward_hook(note, with_kwargs=True)


KITS = {"HF Trainer": HfKit(), "TRL SFTTrainer": TrlKit()}


def make_trainer(name, folder, log, trainer_class=None, callbacks=(), **options):
    """A trainer of the framework, pruned unless its class says otherwise."""
    kit = KITS[name]
    options = {
        "save_strategy": "no", "per_device_train_batch_size": BATCH, "num_train_epochs": EPOCHS,
        "learning_rate": 0.01, "use_cpu": True, "report_to": [], "disable_tqdm": True,
        "logging_strategy": "no", "seed": 7, "bf16": False, "gradient_checkpointing": False, **options,
    }
    args = kit.config(output_dir=str(folder), **options)
    classes = {} if trainer_class is None else {"trainer_class": trainer_class}
    trainer = kit.make(args, callbacks=list(callbacks), **classes)
    if isinstance(trainer, Pruned):
        handler = trainer.prune(METHOD)
        kit.listen(trainer.model, log, lambda: handler.epoch)
    return trainer
