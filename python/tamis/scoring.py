"""Scores of static methods: measured once, before a training on the samples that they choose.

Train a model for a few epochs, score every sample, keep the highest, and train from scratch on these:

    scores = tamis.scoring.el2n(model, DataLoader(train_set, batch_size=500))
    kept = scores.topk(len(scores) // 2).indices.tolist()
    subset = torch.utils.data.Subset(train_set, kept)

`tamis train --method el2n` (grand, dp, forgetting) does all of it and counts the time of the scoring.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ._extras import needed_by

with needed_by("tamis.scoring", "torch", "torch"):
    import torch
    from torch import Tensor, nn


def el2n(model: nn.Module, batches: Iterable[tuple[Any, Tensor]]) -> Tensor:
    """EL2N: the norm of softmax minus label, one number per sample.

    Paul et al., Deep Learning on a Data Diet, 2021.

    Args:
        model: A classifier that maps inputs to logits, trained for some epochs (the paper: 10 to 20).
        batches: (inputs, labels) of all samples, in order: a loader that does not shuffle.

    Returns:
        The scores, in the order of the samples.
    """
    scores = []
    with _evaluating(model), torch.no_grad():
        for inputs, labels in batches:
            probabilities = model(inputs).softmax(1)
            errors = probabilities - nn.functional.one_hot(labels, probabilities.shape[1])
            scores.append(errors.norm(dim=1))
    return _joined("el2n", scores)


def grand(
    model: nn.Module,
    batches: Iterable[tuple[Any, Tensor]],
    loss: Callable[[Tensor, Tensor], Tensor] = nn.functional.cross_entropy,
) -> Tensor:
    """GraNd: the norm of the gradient of a sample's loss by all trained parameters.

    Paul et al., Deep Learning on a Data Diet, 2021. All samples of a batch in one pass (torch.func.vmap), in evaluation mode, where
    batch norm does not couple the samples. A batch needs its size times the memory of the parameters.

    Args:
        model: Maps inputs to outputs, trained for few epochs (the paper: from the first step on).
        batches: (inputs, labels) of all samples, in order: a loader that does not shuffle.
        loss: Maps the outputs and labels of a batch of one to a scalar.

    Returns:
        The scores, in the order of the samples.
    """
    trained = {name: value.detach() for name, value in model.named_parameters() if value.requires_grad}
    fixed = {name: value.detach() for name, value in model.named_parameters() if not value.requires_grad}
    if not trained:
        raise ValueError("grand: model must have a parameter with requires_grad, got none")
    buffers = dict(model.named_buffers())

    def loss_of_one(parameters: dict[str, Tensor], sample: Tensor, label: Tensor) -> Tensor:
        outputs = torch.func.functional_call(model, (parameters, fixed, buffers), (sample.unsqueeze(0),))
        return loss(outputs, label.unsqueeze(0))

    gradients_of = torch.func.vmap(torch.func.grad(loss_of_one), in_dims=(None, 0, 0))
    scores = []
    with _evaluating(model):
        for inputs, labels in batches:
            gradients = gradients_of(trained, inputs, labels)
            squares = [gradient.flatten(1).square().sum(1) for gradient in gradients.values()]
            scores.append(torch.stack(squares).sum(0).sqrt())
    return _joined("grand", scores)


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def _joined(name: str, scores: list[Tensor]) -> Tensor:
    if not scores:
        raise ValueError(f"{name}: batches must have at least one batch, got none")
    return torch.cat(scores)
