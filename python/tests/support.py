"""Data sets, loops and expectations that the tests share.

The loss of a batch is the mean of numbers that depend on the index alone, so that it is known
exactly which scores must come out.
"""

from __future__ import annotations

import pathlib

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

ALPHA = 0.7
REPOSITORY = pathlib.Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "examples" / "python"
MODES = ("loader", "sampler", "batch_sampler")
LOADERS = {
    "0 workers": {},
    "2 workers": {"num_workers": 2},
    "persistent": {"num_workers": 2, "persistent_workers": True},
    "deep prefetch": {"num_workers": 2, "prefetch_factor": 9},  # more than an epoch has
}


class IndexDataset(Dataset):
    """Sample i is (i, x) with one number x per sample."""

    def __init__(self, size):
        self.size = size
        self.classes = ["easy", "hard"]

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return index, loss_of(index)


class BatchedIndexDataset(IndexDataset):
    """Can fetch a whole batch at once, as torch's fetcher asks for."""

    def __getitems__(self, indices):
        return [self[i] for i in indices]


def loss_of(index):
    """A loss of its own for every sample; in no order."""
    return 1.0 + (index * 7919 % 1009) / 1009.0


def batch_loss(indices):
    values = [loss_of(int(i)) for i in indices]
    return torch.tensor(sum(values) / len(values), dtype=torch.float32)


class ExpectedScores:
    """Batch Loss Scores by the formula, in the arithmetic of the core."""

    def __init__(self, size, alpha=ALPHA):
        self.scores = np.full(size, np.nan, dtype=np.float32)
        self._alpha = alpha
        self._initial = None

    def observe(self, indices, loss):
        loss = float(loss)
        if self._initial is None:
            self._initial = np.float32(loss)
        for i in {int(i) for i in indices}:
            before = self._initial if np.isnan(self.scores[i]) else self.scores[i]
            gain = (1.0 - self._alpha) * loss
            self.scores[i] = np.float32(self._alpha * float(before) + gain)


def assert_scores(handler, expected):
    np.testing.assert_array_equal(handler.scores, expected.scores)


# What people wrap around a loader.


def plain_wrapper(loader):
    """A progress bar, say."""
    yield from loader


def one_ahead(loader):
    """Accelerate's pattern: keeps the iterator until the last batch is done."""
    iterator = iter(loader)
    current = next(iterator)
    for following in iterator:
        yield current
        current = following
    yield current


def one_ahead_released(loader):
    """timm's pattern: the loader's iterator is gone when the last batch is yielded."""
    first = True
    for following in loader:
        if not first:
            yield current  # noqa: F821
        first = False
        current = following
    yield current


def three_ahead(loader):
    """A deeper queue."""
    queue = []
    for batch in loader:
        queue.append(batch)
        if len(queue) > 3:
            yield queue.pop(0)
    yield from queue


def windows(loader):
    """HF Trainer's pattern: four batches are drawn before the first of them is trained on."""
    window = []
    for batch in loader:
        window.append(batch)
        if len(window) == 4:
            yield from window
            window = []
    yield from window


def bare(loader):
    return loader


WRAPPERS = {
    function.__name__: function
    for function in (bare, plain_wrapper, one_ahead, one_ahead_released, three_ahead, windows)
}


def indices_of(batch):
    """The indices in a batch of IndexDataset, whatever the collate function made of it."""
    if isinstance(batch, dict):
        return batch["index"].tolist()
    return [int(i) for i in batch[0]]


def train_epoch(handler, batches, expected, skip=(), stop=None, by_ids=False):
    """Trains on what comes, and does the same by hand. Returns the number of batches.

    Without `expected` nothing is checked: the losses will be dropped.
    """
    count = 0
    for step, batch in enumerate(batches):
        if stop is not None and step == stop:
            break
        count += 1
        if step in skip:
            continue
        indices = indices_of(batch)
        loss = batch_loss(indices)
        weight = handler.weights[indices].mean(dtype=np.float64)
        weighted = handler.update(loss, batch) if by_ids else handler.update(loss)
        if expected is not None:
            expected.observe(indices, loss)
            torch.testing.assert_close(weighted, loss * weight)
    return count


def make_loader(handler, mode="loader", batch_size=8, drop_last=False, **options):
    """Our loader, or a DataLoader of the user's own that draws from us."""
    if mode == "loader":
        return handler.loader(batch_size, drop_last=drop_last, **options)
    if mode == "sampler":
        options.update(sampler=handler.sampler, batch_size=batch_size, drop_last=drop_last)
    else:
        options.update(batch_sampler=handler.batch_sampler(batch_size, drop_last))
    return DataLoader(handler.data, **options)


def rebuild(loader, **options):
    """What frameworks make of a loader: a plain DataLoader of its parts."""
    return DataLoader(
        loader.dataset, batch_sampler=loader.batch_sampler, collate_fn=loader.collate_fn, **options
    )
