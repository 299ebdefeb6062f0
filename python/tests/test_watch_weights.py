"""Exact weights: with watched outputs the parameters get the gradient of mean(w_i * l_i)."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import tamis
import torch
from support import IndexDataset
from watching import (
    SIZE,
    Classifier,
    Detector,
    LanguageModel,
    Regressor,
    error_of,
    expected_gradient,
    gradient_of,
    inputs_of,
    weighted_epoch,
)

TOLERANCE = {torch.float32: 1e-6, torch.float64: 1e-12}
MODELS = [Classifier, Regressor, Detector, LanguageModel]


def walk(handler, model, dtype, num_batches=4, micro_batches=1):
    """Watched steps over one epoch; yields the gradient of each and that it should have."""
    loader = weighted_epoch(handler)
    handler.watch(model)
    iterator = iter(loader)
    has_mixed = False
    for _ in range(num_batches):
        batches = []
        for _ in range(micro_batches):
            ids, _ = next(iterator)
            batches.append(ids)
            inputs, labels = inputs_of(ids, dtype)
            twin = copy.deepcopy(model)  # before batch norms see the batch
            loss = handler.update(model.losses(model(inputs), labels).mean())
            (loss / micro_batches).backward()
            has_mixed = has_mixed or len(set(handler.weights[ids.numpy()])) > 1
        yield gradient_of(model), expected_gradient(twin, handler, batches, dtype)
    assert has_mixed


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("make_model", MODELS)
@pytest.mark.parametrize("micro_batches", [1, 2])
def test_the_gradient_is_that_of_the_weighted_per_sample_losses(
    make_handler, make_model, dtype, micro_batches
):
    model = make_model().to(dtype)
    handler = make_handler(size=200)
    for gradient, expected in walk(handler, model, dtype, micro_batches=micro_batches):
        assert error_of(gradient, expected) < TOLERANCE[dtype]


def test_without_exact_weights_the_gradient_is_that_of_the_mean_weight(make_handler):
    handler, model = make_handler(size=200), Classifier().double()
    loader = weighted_epoch(handler)
    handler.watch(model, exact_weights=False)
    for step, (ids, _) in enumerate(loader):
        inputs, labels = inputs_of(ids, torch.float64)
        twin = copy.deepcopy(model)
        handler.update(model.losses(model(inputs), labels).mean()).backward()
        weights = handler.weights[ids.numpy()]
        (twin.losses(twin(inputs), labels).mean() * weights.mean(dtype=np.float64)).backward()
        plain = gradient_of(twin)
        gradient = gradient_of(model)
        assert error_of(gradient, plain) < 1e-12
        if len(set(weights)) > 1:
            assert error_of(gradient, expected_gradient(twin, handler, [ids], torch.float64)) > 1e-3
        if step == 3:
            break


def test_outputs_that_feed_each_other_need_identity_nodes(make_handler):
    """Hooks on the tensors themselves weigh what flows through both twice."""
    handler, model = make_handler(size=200), LanguageModel().double()
    loader = weighted_epoch(handler)
    for ids, _ in loader:
        weights = torch.from_numpy(handler.weights[ids.numpy()]).double()
        if len(set(weights.tolist())) > 1:
            break
    inputs, labels = inputs_of(ids, torch.float64)
    outputs = model(inputs)
    for tensor in (outputs["logits"], *outputs["hidden_states"]):
        tensor.register_hook(lambda g: g * (weights / weights.mean()).view(-1, 1, 1))
    (model.losses(outputs, labels).mean() * weights.mean()).backward()
    naive = gradient_of(model)
    expected = expected_gradient(model, handler, [ids], torch.float64)
    assert error_of(naive, expected) > 1e-2


@pytest.mark.parametrize("watched", ["outputs", "head", "input of the head"])
def test_every_place_to_watch_gives_the_same_gradient(make_handler, watched):
    handler, model = make_handler(size=200), LanguageModel().double()
    loader = weighted_epoch(handler)
    if watched == "head":
        handler.watch(model.head)
    elif watched == "input of the head":
        handler.watch(model.head, at="input")
    for step, (ids, _) in enumerate(loader):
        inputs, labels = inputs_of(ids, torch.float64)
        outputs = model(inputs)
        if watched == "outputs":
            outputs = handler.watch(outputs)
        outputs["hidden_states"] = [torch.zeros(len(ids), 1, 1)]  # a loss of the logits alone
        handler.update(model.losses(outputs, labels).mean()).backward()
        gradient = gradient_of(model)
        weights = torch.from_numpy(handler.weights[ids.numpy()]).double()
        outputs = model.eval()(inputs)
        outputs["hidden_states"] = [torch.zeros(len(ids), 1, 1)]
        (model.losses(outputs, labels) * weights).mean().backward()
        model.train()
        assert error_of(gradient, gradient_of(model)) < 1e-12
        if step == 3:
            break


def test_per_sample_losses_are_weighted_once(make_handler):
    handler, model = make_handler(size=200), Classifier().double()
    loader = weighted_epoch(handler)
    handler.watch(model)
    for step, (ids, _) in enumerate(loader):
        inputs, labels = inputs_of(ids, torch.float64)
        twin = copy.deepcopy(model)
        handler.update(model.losses(model(inputs), labels)).backward()
        expected = expected_gradient(twin, handler, [ids], torch.float64)
        assert error_of(gradient_of(model), expected) < 1e-12
        if step == 3:
            break


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_rounds_no_more_than_the_gradient_itself(make_handler, dtype):
    handler = make_handler(size=200)
    model = Regressor()
    loader = weighted_epoch(handler)
    handler.watch(model)
    for step, (ids, _) in enumerate(loader):
        inputs, labels = inputs_of(ids, torch.float32)
        twin = copy.deepcopy(model)
        with torch.autocast("cpu", dtype):
            outputs = model(inputs)
            assert outputs.dtype is dtype
            loss = model.losses(outputs.float(), labels).mean()
        handler.update(loss).backward()
        expected = expected_gradient(twin, handler, [ids], torch.float32)
        assert error_of(gradient_of(model), expected) < 0.03
        if step == 3:
            break


def test_the_loss_that_is_returned_has_the_mean_weight(make_handler):
    handler, model = make_handler(size=200), Classifier()
    loader = weighted_epoch(handler)
    handler.watch(model)
    for ids, _ in loader:
        inputs, labels = inputs_of(ids, torch.float32)
        loss = model.losses(model(inputs), labels).mean()
        weighted = handler.update(loss)
        mean = handler.weights[ids.numpy()].mean(dtype=np.float64)
        torch.testing.assert_close(weighted, loss * mean)
        weighted.backward()


def test_a_policy_without_weights_leaves_the_gradient_alone():
    handler = tamis.prune(IndexDataset(48), "bls-trim", epochs=2)
    model = Regressor().double()
    handler.watch(model)
    for ids, _ in handler.loader(SIZE):
        inputs, labels = inputs_of(ids, torch.float64)
        twin = copy.deepcopy(model)
        handler.update(model.losses(model(inputs), labels).mean()).backward()
        twin.losses(twin(inputs), labels).mean().backward()
        assert torch.equal(gradient_of(model), gradient_of(twin))


@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_rows_read_in_memory_give_what_torch_gives(dtype):
    """A module's only output is read where it is, outputs in the loop by operations of torch."""
    found = []
    for in_memory in (True, False):
        torch.manual_seed(0)
        model = Classifier().to(dtype)
        handler = tamis.prune(IndexDataset(200), "ogs-infobatch", epochs=4)
        if in_memory:
            handler.watch(model)
        loader, gradients = handler.loader(SIZE), []
        for _ in range(3):
            for ids, _ in loader:
                inputs, labels = inputs_of(ids, dtype)
                outputs = model(inputs)
                if not in_memory:
                    outputs = handler.watch(outputs)
                handler.update(model.losses(outputs, labels).mean()).backward()
                gradients.append(gradient_of(model))
        assert len(np.unique(handler.weights)) > 1
        found.append((handler.scores, torch.cat(gradients)))
    (scores, gradients), (expected_scores, expected_gradients) = found
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-6)
    assert error_of(gradients, expected_gradients) < TOLERANCE[dtype]
