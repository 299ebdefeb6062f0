"""state_dict: a run that is interrupted anywhere goes on as if it had not been."""

import copy
import io
import pickle

import numpy as np
import pytest
import support
import tamis
import torch
from support import LOADERS, MODES, WRAPPERS, make_loader


def trace(handler, loader, log, wrap=support.bare, stop=None, epochs=3, by_ids=False):
    """Trains and logs indices, weights and progress; returns the state after `stop` batches."""
    for _ in range(epochs):
        for batch in wrap(loader):
            indices, _ = batch
            loss = support.batch_loss(indices)
            weighted = handler.update(loss, batch) if by_ids else handler.update(loss)
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
    return torch.load(file, weights_only=True)


def check_resume(make_handler, make, stop, **options):
    """A run that is saved after `stop` batches and loaded goes on as the one that was not."""
    whole = make_handler(epochs=3)
    expected = []
    trace(whole, make(whole), expected, **options)

    first = make_handler(epochs=3)
    log = []
    state = trace(first, make(first), log, stop=stop, **options)
    second = make_handler(epochs=3)
    second.load_state_dict(save_and_load(state))
    trace(second, make(second), log, **options)

    assert log == expected
    np.testing.assert_array_equal(second.scores, whole.scores)
    assert second.num_observations == whole.num_observations
    assert second.num_missed_updates == 0


@pytest.mark.parametrize("stop", [1, 5, 12, 13, 14, 20])
@pytest.mark.parametrize("mode", MODES)
def test_a_resumed_run_is_the_run_that_was_not_interrupted(make_handler, mode, stop):
    check_resume(make_handler, lambda handler: make_loader(handler, mode), stop)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("loader", ["2 workers", "persistent"])
def test_prefetching_workers_do_not_change_where_a_run_resumes(make_handler, loader, mode):
    check_resume(
        make_handler, lambda handler: make_loader(handler, mode, **LOADERS[loader]), stop=5
    )


@pytest.mark.parametrize("stop", [1, 5, 13, 18])
@pytest.mark.parametrize("wrapper", ["one_ahead", "three_ahead", "windows"])
def test_by_ids_a_run_behind_any_wrapper_can_be_resumed(make_handler, wrapper, stop):
    check_resume(make_handler, make_loader, stop, wrap=WRAPPERS[wrapper], by_ids=True)


@pytest.mark.parametrize("stop", [1, 5, 13, 18])
def test_in_order_a_run_behind_a_lookahead_can_be_resumed(make_handler, stop):
    check_resume(
        make_handler,
        lambda handler: make_loader(handler, "sampler"),
        stop,
        wrap=WRAPPERS["one_ahead"],
    )


def test_with_drop_last_a_state_of_the_last_full_batch_goes_on_with_the_next_epoch(make_handler):
    handler, log = make_handler(epochs=3), []
    state = trace(handler, make_loader(handler, drop_last=True), log, stop=12)
    resumed = make_handler(epochs=3)
    resumed.load_state_dict(state)
    next(iter(make_loader(resumed, drop_last=True)))
    assert resumed.epoch == 1


@pytest.mark.filterwarnings("ignore::tamis.MissedUpdateWarning")
def test_what_a_state_kept_back_in_order_counts_also_if_the_run_goes_on_otherwise(make_handler):
    handler, log = make_handler(epochs=3), []
    state = trace(handler, make_loader(handler, "sampler"), log, stop=5)
    for go_on in (lambda h: h.set_epoch(1), lambda h: next(iter(make_loader(h)))):
        resumed = make_handler(epochs=3)
        resumed.load_state_dict(state)
        go_on(resumed)
        assert resumed.num_observations == 5


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
    assert len(loader) == resumed.steps_in_epoch == 13  # of the whole epoch
    assert resumed.steps_left == 10
    assert next(iter(loader))[0].tolist() == following.tolist()
    assert len(loader) == 13


def test_set_epoch_of_the_saved_epoch_keeps_its_position(make_handler):
    handler, log = make_handler(epochs=3), []
    state = trace(handler, make_loader(handler), log, stop=16)
    whole = len(handler.plan.order)
    for epoch, left_out in ((1, 24), (0, 0), (2, 0)):
        resumed = make_handler(epochs=3)
        resumed.load_state_dict(state)
        resumed.sampler.set_epoch(epoch)
        assert len(resumed.sampler) == len(resumed.plan)
        assert len(list(resumed.sampler)) == len(resumed.plan) - left_out
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
    assert copied.data.dataset is not original.data.dataset
    np.testing.assert_array_equal(copied.scores, original.scores)
    assert copied.options.keys() == original.options.keys()
    rest, _ = next(iter(make_loader(copied)))
    assert rest.tolist() == original.plan.samples(24, 8)
    copied.update(torch.tensor(50.0), ids=[0])
    assert copied.scores[0] != original.scores[0]


def test_a_handler_and_its_loader_can_be_copied_in_the_middle_of_an_epoch(make_handler):
    handler = make_handler()
    loader = make_loader(handler)
    batches = iter(loader)
    handler.update(support.batch_loss(next(batches)[0]))
    copied = copy.deepcopy(loader)
    assert copied.sampler.run is not handler._run
    assert len(list(copied)) == 12


def test_the_data_set_that_loaders_get_holds_no_state(make_handler):
    handler = tamis.prune(support.IndexDataset(100_000), "bls-infobatch", epochs=2)
    sent = pickle.dumps(handler.data)
    assert len(sent) < 1000 < len(pickle.dumps(handler))
    assert pickle.loads(sent)[7] == handler.data[7]
    assert not hasattr(handler.data, "state_dict")


def test_a_state_of_the_former_name_loads():
    golden = support.REPOSITORY / "tests" / "golden" / "state_format_1.safetensors"
    state = {
        "version": torch.tensor(1),
        "pruner": torch.from_numpy(np.fromfile(golden, dtype=np.uint8)),
        "num_missed_updates": torch.tensor(2),
    }
    options = tamis.Options(seed=42, batch_size=8)
    handler = tamis.prune(support.IndexDataset(100), "bls-infobatch", epochs=8, options=options)
    handler.load_state_dict(state)
    assert (handler.epoch, handler.num_observations, handler.num_missed_updates) == (1, 9, 2)
    assert (handler.steps_in_epoch, handler.steps_left) == (10, 8)
    assert indices_left(handler) == handler.plan.samples(16, 64)


def indices_left(handler):
    return [int(i) for indices, _ in make_loader(handler) for i in indices]
