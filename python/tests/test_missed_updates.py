"""A batch without an update is reported, and its loss is never another's."""

import warnings

import pytest
import support
import tamis
import torch
from support import LOADERS, ExpectedScores, assert_scores, make_loader, train_epoch

pytestmark = pytest.mark.filterwarnings("ignore::tamis.MissedUpdateWarning")


@pytest.fixture(autouse=True)
def missed_updates_are_errors():
    """Here they are what is tested."""


@pytest.mark.parametrize("skip", [(5,), (4, 5, 9), (12,), (10, 11, 12)])
@pytest.mark.parametrize("loader", ["0 workers", "2 workers", "persistent"])
def test_by_delivery_a_missed_update_leaves_the_others_exact(make_handler, loader, skip):
    handler = make_handler(epochs=2)
    batches = make_loader(handler, **LOADERS[loader])
    expected = ExpectedScores(len(handler))
    train_epoch(handler, batches, expected, skip=skip)
    train_epoch(handler, batches, expected)
    assert_scores(handler, expected)
    assert handler.num_missed_updates == len(skip)


def test_by_delivery_a_pass_without_its_first_update_needs_ids(make_handler):
    handler = make_handler(epochs=2)
    with pytest.raises(RuntimeError, match=r"update\(loss, batch\)"):
        train_epoch(handler, make_loader(handler), None, skip=(0,))
    assert handler.num_observations == 0


@pytest.mark.parametrize("skip", [(0,), (0, 1), (5,), (4, 5, 9), (12,), (10, 11, 12)])
@pytest.mark.parametrize("wrapper", support.WRAPPERS)
def test_by_ids_any_update_may_be_missed(make_handler, wrapper, skip):
    handler = make_handler(epochs=2)
    expected = ExpectedScores(len(handler))
    for _ in range(2):
        loader = support.WRAPPERS[wrapper](make_loader(handler))
        train_epoch(handler, loader, expected, skip=skip, by_ids=True)
    assert_scores(handler, expected)


@pytest.mark.parametrize("skip", [(0,), (5,), (4, 5, 9), (12,)])
@pytest.mark.parametrize("mode", ["sampler", "batch_sampler"])
@pytest.mark.parametrize("wrapper", ["bare", "one_ahead"])
def test_in_order_a_pass_with_a_missed_update_is_dropped(make_handler, wrapper, mode, skip):
    handler = make_handler(epochs=3)
    loader = make_loader(handler, mode)
    expected = ExpectedScores(len(handler))
    wrap = support.WRAPPERS[wrapper]
    with pytest.warns(tamis.MissedUpdateWarning, match=f"{13 - len(skip)} updates for 13 batches"):
        train_epoch(handler, wrap(loader), None, skip=skip)
        handler.end_pass()
    assert handler.num_observations == 0
    assert handler.num_missed_updates == len(skip)
    train_epoch(handler, wrap(loader), expected)
    assert_scores(handler, expected)


@pytest.mark.parametrize("mode", ["sampler", "batch_sampler"])
def test_in_order_windows_are_dropped(make_handler, mode):
    handler = make_handler()
    train_epoch(handler, support.windows(make_loader(handler, mode)), None)
    handler.end_pass()
    assert handler.num_observations == 0


def test_in_order_more_updates_than_batches_are_refused(make_handler):
    handler = make_handler()
    with pytest.raises(RuntimeError, match="update"):
        for indices, _ in make_loader(handler, "sampler"):
            for _ in range(2):
                handler.update(support.batch_loss(indices))
    handler.end_pass()
    assert handler.num_observations == 0


@pytest.mark.parametrize("mode", ["loader", "sampler"])
def test_after_a_loop_that_was_left_with_a_batch_the_next_one_is_right(make_handler, mode):
    handler = make_handler(epochs=3)
    loader = make_loader(handler, mode, num_workers=2)
    expected = ExpectedScores(len(handler))
    train_epoch(handler, loader, expected if mode == "loader" else None, stop=5)
    train_epoch(handler, loader, expected)
    assert handler.epoch == 1
    assert_scores(handler, expected)


@pytest.mark.parametrize("mode", ["loader", "sampler"])
def test_a_loop_while_another_one_is_open_is_doubtful_until_set_epoch(make_handler, mode):
    handler = make_handler(epochs=5)
    loader = make_loader(handler, mode)
    expected = ExpectedScores(len(handler))
    is_ours = mode == "loader"
    opened = iter(loader)
    train_epoch(handler, (next(opened) for _ in range(5)), expected if is_ours else None)
    if is_ours:
        with pytest.raises(RuntimeError, match="another loop.*set_epoch"):
            train_epoch(handler, loader, None)
    else:
        train_epoch(handler, loader, None)
        handler.end_pass()
    if is_ours:
        assert_scores(handler, expected)
    handler.set_epoch(2)
    train_epoch(handler, loader, expected if is_ours else None)
    next(opened)  # goes on after all
    handler.set_epoch(3)
    train_epoch(handler, loader, expected if is_ours else None)
    if is_ours:
        assert_scores(handler, expected)


@pytest.mark.parametrize("wrapper", ["one_ahead", "one_ahead_released", "three_ahead"])
def test_a_loop_inside_one_that_has_fetched_all_it_trains_on_is_doubtful(make_handler, wrapper):
    """Its iterator is gone, but not its batches."""
    handler = make_handler(size=16, epochs=3)
    for step, (indices, _) in enumerate(support.WRAPPERS[wrapper](make_loader(handler))):
        if step == 1:
            next(iter(make_loader(handler)))
        with pytest.raises(RuntimeError, match="update"):
            handler.update(support.batch_loss(indices))
    assert handler.num_observations == 0


def test_missed_updates_are_warned_of_once(make_handler):
    handler = make_handler(epochs=3)
    loader = make_loader(handler)
    expected = ExpectedScores(len(handler))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            train_epoch(handler, loader, expected, skip=(1, 3))
        assert handler.num_missed_updates == 6
    caught = [w for w in caught if w.category is tamis.MissedUpdateWarning]
    assert len(caught) == 1
    assert "2" in str(caught[0].message)


@pytest.mark.parametrize("mode", support.MODES)
def test_an_iteration_without_any_update_is_not_training(make_handler, mode):
    handler = make_handler()
    for _ in range(3):
        assert len(list(make_loader(handler, mode, num_workers=2))) == 13
    assert handler.num_missed_updates == 0
    assert handler.epoch == 0


def test_leaving_an_epoch_early_is_not_a_missed_update(make_handler):
    handler = make_handler()
    expected = ExpectedScores(len(handler))
    for epoch in range(4):
        handler.set_epoch(epoch)
        train_epoch(handler, make_loader(handler, num_workers=2), expected, stop=4)
    handler.end_pass()
    assert handler.num_missed_updates == 0


def test_a_batch_skipped_for_its_nan_is_reported(make_handler):
    handler = make_handler(epochs=1)
    for step, (indices, _) in enumerate(make_loader(handler)):
        if step == 2:
            continue
        handler.update(torch.tensor(float("nan")) if step == 4 else support.batch_loss(indices))
    assert handler.num_missed_updates == 1
    assert handler.num_skipped_observations == 1
    assert handler.num_observations == 11


class Corrupt(support.IndexDataset):
    """Some samples cannot be loaded."""

    def __getitem__(self, index):
        if index in (7, 51):
            raise OSError(f"sample {index} is corrupt")
        return super().__getitem__(index)


def test_after_a_failure_batches_without_ids_are_refused(make_handler):
    handler = make_handler(dataset=Corrupt(103))
    iterator = iter(make_loader(handler, collate_fn=lambda samples: torch.tensor(samples)))
    num_refused = 0
    while (batch := next_or_none(iterator)) is not None:
        try:
            handler.update(support.batch_loss(batch[:, 0]))
        except RuntimeError as error:
            assert "update" in str(error)
            num_refused += 1
    assert handler.num_observations + num_refused == 11
    assert num_refused > 0


def next_or_none(iterator):
    while True:
        try:
            return next(iterator, None)
        except OSError:
            continue


@pytest.mark.parametrize("by_ids", [False, True])
@pytest.mark.parametrize("loader", LOADERS)
def test_batches_that_fail_to_load_do_not_shift_the_others(make_handler, loader, by_ids):
    handler = make_handler(epochs=2, dataset=Corrupt(103), seed=3)
    batches = make_loader(handler, **LOADERS[loader])
    expected = ExpectedScores(len(handler))
    num_failed = 0
    for _ in range(2):
        iterator = iter(batches)
        while True:
            try:
                batch = next(iterator)
            except OSError:
                num_failed += 1
                continue
            except StopIteration:
                break
            loss = support.batch_loss(batch[0])
            handler.update(loss, batch if by_ids else None)
            expected.observe(batch[0], loss)
        del iterator
    assert_scores(handler, expected)
    assert num_failed > 0
    assert handler.num_missed_updates in (num_failed, num_failed - 1)  # the last is not delivered
