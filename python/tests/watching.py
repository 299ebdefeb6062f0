"""Models with outputs of every kind, and what watching them must give."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from support import batch_loss
from torch import nn

SIZE = 12


def weighted_epoch(handler, batch_size=SIZE):
    """Trains on made-up losses until samples have different weights; returns a loader."""
    loader = handler.loader(batch_size)
    for batch in loader:
        handler.update(batch_loss(batch[0]))
    return loader


class Classifier(nn.Module):
    """Its batch norms couple the samples of a batch."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(2, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(64, 8),
            nn.BatchNorm1d(8),
            nn.ReLU(),
            nn.Linear(8, 5),
        )

    def forward(self, seed):
        return self.layers(seed.view(-1, 2, 6, 6))

    def losses(self, outputs, labels):
        return F.cross_entropy(outputs, labels, reduction="none")


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(72, 9), nn.Tanh(), nn.Linear(9, 4))

    def forward(self, seed):
        return self.layers(seed.flatten(1))

    def losses(self, outputs, labels):
        target = torch.arange(4).to(outputs) + labels[:, None]
        return ((outputs - target) ** 2).mean(1)


@dataclass
class Detections:
    boxes: torch.Tensor
    scores: list[torch.Tensor]
    names: tuple[str, ...]


class Detector(nn.Module):
    """Three parts of loss on outputs of which one feeds the next."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(2, 3, 3)
        self.norm = nn.BatchNorm2d(3)
        self.down = nn.Conv2d(3, 5, 2)
        self.boxes = nn.Linear(72, 4 * 6)

    def forward(self, seed):
        large = self.norm(self.stem(seed.view(-1, 2, 6, 6)))
        small = self.down(large.relu())
        boxes = self.boxes(seed.flatten(1)).view(-1, 6, 4)
        return Detections(boxes, [large, small], ("large", "small"))

    def losses(self, outputs, labels):
        large, small = outputs.scores
        box = F.smooth_l1_loss(outputs.boxes, torch.ones_like(outputs.boxes), reduction="none")
        target = (labels % 2).to(large).view(-1, 1, 1, 1).expand_as(large)
        score = F.binary_cross_entropy_with_logits(large, target, reduction="none")
        label = F.cross_entropy(small.mean((2, 3)), labels, reduction="none")
        return 7.5 * box.sum((1, 2)) + 0.5 * score.mean((1, 2, 3)) + 1.5 * label


class LanguageModel(nn.Module):
    """Hidden states and logits among the outputs; sequences of different lengths."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(12, 8)
        self.second = nn.Linear(8, 8)
        self.head = nn.Linear(8, 7)

    def forward(self, seed):
        first = self.first(seed.view(-1, 6, 12)).tanh()
        second = self.second(first).tanh()
        return {"logits": self.head(second), "hidden_states": (first, second)}

    def losses(self, outputs, labels):
        targets = (labels[:, None] + torch.arange(6)) % 7
        targets[torch.arange(6)[None] > labels[:, None] + 1] = -100  # padding
        logits = outputs["logits"].flatten(0, 1)
        tokens = F.cross_entropy(logits, targets.flatten(), reduction="none").view(-1, 6)
        # The mean over all tokens of the batch, and a penalty on the hidden states.
        share = len(labels) / (targets != -100).sum()
        return tokens.sum(1) * share + 0.1 * outputs["hidden_states"][0].square().mean((1, 2))


def inputs_of(ids, dtype):
    random = np.random.default_rng(3)
    seeds = random.normal(size=(200, 72))
    ids = ids.numpy()
    return torch.from_numpy(seeds[ids]).to(dtype), torch.from_numpy(ids % 5)


def gradient_of(model):
    gradient = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    model.zero_grad()
    return gradient


def expected_gradient(model, handler, batches, dtype):
    """Of the mean over the batches of mean(w_i * l_i), by a copy of the model."""
    model = copy.deepcopy(model)
    for ids in batches:
        inputs, labels = inputs_of(ids, dtype)
        weights = torch.from_numpy(handler.weights[ids.numpy()]).to(dtype)
        loss = (model.losses(model(inputs), labels) * weights).mean()
        (loss / len(batches)).backward()
    return gradient_of(model)


def error_of(gradient, expected):
    return float((gradient.detach() - expected).norm() / expected.norm())


def expected_scores(model, ids, dtype=torch.float64, power=1):
    """The batch's mean loss, shared out by the gradients of the model's outputs (one tensor)."""
    model = copy.deepcopy(model)
    inputs, labels = inputs_of(ids, dtype)
    outputs = model(inputs)
    loss = model.losses(outputs, labels).mean()
    (gradient,) = torch.autograd.grad(loss, outputs)
    norms = gradient.flatten(1).norm(dim=1) ** power
    return (loss.detach() * norms / norms.mean()).numpy()


def train_step(handler, model, samples, **update):
    """One watched step, and its expected scores."""
    expected = expected_scores(model, samples)
    inputs, labels = inputs_of(samples, torch.float64)
    handler.update(model.losses(model(inputs), labels).mean(), **update).backward()
    return expected
