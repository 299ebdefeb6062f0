"""What a loop hardly means is said once, at the user's line; what cannot be right is refused."""

import warnings

import numpy as np
import pytest
import support
import tamis
import torch
from support import ExpectedScores, make_loader, train_epoch


def caught_in(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [w for w in caught if w.category is tamis.LoopWarning]


@pytest.mark.parametrize("mode", support.MODES)
@pytest.mark.parametrize("sets_epoch", [False, True])
def test_a_forgotten_update_is_told_once_at_the_loop(make_handler, mode, sets_epoch):
    handler = make_handler(epochs=5)
    loader = make_loader(handler, mode)

    def loop():
        for epoch in range(5):
            if sets_epoch:
                handler.set_epoch(epoch)
            for _ in loader:
                pass

    (told,) = caught_in(loop)
    assert "nothing was scored; call loss = handler.update(loss)" in str(told.message)
    assert told.filename == __file__


def test_one_look_at_all_samples_is_no_forgotten_update(make_handler):
    handler = make_handler(epochs=2)
    loader = make_loader(handler)

    def loop():
        assert len(list(loader)) == 13  # for their mean, say
        for epoch in range(2):
            handler.set_epoch(epoch)
            train_epoch(handler, loader, None)

    assert caught_in(loop) == []


def test_an_epoch_that_goes_back_is_told_once(make_handler):
    handler = make_handler(epochs=5)

    def loop():
        for epoch in (2, 0, 3, 1):
            handler.set_epoch(epoch)
            train_epoch(handler, make_loader(handler), None)

    (told,) = caught_in(loop)
    assert "goes back from epoch 2" in str(told.message)
    assert "loader.set_epoch(handler.next_epoch)" in str(told.message)
    assert told.filename == __file__


def test_an_epoch_that_a_rebuilt_loader_repeats_is_told_once(make_handler):
    """Accelerate counts only loops that come to their end: after a break it says epoch 0 again."""
    handler = make_handler(epochs=5)
    loader = support.rebuild(make_loader(handler))

    def loop():
        for _ in range(2):
            loader.batch_sampler.sampler.set_epoch(0)
            train_epoch(handler, loader, None, stop=3, by_ids=True)

    (told,) = caught_in(loop)
    assert "loader.set_epoch(handler.next_epoch)" in str(told.message)


def test_a_process_group_that_appears_later_is_told_once(make_handler, monkeypatch):
    handler = make_handler()
    monkeypatch.setattr(tamis._passes, "num_ranks", lambda: 2)

    def loop():
        for _ in range(2):
            train_epoch(handler, make_loader(handler), None)

    (told,) = caught_in(loop)
    assert "2 ranks" in str(told.message)
    assert "make the handler after init_process_group" in str(told.message)


def test_an_empty_plan_is_told_and_the_run_goes_on():
    handler = tamis.prune(support.IndexDataset(1), "seta", epochs=6, prune_ratio=0.9)
    seen = []

    def loop():
        for _ in range(6):
            for _, values in handler.loader(8):
                handler.update(values)
            seen.append((handler.epoch, handler.plan.num_selected))

    told = caught_in(loop)
    assert [epoch for epoch, _ in seen] == list(range(6))
    assert len(told) == (1 if any(size == 0 for _, size in seen) else 0)


TRAINS_ON_LOSSES = [
    name for name, info in tamis.methods().items() if info["score"] != "output-gradient" and info["policy"] != "subset"
]


@pytest.mark.parametrize("method", TRAINS_ON_LOSSES)
@pytest.mark.filterwarnings("ignore::tamis.LoopWarning")
def test_a_data_set_of_one_sample_reaches_its_last_epoch(method):
    handler = tamis.prune(support.IndexDataset(1), method, epochs=5)
    for _ in range(5):
        for _, values in handler.loader(4):
            handler.update(values if handler.needs == "sample-losses" else values.mean())
    assert handler.epoch == 4
    assert handler.next_epoch == 5
    assert len(handler.scores) == 1


def test_after_the_loop_further_updates_are_refused(make_handler):
    handler = make_handler()
    expected = ExpectedScores(len(handler))
    train_epoch(handler, make_loader(handler), expected)
    with pytest.raises(RuntimeError, match="no loop"):
        handler.update(torch.tensor(1.0))
    np.testing.assert_array_equal(handler.scores, expected.scores)
