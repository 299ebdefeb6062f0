"""Training loops that people write themselves, with a log of what they really did."""

from __future__ import annotations

import contextlib

import pytest
import tamis
import torch
from torch.utils.data import DataLoader
from truth import BATCH, EPOCHS, Samples, indices_in, label_of

cross_entropy = torch.nn.functional.cross_entropy


def parts(batch):
    return (batch["x"], batch["labels"]) if isinstance(batch, dict) else batch


def check_labels(x, labels):
    """Features and labels of one batch: a wrong pairing would spoil every test."""
    assert labels.tolist() == [label_of(i) for i in indices_in(x)]


def validate(model):
    """Validation inside the epoch: another loader, over the same data set."""
    was_training = model.training
    model.eval()
    with torch.no_grad():
        for x, labels in DataLoader(Samples(), batch_size=BATCH):
            cross_entropy(model(x), labels)
    model.train(was_training)


class Situation:
    """What a loop does besides training.

    Attributes:
        accumulation: Micro-batches per optimizer step.
        skip_last: The last batch of an epoch has no update.
        stop: {epoch: batches} after which the epoch is left.
        validate: After every batch the model is validated.
        save: Called after every batch.
    """

    def __init__(self, accumulation=1, skip_last=False, stop=None, validate=False, save=None):
        self.accumulation, self.skip_last, self.stop = accumulation, skip_last, stop or {}
        self.validate, self.save = validate, save


class Loop:
    """Trains over self.loader as a situation wants it; `step` does the work of one batch."""

    def train(self):
        for epoch in range(self.handler.next_epoch, EPOCHS):
            self.handler.set_epoch(epoch)
            steps = self.handler.steps_left
            for number, batch in enumerate(self.loader, 1):
                if not (self.situation.skip_last and number == steps):
                    self.step(epoch, batch, number, steps)
                if self.situation.save:
                    self.situation.save(self)
                if number == self.situation.stop.get(epoch):
                    break
        return self


def reported(name):
    """A batch without update is reported, as it should be; nothing else is."""
    if name == "last skipped":
        return pytest.warns(tamis.MissedUpdateWarning, match="had no update")
    return contextlib.nullcontext()


SITUATIONS = {
    "plain": Situation(),
    "accumulation": Situation(accumulation=3),
    "validation": Situation(validate=True),
    "last skipped": Situation(skip_last=True),
    "break": Situation(stop={0: 3, 1: 2}),
}


def expectations(name, log):
    """How judge() is to see a run of SITUATIONS[name]."""
    situation = SITUATIONS[name]
    counts = {e: sum(step.epoch == e for step in log.steps) for e in range(EPOCHS)}
    if situation.skip_last:
        return {"cut": counts}
    if situation.stop:
        assert {e: counts[e] for e in situation.stop} == situation.stop
        return {"cut": situation.stop}
    return {}
