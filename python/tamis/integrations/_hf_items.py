"""What num_items_in_batch has made of a loss, and how to undo it."""

from __future__ import annotations

from copy import copy
from typing import Any

import torch

_TOLERANCE = 0.01  # of the number of items


class Items:
    """Trainer divides the sum over a micro-batch by the items of the whole window.

    Whether a model does so, and which of its labels are items, is measured at the first step: some
    models swallow num_items_in_batch and return the mean, and Trainer's own count is off by one
    per row for others.
    """

    def __init__(self, shifts_labels: bool, num_ranks: int) -> None:
        """`num_ranks`: what Trainer multiplies a loss by that was divided by all ranks' items."""
        self._num_ranks = num_ranks
        self._is_mean: bool | None = None  # None: not known yet
        self._shifts_labels = shifts_labels
        self._knows_shift = False

    def is_known_for(self, inputs: Any) -> bool:
        """False if a batch must be measured: nothing is known, or not what matters for this one."""
        if self._is_mean is None:
            return False
        return self._is_mean or self._knows_shift or _count(inputs, True) == _count(inputs, False)

    def to_mean(self, num_items: Any, inputs: Any) -> float:
        """What makes the mean of a micro-batch of a loss that was computed for num_items."""
        if self._is_mean:
            return 1.0 / self._num_ranks
        return float(num_items) / _count(inputs, self._shifts_labels) / self._num_ranks

    def measure(self, model: Any, compute: Any, inputs: Any) -> None:
        """Calls compute(inputs, False, num_items) twice."""
        counts = {shifts: _count(inputs, shifts) for shifts in (self._shifts_labels, True, False)}
        mean, total = _losses(model, compute, inputs)
        if mean == 0.0 or max(counts.values()) == 1:
            return  # this batch does not tell
        ratio = total / self._num_ranks / mean
        self._is_mean = abs(ratio - 1.0) < _TOLERANCE
        if self._is_mean:
            return
        shifts = min(counts, key=lambda shifts: abs(counts[shifts] - ratio))
        if abs(ratio - counts[shifts]) > _TOLERANCE * counts[shifts]:
            raise RuntimeError(
                f"Pruned: the loss of this batch is {mean:g} as a mean and {ratio * mean:g} as a sum, "
                f"but the batch has {counts[self._shifts_labels]} items, so a mean cannot be told "
                "from num_items_in_batch; set model.accepts_loss_kwargs = False before making the "
                "trainer"
            )
        self._shifts_labels = shifts
        self._knows_shift = counts[True] != counts[False]


def _count(inputs: Any, shifts_labels: bool) -> int:
    """Items of a micro-batch, as Trainer counts those of a window."""
    if "shift_labels" in inputs:
        labels = inputs["shift_labels"]
    else:
        labels = inputs["labels"][..., 1:] if shifts_labels else inputs["labels"]
    return max(int(labels.ne(-100).sum()), 1)


def _losses(model: Any, compute: Any, inputs: Any) -> tuple[float, float]:
    """The loss of a batch as a mean, and divided by 1; leaves no trace in model or generators."""
    was_training = model.training
    model.eval()
    losses = []
    for num_items in (None, torch.tensor(1)):
        with torch.no_grad(), torch.random.fork_rng():
            torch.manual_seed(0)
            losses.append(float(compute(copy(inputs), False, num_items)))
    model.train(was_training)
    return losses[0], losses[1]
