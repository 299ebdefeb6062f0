"""Bad input to watched outputs: an error at the first step, with the reason and the cure."""

from __future__ import annotations

import numpy as np
import pytest
import tamis
import torch
from support import IndexDataset
from torch import nn
from torch.utils.checkpoint import checkpoint
from watching import Classifier, LanguageModel, Regressor, inputs_of


@pytest.fixture
def handler():
    options = tamis.Options(batch_size=8)
    return tamis.prune(IndexDataset(24), "ogs-trim", epochs=2, options=options)


@pytest.fixture
def model():
    return Classifier().double()


def first_batch(handler):
    ids, _ = next(iter(handler.loader(8)))
    return inputs_of(ids, torch.float64)


def test_an_update_without_a_watch_names_the_call(handler, model):
    inputs, labels = first_batch(handler)
    with pytest.raises(RuntimeError, match=r"needs watched outputs: call handler.watch\(model\)"):
        handler.update(model.losses(model(inputs), labels).mean())


@pytest.mark.parametrize("wrong", ["tokens", "per_token", "input"])
def test_cross_entropy_takes_one_row_of_logits_per_sample_and_nothing_else(wrong):
    options = tamis.Options(batch_size=8)
    handler = tamis.prune(IndexDataset(24), "ogs-trim", epochs=2, options=options, cross_entropy=1)
    inputs, _ = first_batch(handler)
    model = LanguageModel().double() if wrong == "tokens" else Classifier().double()
    if wrong == "input":
        handler.watch(model.layers[-1], at="input")
    else:
        handler.watch(model, per_token=wrong == "per_token")
    with pytest.raises(ValueError, match="must be the logits, one row per sample"):
        model(inputs)


@pytest.mark.parametrize("batch_dim", [0, 2])
def test_a_first_dimension_that_is_not_the_batch_is_refused_with_both_sizes(handler, batch_dim):
    model = LanguageModel().double()
    inputs, _ = first_batch(handler)
    outputs = model(inputs)["logits"]
    outputs = outputs.transpose(0, 1) if batch_dim == 0 else outputs
    outputs = handler.watch(outputs, batch_dim=batch_dim)
    size = r"\(6, 8, 7\)" if batch_dim == 0 else r"\(8, 6, 7\)"
    message = rf"which are 8, but the output of watch\(outputs\) has shape {size}.*batch_dim="
    with pytest.raises(ValueError, match=message):
        handler.update(outputs.sum())


def test_packed_rows_are_refused(handler):
    model = LanguageModel().double()
    inputs, _ = first_batch(handler)
    outputs = handler.watch(model(inputs)["logits"].reshape(1, 48, 7))
    with pytest.raises(ValueError, match="are packed or flattened, watch a layer"):
        handler.update(outputs.sum())


def test_one_output_of_several_with_other_rows_is_refused_in_backward(handler):
    model = LanguageModel().double()
    inputs, _ = first_batch(handler)
    logits = model(inputs)["logits"]
    logits, flat = handler.watch((logits, logits.reshape(48, 7)))
    handler.update(logits.sum())  # flat is not used: no matter
    logits, flat = handler.watch((model(inputs)["logits"], flat))
    loss = handler.update((logits.sum() + flat.square().sum()), ids=np.arange(8))
    with pytest.raises(ValueError, match=r"which are 8, .* has shape \(48, 7\)"):
        loss.backward()


def test_an_output_that_needs_no_gradient_is_refused(handler, model):
    inputs, _ = first_batch(handler)
    with pytest.raises(ValueError, match=r"needs a gradient, got Tensor with float64 \(8, 5\)"):
        handler.watch(model(inputs).detach())
    with pytest.raises(ValueError, match="int64"):
        handler.watch([model(inputs).argmax(1)])
    with pytest.raises(ValueError, match="str with no tensor"):
        handler.watch("logits")


def test_a_frozen_module_is_refused_in_its_forward_pass(handler, model):
    handler.watch(model.requires_grad_(False))
    inputs, _ = first_batch(handler)
    with pytest.raises(ValueError, match="Classifier must give .* that needs a gradient"):
        model(inputs)


@pytest.mark.parametrize("form", ["detached", "number"])
def test_a_loss_without_a_graph_is_refused(handler, model, form):
    handler.watch(model)
    inputs, labels = first_batch(handler)
    loss = model.losses(model(inputs), labels).mean()
    with pytest.raises(TypeError, match="the loss must be the tensor that backward"):
        handler.update(loss.detach() if form == "detached" else loss.item())


def test_backward_before_update_is_refused(handler, model):
    handler.watch(model)
    inputs, labels = first_batch(handler)
    loss = model.losses(model(inputs), labels).mean()
    loss.backward()
    with pytest.raises(RuntimeError, match=r"backward\(\) has already run"):
        handler.update(loss)


def test_watching_after_the_loss_was_computed_is_said_in_backward(handler, model):
    inputs, labels = first_batch(handler)
    outputs = model(inputs)
    loss = model.losses(outputs, labels).mean()
    handler.watch(outputs)
    with pytest.raises(RuntimeError, match="did not reach the watched outputs of watch"):
        handler.update(loss).backward()


def test_watching_after_backward_is_said_at_the_next_update(handler, model):
    inputs, labels = first_batch(handler)
    outputs = model(inputs)
    loss = handler.watch(model.losses(outputs, labels)).mean()
    handler.update(loss).backward()
    handler.watch(outputs)  # too late, and not used
    with pytest.raises(RuntimeError, match="did not reach the watched outputs"):
        handler.update(model.losses(model(inputs), labels).mean()).backward()


def test_a_loss_made_inside_the_model_names_the_head(handler):
    class Whole(Classifier):
        def forward(self, inputs, labels):
            outputs = super().forward(inputs)
            return {"loss": self.losses(outputs, labels).mean(), "logits": outputs}

    model = Whole().double()
    handler.watch(model)
    loss = model(*first_batch(handler))["loss"]
    with pytest.raises(RuntimeError, match=r"Whole.*handler.watch\(model.head\)"):
        handler.update(loss).backward()


def test_a_loss_that_reaches_the_output_no_more_is_missed(handler, model):
    """The first backward pass says that it is reached, the end of the epoch that it was not."""
    handler.watch(model)
    other = torch.ones((), requires_grad=True, dtype=torch.float64)
    for step, (ids, _) in enumerate(handler.loader(8)):
        inputs, labels = inputs_of(ids, torch.float64)
        loss = model.losses(model(inputs), labels).mean()
        handler.update(loss if step == 0 else other * 2).backward()
    del loss  # its graph is the last through which a backward pass could come
    with pytest.warns(tamis.MissedUpdateWarning, match="2 updates with watched outputs had no"):
        assert handler.num_missed_updates == 2
    assert handler.num_observations == 1


def test_a_copied_output_is_said_also_if_the_graph_is_kept(handler, model):
    handler.watch(model)
    inputs, labels = first_batch(handler)
    weight = next(model.parameters())
    loss = model.losses(model(inputs).detach(), labels).mean() + weight.sum()
    handler.update(loss).backward(retain_graph=True)  # a second one may reach it
    with pytest.raises(RuntimeError, match="did not reach the watched outputs of Classifier"):
        handler.update(loss)


@pytest.mark.parametrize("how", ["forward", "other model"])
def test_a_module_that_is_not_called_is_said_at_the_first_update(handler, model, how):
    handler.watch(model)
    inputs, labels = first_batch(handler)
    outputs = model.forward(inputs) if how == "forward" else Classifier().double()(inputs)
    with pytest.raises(RuntimeError, match="Classifier was not called through its module"):
        handler.update(model.losses(outputs, labels).mean())


def test_two_forward_passes_before_two_updates_are_refused(handler, model):
    handler.watch(model)
    inputs, labels = first_batch(handler)
    losses = [model.losses(model(inputs), labels).mean() for _ in range(2)]
    handler.update(losses[0]).backward()
    with pytest.raises(RuntimeError, match="not between the last update and this one"):
        handler.update(losses[1])


@pytest.mark.parametrize("how", ["eval", "no_grad", "reentrant checkpoint"])
def test_a_hook_that_is_not_active_says_why(handler, model, how):
    handler.watch(model)
    inputs, labels = first_batch(handler)
    reason = {"eval": "was in evaluation mode", "no_grad": "ran without gradients"}
    if how == "eval":
        outputs = model.eval()(inputs)
    elif how == "no_grad":
        with torch.no_grad():
            outputs = model(inputs)
        outputs = outputs + sum(p.sum() for p in model.parameters())
    else:
        outputs = checkpoint(model, inputs.requires_grad_(), use_reentrant=True)
    message = f"no output was watched since the last update.*{reason.get(how, 'without gradients')}"
    with pytest.raises(RuntimeError, match=message):
        handler.update(model.losses(outputs, labels).mean())


def test_a_module_inside_an_already_compiled_model_is_said(handler):
    torch._dynamo.reset()
    whole = nn.Sequential(Classifier().double(), nn.Identity())
    compiled = torch.compile(whole, backend="eager")
    inputs, labels = first_batch(handler)
    compiled(inputs)  # compiled now, without the hook
    handler.watch(whole[0])
    with pytest.raises(RuntimeError, match="watch the compiled model"):
        handler.update(whole[0].losses(compiled(inputs), labels).mean())


@pytest.mark.parametrize("step", ["not called", "not reached"])
def test_the_batch_loss_is_taken_instead_only_if_the_user_says_so(handler, model, step):
    handler.watch(model, required=False)
    losses = []
    for ids, _ in handler.loader(8):
        inputs, labels = inputs_of(ids, torch.float64)
        outputs = model.forward(inputs)
        if step == "not reached":
            model(inputs)
        loss = model.losses(outputs, labels).mean()
        handler.update(loss).backward()
        losses.append((ids.numpy(), loss.item()))
    for ids, loss in losses:
        np.testing.assert_allclose(handler.scores[ids], loss, rtol=1e-6)
    assert handler.num_observations == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"at": "middle"}, "at must be 'output' or 'input', got 'middle'"),
        ({"batch_dim": -1}, "batch_dim must be a whole number of at least 0, got -1"),
    ],
)
def test_options_out_of_range_are_refused(handler, model, arguments, message):
    with pytest.raises(ValueError, match=message):
        handler.watch(model, **arguments)


def test_the_input_of_outputs_is_refused(handler):
    with pytest.raises(TypeError, match="at='input' must get a module"):
        handler.watch(torch.zeros(3, requires_grad=True) * 1, at="input")


def test_per_token_needs_tokens(handler):
    handler.watch(model := Regressor().double(), per_token=True)
    inputs, _ = first_batch(handler)
    with pytest.raises(ValueError, match=r"shape \[batch, tokens, features\], got \(8, 4\)"):
        model(inputs)


def test_a_proxy_takes_a_handler_that_is_not_watched_yet():
    handler = tamis.InfoBatch(IndexDataset(24), epochs=2)
    handler.watch(Classifier())
    with pytest.raises(ValueError, match="call watch after proxy"):
        tamis.BLS(handler)
