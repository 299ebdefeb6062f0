"""Watched outputs in every training loop: each batch is observed once, with its own norms."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
import tamis
import torch
from support import IndexDataset, make_loader, one_ahead, rebuild
from torch import nn
from torch.utils.checkpoint import checkpoint
from watching import (
    Classifier,
    LanguageModel,
    Regressor,
    error_of,
    expected_gradient,
    expected_scores,
    gradient_of,
    inputs_of,
    train_step,
    weighted_epoch,
)


def make(size=48, epochs=3, method="ogs-trim", **options):
    return tamis.prune(
        IndexDataset(size), method, epochs=epochs, options=tamis.Options(batch_size=8, **options)
    )


def assert_scored(handler, expected):
    """`expected`: scores by sample."""
    scores = handler.scores
    ids = sorted(expected)
    np.testing.assert_allclose(scores[ids], [expected[i] for i in ids], rtol=1e-5)
    assert np.isnan(np.delete(scores, ids)).all()


def note(expected, ids, scores):
    expected.update(zip(ids.tolist(), scores, strict=True))


@pytest.mark.parametrize("mode", ["loader", "sampler", "batch_sampler"])
@pytest.mark.parametrize("delayed", [False, True])
def test_every_sample_gets_the_score_of_its_output(monkeypatch, mode, delayed):
    handler, model = make(), Classifier().double()
    handler.watch(model)
    loader = make_loader(handler, mode)
    # As on a GPU: observed at a later update.
    monkeypatch.setattr(type(handler._run), "is_delayed", property(lambda _: delayed))
    expected = {}
    for ids, _ in loader:
        note(expected, ids, train_step(handler, model, ids))
    assert handler.num_observations == 6
    assert_scored(handler, expected)


def test_delayed_norms_are_observed_at_a_later_update():
    handler, model = make(), Classifier().double()
    handler.watch(model)
    pruner = handler._run.pruner
    for step, (ids, _) in enumerate(handler.loader(8, delayed=True)):
        # The first batch waits for the update before, so that it does not look missed.
        assert pruner.num_observations >= max(step - 1, 0)
        before = pruner.num_observations
        train_step(handler, model, ids)
        assert pruner.num_observations == before + (step > 0 and before < step)
    assert handler.num_observations == 6


@pytest.mark.parametrize("how", ["batch", "ids"])
def test_ids_are_right_behind_a_look_ahead(how):
    handler, model = make(), Classifier().double()
    handler.watch(model)
    expected = {}
    for batch in one_ahead(rebuild(handler.loader(8))):
        ids = batch[0]
        update = {"batch": batch} if how == "batch" else {"ids": ids}
        note(expected, ids, train_step(handler, model, ids, **update))
    assert_scored(handler, expected)


def index_and_label(samples):
    ids = torch.tensor([index for index, _ in samples])
    return ids, ids % 5


def test_ids_may_ride_on_the_labels():
    handler, model = make(), Classifier().double()
    handler.watch(model)
    expected = {}
    loader = handler.loader(8, carry="labels", collate_fn=index_and_label)
    for ids, labels in one_ahead(loader):
        inputs, _ = inputs_of(ids, torch.float64)
        note(expected, ids, expected_scores(model, ids))
        handler.update(nn.functional.cross_entropy(model(inputs), labels)).backward()
    assert handler.num_observations == 6
    assert_scored(handler, expected)


def test_outputs_in_the_loop_and_a_module_once_give_the_same_scores():
    model = Classifier().double()
    scores = []
    for in_loop in (True, False):
        handler, twin = make(), copy.deepcopy(model)
        if not in_loop:
            handler.watch(twin)
        for ids, _ in handler.loader(8):
            inputs, labels = inputs_of(ids, torch.float64)
            outputs = handler.watch(twin(inputs)) if in_loop else twin(inputs)
            handler.update(twin.losses(outputs, labels).mean()).backward()
        scores.append(handler.scores)
    np.testing.assert_array_equal(*scores)


def test_gradient_accumulation_observes_every_micro_batch():
    handler, model = make(), Classifier().double()
    handler.watch(model)
    expected, losses = {}, []
    for ids, _ in handler.loader(8):
        note(expected, ids, expected_scores(model, ids))
        inputs, labels = inputs_of(ids, torch.float64)
        losses.append(handler.update(model.losses(model(inputs), labels).mean()) / 3)
        if len(losses) == 3:  # one backward pass for three updates
            sum(losses).backward()
            losses = []
    assert handler.num_observations == 6
    assert_scored(handler, expected)


def test_several_forward_passes_of_a_step_add_their_squares():
    handler, model = make(), Regressor().double()
    handler.watch(model)
    expected = {}
    for ids, _ in handler.loader(8):
        inputs, labels = inputs_of(ids, torch.float64)
        twin = copy.deepcopy(model)
        first, second = twin(inputs), twin(inputs.flip(1))
        loss = (twin.losses(first, labels) + 2 * twin.losses(second, labels)).mean()
        gradients = torch.autograd.grad(loss, (first, second))
        norms = torch.cat(gradients, 1).norm(dim=1)
        note(expected, ids, (loss.detach() * norms / norms.mean()).numpy())
        loss = model.losses(model(inputs), labels) + 2 * model.losses(model(inputs.flip(1)), labels)
        handler.update(loss.mean()).backward()
    assert_scored(handler, expected)


def test_a_forward_pass_that_the_loss_does_not_use_does_not_count():
    handler, model = make(), Classifier().double()
    handler.watch(model)
    expected = {}
    for ids, _ in handler.loader(8):
        note(expected, ids, expected_scores(model, ids))
        other, _ = inputs_of(torch.arange(30), torch.float64)
        inputs, labels = inputs_of(ids, torch.float64)
        outputs = model(inputs)
        model(other)  # an evaluation in training mode, of another size
        with torch.no_grad():
            model(other)
        model.eval()(other)
        model.train()
        handler.update(model.losses(outputs, labels).mean()).backward()
    assert_scored(handler, expected)


@pytest.mark.parametrize("how", ["retain_graph", "create_graph"])
def test_a_second_backward_pass_is_weighted_but_not_observed(make_handler, how):
    handler, model = make_handler(size=200), Classifier().double()
    loader = weighted_epoch(handler)
    handler.watch(model)
    for step, (ids, _) in enumerate(loader):
        expected = expected_gradient(model, handler, [ids], torch.float64)
        inputs, labels = inputs_of(ids, torch.float64)
        before = handler.num_observations
        loss = handler.update(model.losses(model(inputs), labels).mean())
        first = torch.autograd.grad(loss, list(model.parameters()), **{how: True})
        assert error_of(torch.cat([g.flatten() for g in first]), expected) < 1e-12
        assert handler.num_observations == before + 1
        loss.backward(retain_graph=how == "create_graph")
        assert error_of(gradient_of(model), expected) < 1e-12
        if how == "create_graph":
            sum(g.square().sum() for g in first).backward()
            assert gradient_of(model).isfinite().all()
        assert handler.num_observations == before + 1
        if step == 2:
            break


def test_a_gradient_taken_before_the_update_is_no_backward_pass():
    """As a gradient penalty or an adaptive weight takes it."""
    handler, model = make(), Regressor().double()
    handler.watch(model)
    for ids, _ in handler.loader(8):
        inputs, labels = inputs_of(ids, torch.float64)
        inputs.requires_grad_()
        outputs = model(inputs)
        (gradient,) = torch.autograd.grad(outputs.sum(), inputs, create_graph=True)
        loss = model.losses(outputs, labels).mean() + gradient.square().mean()
        handler.update(loss).backward()
    assert handler.num_observations == 6


def test_a_skipped_backward_pass_is_missed():
    handler, model = make(), Classifier().double()
    handler.watch(model)
    expected = {}
    for step, (ids, _) in enumerate(handler.loader(8)):
        scores = expected_scores(model, ids)
        inputs, labels = inputs_of(ids, torch.float64)
        loss = handler.update(model.losses(model(inputs), labels).mean())
        if step in (0, 3):
            continue
        loss.backward()
        note(expected, ids, scores)
    assert_scored(handler, expected)
    with pytest.warns(tamis.MissedUpdateWarning, match="2 updates with watched outputs had no"):
        assert handler.num_missed_updates == 2


def test_a_backward_pass_after_the_loop_still_counts():
    handler, model = make(), Classifier().double()
    handler.watch(model)
    expected, losses = {}, []
    for ids, _ in handler.loader(8):
        note(expected, ids, expected_scores(model, ids))
        inputs, labels = inputs_of(ids, torch.float64)
        losses.append(handler.update(model.losses(model(inputs), labels).mean()))
    assert handler.progress > 0  # looking must not end the pass
    assert handler.num_missed_updates == 0
    sum(losses).backward()
    assert_scored(handler, expected)


@pytest.mark.parametrize("mode", ["loader", "sampler"])
def test_a_backward_pass_that_comes_after_the_next_epoch_began_is_not_observed(mode):
    handler, model = make(), Classifier().double()
    handler.watch(model)
    loader = make_loader(handler, mode)
    for ids, _ in loader:
        inputs, labels = inputs_of(ids, torch.float64)
        late = handler.update(model.losses(model(inputs), labels).mean())
        if int(ids[0]) != handler.plan[40]:
            late.backward()
    with pytest.warns(tamis.MissedUpdateWarning, match="1 updates with watched outputs had no"):
        handler.set_epoch(1)
    count = handler.num_observations
    late.backward()
    assert handler.num_observations == count == 5


@pytest.mark.parametrize("mode", ["loader", "sampler"])
def test_a_state_of_the_middle_of_an_epoch_carries_the_norms(mode):
    model = Classifier().double()
    scores = []
    for interrupted in (False, True):
        handler = make(seed=3)
        handler.watch(model)
        for step, (ids, _) in enumerate(make_loader(handler, mode)):
            train_step(handler, model, ids)
            if interrupted and step == 2:
                break
        if interrupted:
            state = handler.state_dict()
            handler = make(seed=3)
            handler.watch(model)
            handler.load_state_dict(state)
            for ids, _ in make_loader(handler, mode):
                train_step(handler, model, ids)
        handler.end_pass()
        scores.append(handler.scores)
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_scores_do_not_depend_on_a_loss_scale(dtype):
    """A GradScaler multiplies the loss; the norms are taken in float32."""
    model = Classifier()
    scores = []
    for scale in (1.0, 2.0**14):
        handler, twin = make(), copy.deepcopy(model)
        handler.watch(twin)
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        optimizer = torch.optim.SGD(twin.parameters(), lr=0.0)
        for ids, _ in handler.loader(8):
            inputs, labels = inputs_of(ids, torch.float32)
            with torch.autocast("cpu", dtype):
                loss = twin.losses(twin(inputs).float(), labels).mean()
            scaler.scale(handler.update(loss)).backward()
            scaler.step(optimizer)
            scaler.update()
        assert handler.num_skipped_observations == 0
        scores.append(handler.scores)
    np.testing.assert_allclose(*scores, rtol=0.02 if dtype is torch.bfloat16 else 0.005)


def test_norms_that_overflow_are_skipped_and_counted():
    handler, model = make(), Regressor().double()
    handler.watch(model)
    for step, (ids, _) in enumerate(handler.loader(8)):
        inputs, labels = inputs_of(ids, torch.float64)
        loss = handler.update(model.losses(model(inputs), labels).mean())
        (loss * (float("inf") if step == 1 else 1.0)).backward()
    assert handler.num_observations == 5
    assert handler.num_skipped_observations == 1
    assert np.isnan(handler.scores).sum() == 8


class Checkpointed(nn.Module):
    def __init__(self, model, use_reentrant):
        super().__init__()
        self.model, self.use_reentrant = model, use_reentrant
        self.losses = model.losses

    def forward(self, inputs):
        body, head = self.model.layers[:-1], self.model.layers[-1]
        inputs = inputs.view(-1, 2, 6, 6).requires_grad_()
        return head(checkpoint(body, inputs, use_reentrant=self.use_reentrant))


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_activation_checkpointing_changes_nothing(make_handler, use_reentrant):
    handler, model = make_handler(size=200), Classifier().double()
    for layer in model.layers:
        if isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d)):
            layer.momentum = 0.0  # the recomputation sees the batch a second time
    loader = weighted_epoch(handler)
    wrapped = Checkpointed(model, use_reentrant)
    handler.watch(wrapped)
    for step, (ids, _) in enumerate(loader):
        expected = expected_gradient(model, handler, [ids], torch.float64)
        inputs, labels = inputs_of(ids, torch.float64)
        before = handler.num_observations
        handler.update(model.losses(wrapped(inputs), labels).mean()).backward()
        assert error_of(gradient_of(model), expected) < 1e-12
        assert handler.num_observations == before + 1
        if step == 3:
            break


def test_a_module_inside_a_checkpoint_is_watched_in_its_first_run():
    """Its second run, inside the backward pass, hands on nothing."""
    handler, model = make(), Classifier().double()
    expected = {}
    handler.watch(model.layers)
    for ids, _ in handler.loader(8):
        note(expected, ids, expected_scores(model, ids))
        inputs, labels = inputs_of(ids, torch.float64)
        outputs = checkpoint(model, inputs, use_reentrant=False)
        handler.update(model.losses(outputs, labels).mean()).backward()
    assert_scored(handler, expected)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("order", ["watch, compile", "compile, watch", "loop"])
def test_a_compiled_model_is_watched_outside(backend, order):
    torch._dynamo.reset()
    handler, model = make(), Classifier().double()
    expected = {}
    if order == "watch, compile":
        handler.watch(model)
    compiled = torch.compile(model, backend=backend)
    if order == "compile, watch":
        handler.watch(compiled)
    for ids, _ in handler.loader(8):
        note(expected, ids, expected_scores(model, ids))
        inputs, labels = inputs_of(ids, torch.float64)
        outputs = compiled(inputs)
        if order == "loop":
            outputs = handler.watch(outputs)
        handler.update(model.losses(outputs, labels).mean()).backward()
    assert_scored(handler, expected)


def test_a_compiled_step_is_broken_at_the_watched_outputs():
    torch._dynamo.reset()
    handler, model = make(), Classifier().double()
    handler.watch(model)

    @torch.compile(backend="aot_eager")
    def step(inputs, labels):
        return handler.update(model.losses(model(inputs), labels).mean())

    expected = {}
    for ids, _ in handler.loader(8):
        note(expected, ids, expected_scores(model, ids))
        step(*inputs_of(ids, torch.float64)).backward()
    assert_scored(handler, expected)


def test_modules_that_give_the_same_output_are_watched_once(make_handler):
    handler, model = make_handler(size=200), Classifier().double()
    loader = weighted_epoch(handler)
    handler.watch(model.layers[-1])
    handler.watch(model.layers)
    handler.watch(model)
    for step, (ids, _) in enumerate(loader):
        expected = expected_gradient(model, handler, [ids], torch.float64)
        inputs, labels = inputs_of(ids, torch.float64)
        outputs = handler.watch({"logits": model(inputs)})["logits"]
        handler.update(model.losses(outputs, labels).mean()).backward()
        assert error_of(gradient_of(model), expected) < 1e-12
        if step == 3:
            break


@pytest.mark.parametrize("watched", ["module", "outputs"])
def test_outputs_may_be_changed_in_place(watched):
    handler, model = make(), Classifier().double()
    if watched == "module":
        handler.watch(model)
    plain = copy.deepcopy(model)
    for ids, _ in handler.loader(8):
        inputs, labels = inputs_of(ids, torch.float64)
        for one in (model, plain):
            outputs = one(inputs)
            if watched == "outputs" and one is model:
                outputs = handler.watch(outputs)
            outputs /= 2.0
            loss = one.losses(outputs, labels).mean()
            (handler.update(loss) if one is model else loss).backward()
        assert torch.equal(gradient_of(model), gradient_of(plain))
    assert handler.num_observations == 6


def test_copies_and_saved_models_are_not_watched():
    handler, model = make(), Classifier().double()
    handler.watch(model)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    copies = [copy.deepcopy(model), torch.load(file, weights_only=False)]
    copies.append(pickle.loads(pickle.dumps(model)))
    expected = {}
    for ids, _ in handler.loader(8):
        for one in copies:
            one(inputs_of(ids, torch.float64)[0]).sum().backward()
        note(expected, ids, train_step(handler, model, ids))
    assert_scored(handler, expected)


def test_a_model_does_not_keep_the_run_alive_and_works_without_it():
    handler, model = make(), Classifier().double()
    handler.watch(model)
    del handler
    inputs, labels = inputs_of(torch.arange(8), torch.float64)
    model.losses(model(inputs), labels).mean().backward()


def test_a_watch_ends_with_its_handle():
    handler, model = make(method="bls-trim"), Classifier().double()
    with handler.watch(model):
        assert handler.watch(model.layers).remove() is None
        for ids, _ in handler.loader(8):
            train_step(handler, model, ids)
    assert not model._forward_hooks
    assert not model.layers._forward_hooks
    for ids, _ in handler.loader(8):
        inputs, labels = inputs_of(ids, torch.float64)
        handler.update(model.losses(model(inputs), labels).mean())  # nothing watched, all well
    assert handler.num_observations == 6 + len(handler.loader(8))


def test_a_time_first_output_says_which_dimension_counts_samples():
    handler, model = make(), LanguageModel().double()
    expected = {}
    for ids, _ in handler.loader(8):
        inputs, _labels = inputs_of(ids, torch.float64)
        outputs = model(inputs)["logits"]
        loss = outputs.square().sum((1, 2)).mean()
        (gradient,) = torch.autograd.grad(loss, outputs, retain_graph=True)
        norms = gradient.flatten(1).norm(dim=1)
        note(expected, ids, (loss.detach() * norms / norms.mean()).numpy())
        outputs = handler.watch(outputs.transpose(0, 1), batch_dim=1)
        handler.update(outputs.square().sum((0, 2)).mean()).backward()
    assert_scored(handler, expected)
