"""What a training run did, sample by sample, and what it should have done.

Every training step logs the samples that really were in its tensors, their real mean loss, and the
factor that the backward pass put on that loss. `judge` plays the log to a core Pruner of its own
and compares: order, completeness, weights, scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tamis
import torch

SIZE = 53
BATCH = 8
EPOCHS = 4
METHOD = "bls-infobatch"


@dataclass
class Step:
    """One micro-batch that was trained on; `factor` is set by its backward pass."""

    epoch: int
    ids: list[int]
    loss: float
    num_items: int = 1  # that the mean is over
    num_counted: int = 1  # what a framework adds to the number that it divides the window by
    factor: float | None = None


class Log:
    """The steps of a run, or of one rank of it."""

    def __init__(self):
        self.steps = []

    def add(self, epoch, ids, mean, num_items=1, num_counted=1):
        step = Step(int(epoch), [int(i) for i in ids], mean, num_items, num_counted)
        self.steps.append(step)
        return step

    def see(self, epoch, ids, loss, mean=None, num_items=1, num_counted=1):
        """`loss` is the tensor that the framework goes on with, `mean` the real mean loss."""
        mean = float(loss.detach() if mean is None else mean)
        step = self.add(epoch, ids, mean, num_items, num_counted)
        ratio = float(loss.detach()) / mean

        def note(gradient):
            step.factor = float(gradient) * ratio

        loss.register_hook(note)

    @property
    def batches(self):
        return [(step.epoch, step.ids) for step in self.steps]


def features_of(indices):
    """Four numbers per sample, the first of which is its index."""
    indices = torch.as_tensor(indices, dtype=torch.float32)
    columns = [indices, torch.sin(indices), torch.cos(3 * indices), torch.sin(7 * indices)]
    return torch.stack(columns, dim=-1)


def label_of(index):
    return (index * 7) % 3


class Samples(torch.utils.data.Dataset):
    """Sample i is (features, label), or a dict of them; its index can be read off its features."""

    def __init__(self, as_dict=False):
        self.as_dict = as_dict

    def __len__(self):
        return SIZE

    def __getitem__(self, index):
        x, y = features_of(index), label_of(index)
        return {"x": x, "labels": y} if self.as_dict else (x, y)


class Classifier(torch.nn.Module):
    """Small enough to be quick, large enough to learn. Does not look at the index."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x[:, 1:])


def indices_in(x):
    return x[:, 0].round().long().tolist()


def make_classifier():
    torch.manual_seed(0)
    return Classifier()


def make_handler(as_dict=False, method=METHOD, **options):
    return tamis.prune(Samples(as_dict), method, epochs=EPOCHS, **options)


def shares(steps, accumulation):
    """1 / micro-batches of the window that each step belongs to; windows end with the epoch."""
    result = []
    for epoch in dict.fromkeys(step.epoch for step in steps):
        count = sum(step.epoch == epoch for step in steps)
        for begin in range(0, count, accumulation):
            window = min(accumulation, count - begin)
            result += [1.0 / window] * window
    return result


def judge(
    steps, scores, *, scales=None, drop_last=False, cut=None, ordered=True, num_ranks=1, epochs=None, size=SIZE,
    length=EPOCHS,
):
    """Fails unless the run was right.

    Args:
        steps: Of all ranks, in the order of training.
        scores: What the handler has at the end.
        scales: Factor of the framework for each step, such as 1 / accumulation.
        drop_last: An incomplete last batch is not trained on.
        cut: {epoch: batches} of epochs that were left early or whose batches had no update.
        ordered: Batches come in the order of the plan.
        num_ranks: May repeat a sample so that all ranks have equally many.
        epochs: How many were trained; None: all.
        size, length: Samples and epochs of the handler.
    """
    epochs = length if epochs is None else epochs
    reference = tamis.Pruner(size, length, **{k: tamis.methods()[METHOD][k] for k in ("policy", "score")})
    scales = [1.0] * len(steps) if scales is None else scales
    assert len(scales) == len(steps)
    assert sorted({step.epoch for step in steps}) == list(range(epochs))
    numbered = list(zip(steps, scales))
    for epoch in range(epochs):
        reference.start_epoch(epoch)
        plan = reference.plan
        order, weights = plan.order.tolist(), plan.weights
        own = [(step, scale) for step, scale in numbered if step.epoch == epoch]
        trained = [i for step, _ in own for i in step.ids]
        if cut and epoch in cut:
            assert len(own) == cut[epoch], f"epoch {epoch}: {len(own)} batches"
            order = order[: len(trained)]
        elif drop_last:
            order = order[: len(order) // BATCH * BATCH]
        if ordered:
            assert trained == order, f"epoch {epoch}: trained {trained}, planned {order}"
        else:
            assert set(trained) == set(order), f"epoch {epoch}"
            assert len(trained) - len(order) < num_ranks * BATCH
        for step, scale in own:
            weight = weights[step.ids].mean(dtype=np.float64)
            assert step.factor is not None, f"epoch {epoch}: no backward pass of {step.ids}"
            np.testing.assert_allclose(step.factor, weight * scale, rtol=2e-5, err_msg=str(step))
            reference.observe_samples(np.array(step.ids), step.loss)
    np.testing.assert_allclose(scores, reference.scores, rtol=2e-5)
    if epochs == length:
        assert reference.pruned_share > 0.05
