"""A batch without an update is detected and reported, and never scored as another."""

import warnings

import pytest
import torch

import support
import tamis
from support import ExpectedScores, assert_scores, make_loader, train_epoch
from test_booking import LOADERS, WRAPPERS

pytestmark = pytest.mark.filterwarnings("ignore::tamis.MissedUpdateWarning")


@pytest.fixture(autouse=True)
def missed_updates_are_errors():
    """Here they are what is tested."""


@pytest.mark.parametrize("skip", [(0,), (0, 1), (5,), (4, 5, 9), (12,), (10, 11, 12)])
@pytest.mark.parametrize("loader", LOADERS)
def test_a_missed_update_leaves_the_other_bookings_exact(make_handler, loader, skip):
    handler = make_handler(epochs=2)
    batches = make_loader(handler, **LOADERS[loader])
    expected = ExpectedScores(len(handler))
    train_epoch(handler, batches, expected, skip=skip)
    train_epoch(handler, batches, expected)
    assert_scores(handler, expected)
    assert handler.num_missed_updates == len(skip)


@pytest.mark.parametrize("skip", [(0,), (0, 1), (5,), (4, 5, 9)])
@pytest.mark.parametrize("wrapper", ["plain_wrapper", "one_ahead", "one_ahead_released"])
def test_missed_updates_behind_a_wrapper_are_told_from_fetching_ahead(make_handler, wrapper, skip):
    handler = make_handler(epochs=2)
    expected = ExpectedScores(len(handler))
    for _ in range(2):
        train_epoch(handler, WRAPPERS[wrapper](make_loader(handler)), expected, skip=skip)
    assert_scores(handler, expected)
    assert handler.num_missed_updates == 2 * len(skip)


@pytest.mark.parametrize("from_end", [1, 2])
def test_if_one_of_the_last_batches_is_missed_behind_a_lookahead_neither_is_scored(
    make_handler, from_end
):
    handler = make_handler()
    loader = make_loader(handler)
    expected = ExpectedScores(len(handler))
    train_epoch(handler, support.one_ahead(loader), expected)
    size = len(loader)
    for step, batch in enumerate(support.one_ahead(loader)):
        indices = support.indices_of(batch)
        loss = support.batch_loss(indices)
        if step != size - from_end:
            handler.update(loss)
        if step < size - 2:
            expected.observe(indices, loss)
    iter(handler.sampler)  # the next epoch: the one before is over
    assert_scores(handler, expected)
    assert handler.num_missed_updates == 2


def test_if_a_lookahead_cannot_be_told_from_missed_updates_nothing_is_scored(make_handler):
    handler = make_handler()
    for step, batch in enumerate(support.plain_wrapper(make_loader(handler))):
        if step not in (0, 12):  # as if one batch were fetched ahead and the loop left at the end
            handler.update(support.batch_loss(support.indices_of(batch)))
    iter(handler.sampler)
    assert handler.num_observations == 0
    assert handler.num_missed_updates == 13


def test_missed_updates_are_warned_of_once(make_handler):
    handler = make_handler(epochs=3)
    loader = make_loader(handler)
    expected = ExpectedScores(len(handler))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            train_epoch(handler, loader, expected, skip=(1, 3))
    caught = [w for w in caught if w.category is tamis.MissedUpdateWarning]
    assert len(caught) == 1
    assert "1 delivered batch" in str(caught[0].message)
    assert handler.num_missed_updates == 6


def test_an_iteration_without_any_update_is_not_training(make_handler):
    handler = make_handler()
    for _ in range(3):
        assert len(list(make_loader(handler, num_workers=2))) == 13
    assert handler.num_missed_updates == 0
    assert handler.epoch == 0


def test_leaving_an_epoch_early_is_not_a_missed_update(make_handler):
    handler = make_handler()
    expected = ExpectedScores(len(handler))
    for _ in range(4):
        train_epoch(handler, make_loader(handler, num_workers=2), expected, stop=4)
    assert handler.num_missed_updates == 0


def test_a_given_lookahead_is_believed(make_handler):
    handler = make_handler(lookahead=1)
    expected = ExpectedScores(len(handler))
    loader = make_loader(handler)
    # Fetches ahead inside the loop itself, skips the first update and stops early.
    iterator = iter(loader)
    following = next(iterator)
    for step in range(6):
        current, following = following, next(iterator)
        if step == 0:
            continue
        loss = support.batch_loss(current[0])
        handler.update(loss)
        expected.observe(current[0], loss)
    assert_scores(handler, expected)
    assert handler.num_missed_updates == 1


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
        if index % 20 == 7:
            raise OSError(f"sample {index} is corrupt")
        return super().__getitem__(index)


@pytest.mark.parametrize("mode", ["sampler", "batch_sampler"])
@pytest.mark.parametrize("loader", LOADERS)
def test_batches_that_fail_to_load_do_not_shift_the_others(make_handler, loader, mode):
    handler = make_handler(epochs=2, dataset=Corrupt(103))
    batches = make_loader(handler, mode, **LOADERS[loader])
    expected = ExpectedScores(len(handler))
    num_failed = 0
    for _ in range(2):
        iterator = iter(batches)
        while True:
            try:
                indices, _ = next(iterator)
            except OSError:
                num_failed += 1
                continue
            except StopIteration:
                break
            loss = support.batch_loss(indices)
            handler.update(loss)
            expected.observe(indices, loss)
    del iterator
    assert_scores(handler, expected)
    assert handler.num_missed_updates == num_failed > 0
