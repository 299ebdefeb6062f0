"""Losses of every kind: what is booked and what comes back."""

import numpy as np
import pytest
import support
import tamis
import torch
from support import ExpectedScores, IndexDataset, assert_scores, make_loader
from tamis import _losses


@pytest.fixture
def pruned_handler(make_handler):
    """A handler in epoch 1, where some weights are 2, and the batches of that epoch."""

    def make(**options):
        handler = make_handler(**options)
        for indices, _ in make_loader(handler):
            handler.update(support.batch_loss(indices))
        loader = make_loader(handler)
        assert len(loader) < 13
        return handler, iter(loader)

    return make


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_scalar_of_any_float_type_is_booked_and_weighted_in_its_type(pruned_handler, dtype):
    handler, batches = pruned_handler()
    indices, _ = next(batches)
    weight = handler.weights[indices].mean()
    assert weight > 1
    loss = torch.tensor(1.5, dtype=dtype, requires_grad=True)
    result = handler.update(loss)
    assert result.dtype == dtype
    torch.testing.assert_close(result, loss * float(weight))
    result.backward()
    torch.testing.assert_close(loss.grad, torch.tensor(float(weight), dtype=dtype))


def test_a_weight_of_one_gives_the_loss_itself(make_handler):
    handler = make_handler()
    for indices, _ in make_loader(handler):
        loss = support.batch_loss(indices)
        assert handler.update(loss) is loss


def test_the_given_loss_is_not_changed(pruned_handler):
    handler, batches = pruned_handler()
    next(batches)
    loss = torch.tensor(1.5)
    assert handler.update(loss) != loss
    assert loss.item() == 1.5
    next(batches)
    losses = torch.full((8,), 1.5)
    handler.update(losses)
    assert (losses == 1.5).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_losses_per_sample_give_the_mean_of_the_weighted_ones(dtype):
    handler = tamis.InfoBatch(IndexDataset(103), epochs=4)
    for _ in range(2):
        for indices, values in make_loader(handler):
            losses = values.to(dtype).requires_grad_()
            weights = torch.from_numpy(handler.weights[indices]).to(dtype)
            result = handler.update(losses)
            assert result.dtype == dtype
            torch.testing.assert_close(result, (losses * weights).mean())
            result.backward()
            torch.testing.assert_close(losses.grad, weights / len(indices))
    scored = ~np.isnan(handler.scores)
    values = torch.tensor([support.loss_of(i) for i in range(103)]).to(dtype).float().numpy()
    np.testing.assert_array_equal(handler.scores[scored], values[scored])


def test_per_sample_losses_given_to_bls_are_averaged(make_handler):
    handler = make_handler(epochs=2)
    expected = ExpectedScores(len(handler))
    for indices, values in make_loader(handler):
        losses = values.float()
        torch.testing.assert_close(handler.update(losses), losses.mean())
        expected.observe(indices, losses.double().mean())
    np.testing.assert_allclose(handler.scores, expected.scores, rtol=1e-6)


def test_numbers_and_arrays_are_losses_too(pruned_handler):
    handler, batches = pruned_handler()
    before = handler.num_observations
    for loss in (1.5, 2, np.float32(1.5), np.array(1.5)):
        indices, _ = next(batches)
        weight = float(handler.weights[indices].mean(dtype=np.float64))
        assert float(handler.update(loss)) == pytest.approx(float(loss) * weight)
    indices, _ = next(batches)
    weights = handler.weights[indices]
    losses = np.linspace(1, 2, 8, dtype=np.float32)
    assert float(handler.update(losses)) == pytest.approx(float((losses * weights).mean()))
    assert handler.num_observations == before + 5


@pytest.mark.parametrize(
    "loss, error, message",
    [
        (torch.ones(8, 2), ValueError, r"shape \(8, 2\)"),
        (torch.ones(7), ValueError, "8 samples.*got 7"),
        (torch.ones((), dtype=torch.int64), TypeError, "floating point"),
        (np.ones(8, dtype=np.int32), TypeError, "floating point"),
        (True, TypeError, "tensor"),
        ("1.5", TypeError, "tensor"),
        (None, TypeError, "tensor"),
    ],
)
def test_what_is_not_a_loss_is_refused_and_nothing_is_booked(make_handler, loss, error, message):
    handler = make_handler()
    for step, (indices, _) in enumerate(make_loader(handler)):
        if step in (0, 3):
            with pytest.raises(error, match=message):
                handler.update(loss)
            if step == 0:
                continue_with = support.batch_loss(indices)
                handler.update(continue_with)
            else:
                break
        else:
            handler.update(support.batch_loss(indices))
    assert handler.num_observations == 3


def test_a_mean_given_to_a_score_that_needs_sample_losses_is_refused():
    for make in (tamis.InfoBatch, tamis.SeTa):
        handler = make(IndexDataset(20), epochs=2)
        for _, values in make_loader(handler):
            with pytest.raises(ValueError, match="needs one loss per sample"):
                handler.update(values.mean())
            handler.update(values)
        assert handler.num_observations == 3
        with pytest.raises(ValueError, match="needs one loss per sample"):
            handler.update(torch.tensor(1.0), ids=[1])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_losses_that_are_not_finite_are_counted_and_not_booked(make_handler, bad):
    handler = make_handler(epochs=2)
    expected = ExpectedScores(len(handler))
    for step, (indices, _) in enumerate(make_loader(handler)):
        loss = torch.tensor(bad) if step in (0, 4, 12) else support.batch_loss(indices)
        result = handler.update(loss)
        if step in (0, 4, 12):
            assert not torch.isfinite(result)  # the user's own checks still see it
        else:
            expected.observe(indices, loss)
    assert handler.num_skipped_observations == 3
    assert_scores(handler, expected)


def test_one_bad_sample_loss_skips_its_batch_only():
    handler = tamis.InfoBatch(IndexDataset(24), epochs=2)
    for step, (_, values) in enumerate(make_loader(handler)):
        if step == 1:
            values[3] = float("nan")
        handler.update(values)
    assert np.isnan(handler.scores).sum() == 8
    assert handler.num_skipped_observations == 1


class FakeEvent:
    """A copy that arrives when the test says so."""

    def __init__(self):
        self.arrived = False
        self.waited_for = False

    def query(self):
        return self.arrived

    def synchronize(self):
        self.arrived = self.waited_for = True


@pytest.mark.parametrize("wrapper, by_ids", [("bare", False), ("bare", True), ("windows", True)])
def test_delayed_losses_give_the_same_scores(make_handler, wrapper, by_ids):
    handler = make_handler(epochs=3)
    expected = ExpectedScores(len(handler))
    for _ in range(3):
        for batch in support.WRAPPERS[wrapper](make_loader(handler, delayed=True)):
            loss = support.batch_loss(batch[0])
            weight = float(handler.weights[batch.indices].mean(dtype=np.float64))
            result = handler.update(loss, batch if by_ids else None)
            torch.testing.assert_close(result, loss * weight)
            expected.observe(batch[0], loss.clone())
            loss.zero_()  # the caller may do with it what they like
    assert_scores(handler, expected)
    assert handler.num_missed_updates == 0


def test_delayed_losses_are_waited_for_once_in_a_pass(make_handler, monkeypatch):
    events = []

    class Delayed(_losses.DelayedLoss):
        def __init__(self, loss):
            super().__init__(loss)
            self._event = FakeEvent()
            events.append(self._event)

    monkeypatch.setattr(_losses, "DelayedLoss", Delayed)
    handler = make_handler()
    for step, (indices, _) in enumerate(make_loader(handler, delayed=True)):
        if step == 6:
            break
        if step >= 3:
            events[step - 2].arrived = True
        handler.update(support.batch_loss(indices))
        assert handler._run.pruner.num_observations == min(step, max(step - 1, 1))
    assert [event.waited_for for event in events[:4]] == [True, False, False, False]
    assert handler.num_observations == 6  # asking for it waits
    assert events[-1].waited_for


def step_with_update(handler, values, batch=None):
    return handler.update((values * values).mean(), batch)


@pytest.mark.parametrize("by_ids", [False, True])
def test_a_compiled_step_with_the_update_inside_has_no_graph_break(pruned_handler, by_ids):
    handler, batches = pruned_handler()
    compiled = torch.compile(step_with_update, fullgraph=True, backend="eager")
    before = handler.num_observations
    for step, batch in enumerate(batches):
        weight = float(handler.weights[batch.indices].mean())
        values = batch[1].float().requires_grad_()
        ids = {"tamis_ids": torch.from_numpy(batch.ids)} if by_ids else None
        result = compiled(handler, values, ids)
        result.backward()
        torch.testing.assert_close(result, values.square().mean() * weight)
        torch.testing.assert_close(values.grad, 2 * values.detach() * weight / len(values))
        assert handler.num_observations == before + step + 1


def test_a_compiled_step_takes_losses_per_sample():
    handler = tamis.InfoBatch(IndexDataset(64), epochs=2)
    compiled = torch.compile(lambda x: handler.update(x * x), fullgraph=True, backend="eager")
    for _, values in handler.loader(8):
        torch.testing.assert_close(compiled(values), values.square().mean())
    assert handler.num_observations == 8
