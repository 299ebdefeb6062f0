"""Scores of static methods are what their paper defines."""

import pytest
import torch
from tamis import scoring
from torch import nn


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3)
    )


def make_batches(sizes=(5, 3)):
    return [(torch.randn(size, 1, 8, 8), torch.randint(3, (size,))) for size in sizes]


def test_el2n_is_the_norm_of_softmax_minus_label():
    model, batches = make_model(), make_batches()
    scores = scoring.el2n(model, batches)
    model.eval()
    samples = [(image, label) for images, labels in batches for image, label in zip(images, labels)]
    for score, (image, label) in zip(scores, samples, strict=True):
        exponents = model(image.unsqueeze(0))[0].double().exp()
        error = exponents / exponents.sum()
        error[label] -= 1
        assert abs(score.item() - error.square().sum().sqrt().item()) < 1e-5


def test_grand_is_the_norm_of_an_explicit_per_sample_gradient():
    model, batches = make_model(), make_batches()
    model[0].bias.requires_grad_(False)
    scores = scoring.grand(model, batches)
    model.eval()
    samples = [(image, label) for images, labels in batches for image, label in zip(images, labels)]
    for score, (image, label) in zip(scores, samples, strict=True):
        model.zero_grad()
        nn.functional.cross_entropy(model(image.unsqueeze(0)), label.unsqueeze(0)).backward()
        norms = [value.grad.double().square().sum() for value in model.parameters() if value.grad is not None]
        assert abs(score.item() - sum(norms).sqrt().item()) < 1e-5


@pytest.mark.parametrize("measure", [scoring.el2n, scoring.grand])
def test_scoring_leaves_the_model_as_it_was(measure):
    model = make_model().train()
    before = [value.clone() for value in model.state_dict().values()]
    measure(model, make_batches())
    assert model.training
    assert all(torch.equal(old, new) for old, new in zip(before, model.state_dict().values(), strict=True))
    assert all(value.grad is None for value in model.parameters())


def test_scoring_needs_a_batch():
    with pytest.raises(ValueError, match="at least one batch, got none"):
        scoring.el2n(make_model(), [])
