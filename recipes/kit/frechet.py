"""Frechet distance between pictures, on the features of a small classifier.

Not the FID, which is the same distance on the features of an Inception network: values of the two cannot be compared.
The classifier is trained here, on the training set that the pictures should resemble, and kept beside the data.
"""

from __future__ import annotations

import hashlib
import pathlib

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import assets
from .pictures import Pictures

FEATURES = 64


def distance(a: Tensor, b: Tensor) -> float:
    """Of the normal distributions with the means and covariances of the rows of a and b."""
    a, b = a.double(), b.double()
    if min(len(a), len(b)) < 2:
        raise ValueError(f"frechet.distance: needs two samples at least on each side, got {len(a)} and {len(b)}")
    gap = (a.mean(0) - b.mean(0)).square().sum()
    first, second = torch.cov(a.T), torch.cov(b.T)
    # tr sqrt(A B) = tr sqrt(sqrt(A) B sqrt(A)), which is symmetric.
    values, vectors = torch.linalg.eigh(first)
    root = vectors * values.clamp(min=0).sqrt() @ vectors.T
    shared = torch.linalg.eigvalsh(root @ second @ root).clamp(min=0).sqrt().sum()
    return float(gap + first.trace() + second.trace() - 2 * shared)


class Classifier(nn.Module):
    """Convolutions to 4 x 4, then 64 features, then classes."""

    def __init__(self, channels: int, num_classes: int) -> None:
        super().__init__()
        widths = [channels, 16, 32, 64]
        layers = [
            layer
            for c, d in zip(widths, widths[1:])
            for layer in (nn.Conv2d(c, d, 3, stride=2, padding=1), nn.BatchNorm2d(d), nn.ReLU())
        ]
        self.body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, FEATURES), nn.ReLU())
        self.head = nn.Linear(FEATURES, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


def train_classifier(dataset: Pictures, epochs: int = 3) -> Classifier:
    """A function of the data: always from the same seed, and leaves torch's own random numbers as they are."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Classifier(dataset.pixels.shape[1], len(dataset.classes))
        optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
        for _ in range(epochs):
            for ids in torch.randperm(len(dataset)).split(128):
                images = dataset.pixels[ids].float() / 127.5 - 1
                loss = F.cross_entropy(model(images), dataset.labels[ids])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    return model.eval()


class Ruler:
    """Measures how far pictures are from a data set. `distance(pictures)`: in [-1, 1], as many as you like."""

    def __init__(self, dataset: Pictures, references: Pictures, data: pathlib.Path | None = None) -> None:
        """The classifier is trained on `dataset`, or was before; distances are to `references`."""
        sum_ = hashlib.sha256(dataset.pixels.numpy().tobytes()).hexdigest()[:12]
        kept = (data or assets.ROOT / "data") / f"frechet-{sum_}.pt"
        if kept.exists():
            self.model = Classifier(dataset.pixels.shape[1], len(dataset.classes)).eval()
            self.model.load_state_dict(torch.load(kept, weights_only=True))
        else:
            self.model = train_classifier(dataset)
            with assets.written(kept) as file:
                torch.save(self.model.state_dict(), file)
        self.references = self.features(references.pixels.float() / 127.5 - 1)

    @torch.no_grad()
    def features(self, images: Tensor) -> Tensor:
        return torch.cat([self.model.body(part) for part in images.split(500)])

    def distance(self, images: Tensor) -> float:
        return distance(self.features(images), self.references)
