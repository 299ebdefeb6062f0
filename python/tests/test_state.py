"""state_dict: a run that is interrupted anywhere goes on as if it had not been."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch

import support
import tamis
from support import IndexDataset, make_loader
from test_booking import LOADERS, WRAPPERS


def trace(handler, loader, log, wrap=lambda loader: loader, stop=None, epochs=3):
    """Trains and logs indices, weights and progress; returns the state after `stop` batches."""
    for epoch in range(epochs):
        for indices, _ in wrap(loader):
            loss = support.batch_loss(indices)
            weighted = handler.update(loss)
            log.append((handler.epoch, indices.tolist(), weighted.item(), handler.progress))
            if stop is not None and len(log) == stop:
                return handler.state_dict()
        if handler.epoch == epochs - 1:
            break
    return None


def save_and_load(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file)


@pytest.mark.parametrize("stop", [1, 5, 12, 13, 14, 20])
@pytest.mark.parametrize("loader", ["0 workers", "2 workers", "persistent"])
def test_a_resumed_run_is_the_run_that_was_not_interrupted(make_handler, loader, stop):
    options = LOADERS[loader]
    whole = make_handler(epochs=3)
    expected = []
    trace(whole, make_loader(whole, **options), expected)

    first = make_handler(epochs=3)
    log = []
    state = trace(first, make_loader(first, **options), log, stop=stop)
    second = make_handler(epochs=3)
    second.load_state_dict(save_and_load(state))
    trace(second, make_loader(second, **options), log)

    assert log == expected
    np.testing.assert_array_equal(second.scores, whole.scores)
    assert second.num_observations == whole.num_observations
    assert second.num_missed_updates == 0


@pytest.mark.parametrize("stop", [1, 5, 13, 18])
def test_a_run_behind_a_lookahead_can_be_resumed(make_handler, stop):
    whole = make_handler(epochs=3)
    expected, log = [], []
    trace(whole, make_loader(whole), expected, WRAPPERS["one_ahead"])
    first = make_handler(epochs=3)
    state = trace(first, make_loader(first), log, WRAPPERS["one_ahead"], stop=stop)
    second = make_handler(epochs=3)
    second.load_state_dict(state)
    trace(second, make_loader(second), log, WRAPPERS["one_ahead"])
    assert log == expected
    np.testing.assert_array_equal(second.scores, whole.scores)


def test_the_position_is_after_the_last_update_whatever_was_prefetched(make_handler):
    handler = make_handler()
    batches = iter(make_loader(handler, num_workers=2, prefetch_factor=4))
    for _ in range(3):
        indices, _ = next(batches)
        handler.update(support.batch_loss(indices))
    following, _ = next(batches)  # delivered, not trained on
    resumed = make_handler()
    resumed.load_state_dict(handler.state_dict())
    loader = make_loader(resumed)
    assert len(loader) == 10
    assert next(iter(loader))[0].tolist() == following.tolist()
    assert resumed.steps_in_epoch == 13


def test_set_epoch_of_the_saved_epoch_keeps_its_position(make_handler):
    handler, log = make_handler(epochs=3), []
    state = trace(handler, make_loader(handler), log, stop=16)
    whole = len(handler.plan.order)
    for epoch, left_out in ((1, 24), (0, 0), (2, 0)):
        resumed = make_handler(epochs=3)
        resumed.load_state_dict(state)
        resumed.sampler.set_epoch(epoch)
        num_samples = len(list(resumed.sampler))
        assert num_samples == len(resumed.sampler) == len(resumed.plan) - left_out
    assert whole > 24


def test_a_state_saved_at_the_end_of_an_epoch_goes_on_with_the_next(make_handler):
    handler, log = make_handler(epochs=3), []
    state = trace(handler, make_loader(handler), log, stop=13)
    resumed = make_handler(epochs=3)
    resumed.load_state_dict(state)
    list(resumed.sampler)
    assert resumed.epoch == 1
    repeated = make_handler(epochs=3)
    repeated.load_state_dict(state)
    repeated.set_epoch(0)  # a loop that counts epochs itself: nothing of epoch 0 is left
    assert list(repeated.sampler) == []


def test_a_state_is_made_of_tensors(make_handler):
    state = make_handler().state_dict()
    assert all(isinstance(value, torch.Tensor) for value in state.values())
    assert state["pruner"].dtype == torch.uint8


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda s: s.pop("pruner"), "not a handler's state"),
        (lambda s: s.update(version=torch.tensor(99)), "newer tamis"),
        (lambda s: s.update(pruner=s["pruner"][:-9]), ""),
        (lambda s: s["pruner"][-9:].fill_(7), ""),
    ],
)
def test_a_damaged_state_is_refused_and_nothing_changes(make_handler, change, message):
    handler, log = make_handler(epochs=3), []
    state = save_and_load(trace(handler, make_loader(handler), log, stop=16))
    change(state)
    with pytest.raises(RuntimeError, match=message):
        handler.load_state_dict(state)
    assert handler.epoch == 1
    assert handler.num_observations == 16


@pytest.mark.parametrize("other", [{"size": 104}, {"seed": 1}, {"alpha": 0.8}, {"epochs": 4}])
def test_the_state_of_another_run_is_refused(make_handler, other):
    state = make_handler(epochs=3).state_dict()
    with pytest.raises(RuntimeError):
        make_handler(**{"epochs": 3, **other}).load_state_dict(state)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda h: pickle.loads(pickle.dumps(h))])
def test_a_copy_goes_on_by_itself_where_the_original_stood(make_handler, how):
    original, log = make_handler(epochs=3), []
    trace(original, make_loader(original), log, stop=16)
    copied = how(original)
    assert copied.dataset is not original.dataset
    np.testing.assert_array_equal(copied.scores, original.scores)
    assert copied.options.keys() == original.options.keys()
    rest, _ = next(iter(make_loader(copied)))
    assert rest.tolist() == original._run.pruner.planned_indices(24, 8)
    copied.update(torch.tensor(50.0), indices=[0])
    assert copied.scores[0] != original.scores[0]


def test_a_handler_and_its_loader_can_be_copied_in_the_middle_of_an_epoch(make_handler):
    handler = make_handler()
    loader = make_loader(handler)
    batches = iter(loader)
    handler.update(support.batch_loss(next(batches)[0]))
    copied = copy.deepcopy(loader)
    assert copied.sampler._run is not handler._run
    assert copied.dataset._run is copied.sampler._run
    assert len(list(copied)) == 12


def test_a_worker_gets_the_data_set_without_the_scores(make_handler):
    import multiprocessing.context

    handler = tamis.prune(IndexDataset(100_000), "bls-infobatch", epochs=2)
    popen = object()
    multiprocessing.context.set_spawning_popen(popen)
    try:
        sent = pickle.dumps(handler)
    finally:
        multiprocessing.context.set_spawning_popen(None)
    assert len(sent) < 1000 < len(pickle.dumps(handler))
    assert pickle.loads(sent)[7] == handler[7]
