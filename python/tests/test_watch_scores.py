"""The score output-gradient through handler.watch: known norms, known losses."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import tamis
import torch
import torch.distributed as dist
import torch.nn.functional as F
from support import IndexDataset, batch_loss
from test_distributed import run_ranks
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from watching import Classifier, LanguageModel, Regressor, inputs_of

SIZE = 32


def make(policy="none", epochs=2, **options):
    return tamis.prune(IndexDataset(SIZE), policy, epochs=epochs, score="output-gradient", **options)


def observed(handler, step):
    """{sample: score} after one epoch of step(ids) -> loss."""
    for ids, _ in handler.loader(8):
        handler.update(step(ids)).backward()
    assert handler.num_observations == SIZE // 8
    return handler.scores


def shares(values, loss):
    return loss * values / values.mean()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_of_cross_entropy_the_norms_are_el2n(dtype):
    handler, model, expected = make(), Classifier().to(dtype), np.zeros(SIZE)
    handler.watch(model)

    def step(ids):
        inputs, labels = inputs_of(ids, dtype)
        outputs = model(inputs)
        loss = F.cross_entropy(outputs, labels)
        with torch.no_grad():
            el2n = (outputs.softmax(1) - F.one_hot(labels, 5)).norm(dim=1)
        expected[ids.numpy()] = shares(el2n, loss.detach()).numpy()
        return loss

    np.testing.assert_allclose(observed(handler, step), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("way", ["module", "outputs"])
def test_of_cross_entropy_the_per_sample_loss_is_recovered(dtype, way):
    handler, model, expected = make(cross_entropy=True), Classifier(), np.zeros(SIZE)
    if way == "module":
        handler.watch(model)

    def step(ids):
        inputs, labels = inputs_of(ids, torch.float32)
        outputs = model(inputs) if way == "module" else handler.watch(model(inputs))
        outputs = outputs.to(dtype)  # of low precision, the gradients are, too
        expected[ids.numpy()] = F.cross_entropy(outputs.detach().double(), labels, reduction="none")
        return F.cross_entropy(outputs, labels)

    tolerance = 1e-5 if dtype != torch.bfloat16 else 0.02
    np.testing.assert_allclose(observed(handler, step), expected, rtol=tolerance)


def test_of_cross_entropy_infobatch_prunes_as_by_the_losses_and_weighs_exactly():
    by_loss = tamis.prune(IndexDataset(SIZE), "infobatch", epochs=4)
    by_gradient = tamis.prune(IndexDataset(SIZE), "ogs-infobatch", epochs=4, cross_entropy=True)
    models = [Classifier().double()]
    models.append(copy.deepcopy(models[0]))
    by_gradient.watch(models[1])
    loaders = by_loss.loader(8), by_gradient.loader(8)
    for _ in range(4):
        for (ids, _), (same, _) in zip(*loaders, strict=True):
            assert ids.tolist() == same.tolist()
            inputs, labels = inputs_of(ids, torch.float64)
            losses = F.cross_entropy(models[0](inputs), labels, reduction="none")
            by_loss.update(losses).backward()
            by_gradient.update(F.cross_entropy(models[1](inputs), labels)).backward()
            for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
                torch.testing.assert_close(a.grad, b.grad, rtol=1e-9, atol=1e-12)
                with torch.no_grad():
                    step = 0.05 * a.grad
                    for parameter in (a, b):
                        parameter -= step
                        parameter.grad = None
        np.testing.assert_allclose(by_loss.scores, by_gradient.scores, rtol=1e-5)
    assert by_loss.pruned_share == by_gradient.pruned_share > 0


def test_of_squared_errors_power_2_gives_the_per_sample_loss():
    handler, model, expected = make(power=2.0), Regressor(), np.zeros(SIZE)
    handler.watch(model)

    def step(ids):
        inputs, labels = inputs_of(ids, torch.float32)
        losses = model.losses(model(inputs), labels)
        expected[ids.numpy()] = losses.detach().numpy()
        return losses.mean()

    np.testing.assert_allclose(observed(handler, step), expected, rtol=1e-5)


@pytest.mark.parametrize("watched", ["logits", "input"])
@pytest.mark.parametrize("per_token", [False, True])
def test_of_sequences_tokens_are_added_up_by_squares_or_by_norms(watched, per_token):
    handler, model, expected = make(), LanguageModel().double(), np.zeros(SIZE)
    if watched == "input":
        handler.watch(model.head, at="input", per_token=per_token)

    def step(ids):
        inputs, labels = inputs_of(ids, torch.float64)
        outputs = model(inputs)
        tensor = outputs["logits"] if watched == "logits" else outputs["hidden_states"][1]
        loss = F.cross_entropy(outputs["logits"][:, -1], labels) + outputs["logits"].square().mean()
        (gradient,) = torch.autograd.grad(loss, tensor, retain_graph=True)
        tokens = gradient.norm(dim=2)
        norms = tokens.sum(1) if per_token else tokens.square().sum(1).sqrt()
        expected[ids.numpy()] = shares(norms, loss.detach()).numpy()
        if watched == "logits":
            outputs = handler.watch(outputs, per_token=per_token)
            loss = F.cross_entropy(outputs["logits"][:, -1], labels)
            loss = loss + outputs["logits"].square().mean()
        return loss

    np.testing.assert_allclose(observed(handler, step), expected, rtol=1e-5)


@pytest.mark.parametrize("place", ["output", "input of the head", "per-sample losses"])
def test_norms_are_those_of_the_unweighted_loss(place):
    """In an epoch with weights the norms must not contain them."""
    handler, model = make("infobatch", epochs=8), Regressor().double()
    target = model.layers[-1] if place == "input of the head" else model
    handler.watch(target, at="input" if place == "input of the head" else "output")
    num_mixed = 0
    for _ in range(5):
        for ids, _ in handler.loader(8):
            inputs, labels = inputs_of(ids, torch.float64)
            twin = copy.deepcopy(model)
            hidden = twin.layers[:-1](inputs.flatten(1))
            outputs = twin.layers[-1](hidden)
            loss = twin.losses(outputs, labels).mean()
            wanted = hidden if place == "input of the head" else outputs
            norms = torch.autograd.grad(loss, wanted)[0].norm(dim=1)
            losses = model.losses(model(inputs), labels)
            handler.update(losses if place == "per-sample losses" else losses.mean()).backward()
            expected = shares(norms, loss.detach()).numpy()
            np.testing.assert_allclose(handler.scores[ids.numpy()], expected, rtol=1e-5)
            num_mixed += len(set(handler.weights[ids.numpy()])) > 1
    assert num_mixed > 3


def test_other_scores_take_the_loss_and_leave_the_norms_aside(make_handler):
    """BLS with watched outputs: exact weights, the same scores."""
    scores = []
    for watched in (False, True):
        handler = make_handler(size=SIZE)
        parameter = nn.Linear(1, 1)
        for ids, _ in handler.loader(8):
            values = torch.ones(len(ids), 1)
            outputs = handler.watch(parameter(values)) if watched else parameter(values)
            loss = outputs.square().mean() * 0 + batch_loss(ids) + 1e-9 * outputs.sum()
            handler.update(loss).backward()
        scores.append(handler.scores)
    np.testing.assert_array_equal(*scores)


def test_all_norms_zero_are_skipped():
    handler = make()
    layer = nn.Linear(1, 1)
    for ids, _ in handler.loader(8):
        outputs = handler.watch(layer(torch.ones(len(ids), 1)))
        handler.update(outputs.sum() * 0.0 + 1.0).backward()
    assert handler.num_skipped_observations == 4
    assert np.isnan(handler.scores).all()


def ddp_epochs(rank, watch_inner):
    """Trains over two ranks; returns gradients, and those of mean(w_i * l_i) over both batches."""
    torch.manual_seed(0)
    model = Regressor().double()
    options = tamis.Options(batch_size=8)
    handler = tamis.prune(
        IndexDataset(64), "infobatch", epochs=6, score="output-gradient", options=options
    )
    if watch_inner:
        handler.watch(model)
    parallel = DistributedDataParallel(model)
    if not watch_inner:
        handler.watch(parallel)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    worst, num_mixed = 0.0, 0
    for _ in range(4):
        for ids, _ in handler.loader(8):
            inputs, labels = inputs_of(ids, torch.float64)
            weights = torch.from_numpy(handler.weights[ids.numpy()]).double()
            num_mixed += len(set(weights.tolist())) > 1
            twin = copy.deepcopy(model)
            (twin.losses(twin(inputs), labels) * weights).mean().backward()
            expected = torch.cat([p.grad.flatten() for p in twin.parameters()])
            dist.all_reduce(expected)
            optimizer.zero_grad()
            handler.update(model.losses(parallel(inputs), labels).mean()).backward()
            gradient = torch.cat([p.grad.flatten() for p in model.parameters()])
            error = (gradient - expected / 2).norm() / expected.norm()
            worst = max(worst, float(error))
            optimizer.step()
    handler.set_epoch(4)
    return worst, num_mixed, handler.num_observations, handler.scores


@pytest.mark.parametrize("watch_inner", [True, False])
def test_two_ranks_have_exact_weights_and_the_same_scores(watch_inner):
    results = run_ranks(2, ddp_epochs, watch_inner)
    assert all(worst < 1e-12 and num_mixed > 2 for worst, num_mixed, _, _ in results)
    np.testing.assert_array_equal(results[0][3], results[1][3])
    assert np.isfinite(results[0][3]).all()
    assert results[0][2] == results[1][2]


def test_suspects_are_the_samples_with_wrong_labels():
    torch.manual_seed(1)
    centres = torch.randn(5, 72)
    labels = torch.arange(200) % 5
    inputs = centres[labels] + 0.3 * torch.randn(200, 72)
    wrong = torch.arange(3, 200, 11)
    labels[wrong] = (labels[wrong] + 1) % 5
    handler = tamis.prune(IndexDataset(200), "none", score="output-gradient", epochs=8)
    model = nn.Linear(72, 5)
    handler.watch(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for _ in range(8):
        for ids, _ in handler.loader(16):
            optimizer.zero_grad()
            handler.update(F.cross_entropy(model(inputs[ids]), labels[ids])).backward()
            optimizer.step()
    assert set(handler.suspects(len(wrong))) == set(wrong.tolist())
    scores = handler.scores[handler.suspects(200)]
    assert (np.diff(scores) <= 0).all() and len(scores) == 200


def test_unscored_samples_are_no_suspects():
    handler = make()
    assert len(handler.suspects(5)) == 0
    with pytest.raises(ValueError, match="suspects: k must be a whole number of at least 1, got 0"):
        handler.suspects(0)
