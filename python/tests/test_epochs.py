"""Which epoch an iteration gives, and how long it is."""

import numpy as np
import pytest
import support
import torch
from support import LOADERS, MODES, ExpectedScores, make_loader, train_epoch
from torch.utils.data import DataLoader


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("loader", ["0 workers", "persistent"])
def test_iterating_twice_without_training_gives_the_same_epoch(make_handler, loader, mode):
    handler = make_handler()
    batches = make_loader(handler, mode, **LOADERS[loader])
    first = [b[0].tolist() for b in batches]
    assert [b[0].tolist() for b in batches] == first
    train_epoch(handler, batches, ExpectedScores(len(handler)))
    second = [b[0].tolist() for b in batches]
    assert second != first
    assert [b[0].tolist() for b in batches] == second
    assert handler.epoch == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("loader", ["0 workers", "persistent"])
def test_the_length_is_right_before_during_and_after_an_epoch(
    make_handler, loader, drop_last, mode
):
    handler = make_handler(epochs=3, drop_last=drop_last)
    batches = make_loader(handler, mode, drop_last=drop_last, **LOADERS[loader])
    lengths = []
    for _ in range(3):
        lengths.append(len(batches))
        step = 0
        for step, (indices, _) in enumerate(batches, 1):
            assert len(batches) == handler.steps_in_epoch == lengths[-1]
            assert handler.steps_left == lengths[-1] - step + 1
            handler.update(support.batch_loss(indices))
            if mode == "loader" or step < lengths[-1]:
                assert len(batches) == lengths[-1]
        assert step == lengths[-1]
    assert lengths[1] < lengths[0]  # pruned
    assert len(batches) == lengths[-1]  # nothing is coming


def test_asking_for_the_length_does_not_start_an_epoch(make_handler):
    handler, other = make_handler(), make_handler()
    for asked in (handler, other):
        train_epoch(asked, make_loader(asked), ExpectedScores(len(asked)))
    assert len(handler.sampler) == len(handler.sampler)
    assert handler.epoch == 0
    handler.update(torch.tensor(100.0), ids=[1, 2, 3])
    other.update(torch.tensor(100.0), ids=[1, 2, 3])
    assert len(handler.sampler) == len(list(handler.sampler))
    assert list(handler.sampler) == list(other.sampler)


def test_set_epoch_chooses_the_epoch(make_handler):
    handler = make_handler(epochs=5)
    loader = make_loader(handler)
    loader.sampler.set_epoch(3)
    train_epoch(handler, loader, ExpectedScores(len(handler)))
    assert handler.epoch == 3
    handler.sampler.set_epoch(1)
    handler.batch_sampler(8).sampler.set_epoch(2)
    assert len(list(loader)) == len(loader)
    assert handler.epoch == 2
    for wrong in (-1, 5):
        with pytest.raises(ValueError, match=r"epoch must be in \[0, 5\)"):
            handler.sampler.set_epoch(wrong)


@pytest.mark.parametrize("mode", MODES)
def test_set_epoch_wins_over_a_loop_that_was_left(make_handler, mode):
    handler = make_handler(epochs=5)
    loader = make_loader(handler, mode)
    abandoned = []
    for epoch in (3, 0, 3, 3, 4):
        handler.set_epoch(epoch)
        abandoned.append(iter(loader))
        indices, _ = next(abandoned[-1])
        assert handler.epoch == epoch
        assert indices.tolist() == handler.plan.samples(0, 8)
        handler.update(support.batch_loss(indices))


def test_repeating_an_epoch_repeats_its_plan(make_handler):
    handler = make_handler()
    loader = make_loader(handler)
    orders = []
    for _ in range(2):
        handler.set_epoch(0)
        order = []
        for indices, _ in loader:
            order += indices.tolist()
            handler.update(support.batch_loss(indices))
        orders.append(order)
    assert orders[0] == orders[1]


def test_an_iteration_after_the_last_epoch_is_refused(make_handler):
    handler = make_handler(epochs=1)
    loader = make_loader(handler)
    train_epoch(handler, loader, ExpectedScores(len(handler)))
    assert handler.progress == 1.0
    with pytest.raises(ValueError, match="all 1 epochs of the run are done"):
        next(iter(loader))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("drop_last", [False, True])
def test_progress_grows_from_0_to_1(make_handler, drop_last, mode):
    handler = make_handler(epochs=3, drop_last=drop_last)
    assert handler.progress == 0.0
    seen = [0.0]
    for epoch in range(3):
        for indices, _ in make_loader(handler, mode, drop_last=drop_last):
            handler.update(support.batch_loss(indices))
            seen.append(handler.progress)
        assert handler.progress == pytest.approx((epoch + 1) / 3)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_steps_in_epoch_needs_a_batch_size(make_handler):
    with pytest.raises(RuntimeError, match=r"handler.loader\(B\)"):
        make_handler(batch_size=None).steps_in_epoch  # noqa: B018
    assert make_handler(batch_size=10).steps_in_epoch == 11
    assert make_handler(batch_size=10, drop_last=True).steps_in_epoch == 10


def test_scores_and_weights_of_a_new_handler_are_empty(make_handler):
    handler = make_handler(10)
    assert np.isnan(handler.scores).all()
    assert (handler.weights == 1).all()
    assert handler.scores.dtype == handler.weights.dtype == np.float32
    assert handler.plan is None
    assert handler.pruned_share == 0.0


def test_a_loader_with_a_fixed_generator_gives_the_same_batches(make_handler):
    handler = make_handler(seed=5)
    orders = []
    for _ in range(2):
        generator = torch.Generator().manual_seed(1)
        loader = DataLoader(
            handler.data, sampler=handler.sampler, batch_size=8, generator=generator
        )
        orders.append([b[0].tolist() for b in loader])
    assert orders[0] == orders[1]
