"""The indices that an update is booked on are exact, however batches are loaded."""

import multiprocessing

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader

import support
import tamis
from support import ExpectedScores, assert_scores, make_loader, train_epoch

WRAPPERS = {
    "bare": lambda loader: loader,
    "plain_wrapper": support.plain_wrapper,
    "one_ahead": support.one_ahead,
    "one_ahead_released": support.one_ahead_released,
    "three_ahead": support.three_ahead,
}
LOADERS = {
    "0 workers": {},
    "2 workers": {"num_workers": 2},
    "persistent": {"num_workers": 2, "persistent_workers": True},
    "deep prefetch": {"num_workers": 2, "prefetch_factor": 9},  # more than an epoch has
}


def run_epochs(handler, loader, wrap=WRAPPERS["bare"], epochs=4, **options):
    expected = ExpectedScores(len(handler))
    for _ in range(epochs):
        num_batches = len(loader)
        assert train_epoch(handler, wrap(loader), expected, **options) == num_batches
    assert_scores(handler, expected)
    assert handler.num_missed_updates == 0


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("mode", ["sampler", "batch_sampler"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_losses_reach_their_batches_without_workers(make_handler, wrapper, mode, drop_last):
    handler = make_handler()
    loader = make_loader(handler, mode, drop_last=drop_last)
    run_epochs(handler, loader, WRAPPERS[wrapper])


@pytest.mark.parametrize("mode", ["sampler", "batch_sampler"])
@pytest.mark.parametrize("wrapper", ["bare", "one_ahead", "one_ahead_released"])
@pytest.mark.parametrize("loader", ["2 workers", "persistent", "deep prefetch"])
def test_losses_reach_their_batches_with_workers(make_handler, wrapper, mode, loader):
    handler = make_handler(epochs=3)
    run_epochs(handler, make_loader(handler, mode, **LOADERS[loader]), WRAPPERS[wrapper], epochs=3)


@pytest.mark.parametrize("persistent", [False, True])
def test_losses_reach_their_batches_with_spawned_workers(make_handler, persistent):
    handler = make_handler(epochs=2)
    loader = make_loader(
        handler, num_workers=1, multiprocessing_context="spawn", persistent_workers=persistent
    )
    run_epochs(handler, loader, epochs=2 if persistent else 1)


def test_losses_reach_their_batches_with_drop_last_and_workers(make_handler):
    handler = make_handler(epochs=3)
    run_epochs(handler, make_loader(handler, drop_last=True, num_workers=2), epochs=3)


@pytest.mark.filterwarnings("ignore:'pin_memory' argument")
def test_losses_reach_their_batches_with_pinned_memory(make_handler):
    handler = make_handler(epochs=2)
    run_epochs(handler, make_loader(handler, pin_memory=True, num_workers=2), epochs=2)


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_end_when_the_loop_or_the_loader_is_gone(make_handler, persistent):
    before = set(multiprocessing.active_children())
    handler = make_handler(epochs=1)
    loader = make_loader(handler, num_workers=2, persistent_workers=persistent)
    expected = ExpectedScores(len(handler))
    train_epoch(handler, loader, expected, stop=3)
    assert len(set(multiprocessing.active_children()) - before) == (2 if persistent else 0)
    del loader
    assert set(multiprocessing.active_children()) <= before
    assert_scores(handler, expected)


def test_explicit_and_counted_updates_can_be_mixed(make_handler):
    handler = make_handler(epochs=2)
    expected = ExpectedScores(len(handler))
    for _ in range(2):
        for step, (indices, _) in enumerate(make_loader(handler, num_workers=2)):
            loss = support.batch_loss(indices)
            handler.update(loss, indices=indices if step % 3 == 0 else None)
            expected.observe(indices, loss)
    assert_scores(handler, expected)
    assert handler.num_missed_updates == 0
    assert handler.progress == 1.0


def collate_to_dict(samples):
    return {"index": torch.tensor([s[0] for s in samples]), "text": [str(s[0]) for s in samples]}


@pytest.mark.parametrize("num_workers", [0, 2])
def test_losses_reach_their_batches_with_a_custom_collate_function(make_handler, num_workers):
    handler = make_handler(epochs=2)
    loader = make_loader(handler, collate_fn=collate_to_dict, num_workers=num_workers)
    run_epochs(handler, loader, epochs=2)


def test_losses_reach_their_batches_when_the_data_set_fetches_batches(make_handler):
    handler = make_handler(dataset=support.BatchedIndexDataset(103))
    assert hasattr(handler, "__getitems__")
    run_epochs(handler, make_loader(handler))


@pytest.mark.parametrize("size", [1, 8, 9, 16, 17])
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("loader", ["0 workers", "2 workers"])
def test_losses_reach_their_batches_in_short_epochs(make_handler, size, wrapper, loader):
    if loader == "2 workers" and wrapper not in ("bare", "one_ahead"):
        wrapper = "bare"
    handler = make_handler(size, epochs=2)
    run_epochs(handler, make_loader(handler, **LOADERS[loader]), WRAPPERS[wrapper], epochs=2)


def test_losses_reach_their_samples_without_automatic_batching(make_handler):
    handler = make_handler(20, epochs=2)
    loader = DataLoader(handler, sampler=handler.sampler, batch_size=None)
    expected = ExpectedScores(20)
    for _ in range(2):
        for index, _ in loader:
            loss = support.batch_loss([index])
            handler.update(loss)
            expected.observe([index], loss)
    assert_scores(handler, expected)


def test_losses_reach_their_batches_from_the_batch_samplers_alone(make_handler):
    for batches in (
        lambda handler: handler.batch_sampler(8),
        lambda handler: BatchSampler(handler.sampler, 8, False),
        lambda handler: BatchSampler(handler.sampler, 8, True),
    ):
        handler = make_handler()
        expected = ExpectedScores(len(handler))
        for _ in range(4):
            train_epoch(handler, ([batch] for batch in batches(handler)), expected)
        assert_scores(handler, expected)


@pytest.mark.parametrize("loader", LOADERS)
def test_an_epoch_left_early_is_followed_by_the_next_one(make_handler, loader):
    handler = make_handler(epochs=3)
    batches = make_loader(handler, **LOADERS[loader])
    expected = ExpectedScores(len(handler))
    train_epoch(handler, batches, expected, stop=5)
    assert handler.epoch == 0
    train_epoch(handler, batches, expected)
    assert handler.epoch == 1
    train_epoch(handler, batches, expected, stop=2)
    assert_scores(handler, expected)
    assert handler.num_missed_updates == 0


@pytest.mark.parametrize("wrapper", ["one_ahead", "one_ahead_released"])
def test_a_first_epoch_left_early_is_booked_exactly_behind_a_lookahead(make_handler, wrapper):
    handler = make_handler()
    loader = make_loader(handler, num_workers=2)
    expected = ExpectedScores(len(handler))
    for stop in (5, 1, None, 3):
        train_epoch(handler, WRAPPERS[wrapper](loader), expected, stop=stop)
    assert_scores(handler, expected)
    assert handler.num_missed_updates == 0


@pytest.mark.parametrize("loader", LOADERS)
def test_evaluation_in_between_changes_nothing(make_handler, loader):
    handler = make_handler(epochs=3)
    other = make_handler(50, epochs=2)
    batches = make_loader(handler, **LOADERS[loader])
    expected = ExpectedScores(len(handler))
    for _ in range(2):
        for step, batch in enumerate(batches):
            order = torch.from_numpy(handler.plan.order.astype(np.int64))
            if step % 4 == 1:
                assert len(list(DataLoader(handler, batch_size=16))) == 7  # same data, no sampler
                assert len(list(make_loader(other))) == 7
                nested = [b[0].tolist() for b in make_loader(handler)]  # the same sampler
                assert nested == [b.tolist() for b in torch.split(order, 8)]
                assert len(batches) == len(nested)
            indices = support.indices_of(batch)
            loss = support.batch_loss(indices)
            handler.update(loss)
            expected.observe(indices, loss)
    assert_scores(handler, expected)
    assert handler.epoch == 1
    assert handler.num_missed_updates == 0


def test_gradient_accumulation_books_every_batch(make_handler):
    handler = make_handler(epochs=2)
    weight = torch.nn.Parameter(torch.ones(()))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    expected = ExpectedScores(len(handler))
    for _ in range(2):
        for step, (indices, _) in enumerate(make_loader(handler, num_workers=2)):
            loss = support.batch_loss(indices) * weight
            expected.observe(indices, loss.item())
            (handler.update(loss) / 4).backward()
            if step % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
    assert_scores(handler, expected)


@pytest.mark.parametrize("wrapper", ["bare", "one_ahead", "one_ahead_released"])
def test_two_updates_of_one_batch_are_booked_on_it(make_handler, wrapper):
    handler = make_handler()
    expected = ExpectedScores(len(handler))
    for _ in range(3):
        for indices, _ in WRAPPERS[wrapper](make_loader(handler, num_workers=2)):
            for factor in (1.0, 2.0):
                loss = support.batch_loss(indices) * factor
                handler.update(loss)
                expected.observe(indices, loss)
    assert_scores(handler, expected)
    assert handler.num_missed_updates == 0


def test_explicit_indices_are_booked_as_they_are(make_handler):
    handler = make_handler(20)
    expected = ExpectedScores(20)
    kinds = (list, np.asarray, torch.as_tensor, lambda i: np.asarray(i, dtype=np.uint32))
    for kind in kinds:
        handler.update(torch.tensor(2.5), indices=kind([3, 1, 4]))
        expected.observe([3, 1, 4], 2.5)
    assert_scores(handler, expected)
    with pytest.raises(IndexError, match="index"):
        handler.update(torch.tensor(1.0), indices=[20])
    with pytest.raises(TypeError, match="indices"):
        handler.update(torch.tensor(1.0), indices=torch.tensor([1.0]))


def test_explicit_indices_work_with_a_batch_sampler_of_the_users_own(make_handler):
    handler = make_handler(epochs=2)

    class Reversed(BatchSampler):
        def __iter__(self):
            return (batch[::-1] for batch in list(super(Reversed, self).__iter__()))

    loader = DataLoader(handler, batch_sampler=Reversed(handler.sampler, 8, False))
    expected = ExpectedScores(len(handler))
    for _ in range(2):
        for indices, _ in loader:
            loss = support.batch_loss(indices)
            handler.update(loss, indices=indices)
            expected.observe(indices, loss)
    assert_scores(handler, expected)
    assert handler.epoch == 1
    assert handler.progress == 1.0


def own_batches(sampler, size):
    batch = []
    for index in sampler:
        batch.append(index)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


class OwnBatchSampler:
    def __init__(self, sampler, size):
        self.sampler, self.size = sampler, size

    def __iter__(self):
        return own_batches(self.sampler, self.size)


def test_a_batch_sampler_of_the_users_own_is_refused_until_its_batch_size_is_given(make_handler):
    handler = make_handler()
    loader = DataLoader(handler, batch_sampler=OwnBatchSampler(handler.sampler, 8))
    for indices, _ in loader:
        with pytest.raises(RuntimeError, match="batch_sampler=.*indices=.*batch_size="):
            handler.update(support.batch_loss(indices))
        break
    handler = make_handler(batch_size=8)
    loader = DataLoader(
        handler, batch_sampler=OwnBatchSampler(handler.sampler, 8), num_workers=2
    )
    expected = ExpectedScores(len(handler))
    for _ in range(4):
        train_epoch(handler, loader, expected)
    assert_scores(handler, expected)


def test_a_loader_in_another_thread_is_refused(make_handler):
    import queue
    import threading

    handler = make_handler()
    batches = queue.Queue()
    thread = threading.Thread(target=lambda: [batches.put(b) for b in make_loader(handler)])
    thread.start()
    thread.join()
    with pytest.raises(RuntimeError, match="another thread"):
        handler.update(torch.tensor(1.0))
    indices, _ = batches.get()
    handler.update(torch.tensor(1.0), indices=indices)
    assert handler.num_observations == 1


def test_an_update_without_a_batch_is_refused(make_handler):
    handler = make_handler()
    with pytest.raises(RuntimeError, match="no batch"):
        handler.update(torch.tensor(1.0))
    iter(make_loader(handler, num_workers=1))
    with pytest.raises(RuntimeError, match="no batch"):
        handler.update(torch.tensor(1.0))


def test_a_loader_that_delivers_in_any_order_is_refused(make_handler):
    handler = make_handler()
    iterator = iter(make_loader(handler, num_workers=1))
    next(iterator)
    handler._run.current.source._in_order = False  # as newer versions of torch have it
    with pytest.raises(RuntimeError, match="in_order"):
        handler.update(torch.tensor(1.0))


def test_an_iterator_that_outlives_its_epoch_is_refused(make_handler):
    handler = make_handler(5000)
    old = iter(handler.sampler)
    next(old)
    handler.set_epoch(1)
    next(iter(handler.sampler))
    with pytest.raises(RuntimeError, match="outlived"):
        list(old)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_the_users_batches_look_as_they_did_without_us(make_handler, num_workers):
    handler = make_handler(16)
    plain = next(iter(DataLoader(handler.dataset, batch_size=8)))
    pruned = next(iter(make_loader(handler, num_workers=num_workers)))
    assert type(pruned) is type(plain)
    assert [(b.shape, b.dtype) for b in pruned] == [(b.shape, b.dtype) for b in plain]


def test_nothing_of_torch_is_patched():
    from torch.utils.data import dataloader, sampler

    for owner in (dataloader._BaseDataLoaderIter, dataloader.DataLoader, sampler.BatchSampler):
        for value in vars(owner).values():
            if callable(value) and hasattr(value, "__module__"):
                assert not str(value.__module__).startswith("tamis")
    assert tamis.Sampler is not sampler.Sampler
