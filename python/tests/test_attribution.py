"""A loss is attributed to its own batch, by delivery, by ids or in order, or it is refused."""

import multiprocessing
import queue
import threading

import numpy as np
import pytest
import support
import tamis
import torch
from support import (
    LOADERS,
    WRAPPERS,
    ExpectedScores,
    assert_scores,
    make_loader,
    rebuild,
    train_epoch,
)
from torch.utils.data import DataLoader

AHEAD = ("one_ahead", "one_ahead_released", "three_ahead", "windows")
IN_ORDER = ("bare", "plain_wrapper", "one_ahead", "one_ahead_released", "three_ahead")


def run_epochs(handler, loader, wrap=support.bare, epochs=4, **options):
    expected = ExpectedScores(len(handler))
    for _ in range(epochs):
        num_batches = len(loader)
        assert train_epoch(handler, wrap(loader), expected, **options) == num_batches
    assert_scores(handler, expected)
    assert handler.num_missed_updates == 0
    assert handler.progress == epochs / handler.epochs


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("wrapper", ["bare", "plain_wrapper"])
@pytest.mark.parametrize("loader", LOADERS)
def test_by_delivery_a_plain_loop_needs_nothing(make_handler, loader, wrapper, drop_last):
    handler = make_handler()
    loader = make_loader(handler, drop_last=drop_last, **LOADERS[loader])
    run_epochs(handler, loader, WRAPPERS[wrapper])


@pytest.mark.parametrize("wrapper", AHEAD)
@pytest.mark.parametrize("loader", ["0 workers", "2 workers"])
def test_by_delivery_a_loop_that_fetches_ahead_is_refused(make_handler, loader, wrapper):
    handler = make_handler()
    batches = WRAPPERS[wrapper](make_loader(handler, **LOADERS[loader]))
    for indices, _ in batches:
        with pytest.raises(RuntimeError, match="ids|batch"):
            handler.update(support.batch_loss(indices))
    assert handler.num_observations == 0


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("mode", ["sampler", "batch_sampler"])
@pytest.mark.parametrize("wrapper", IN_ORDER)
def test_in_order_updates_are_counted(make_handler, wrapper, mode, drop_last):
    handler = make_handler(drop_last=drop_last)
    run_epochs(handler, make_loader(handler, mode, drop_last=drop_last), WRAPPERS[wrapper])


@pytest.mark.parametrize("mode", ["sampler", "batch_sampler"])
@pytest.mark.parametrize("wrapper", ["bare", "one_ahead", "one_ahead_released"])
@pytest.mark.parametrize("loader", ["2 workers", "persistent", "deep prefetch"])
def test_in_order_updates_are_counted_with_workers(make_handler, wrapper, mode, loader):
    handler = make_handler(epochs=3)
    run_epochs(handler, make_loader(handler, mode, **LOADERS[loader]), WRAPPERS[wrapper], epochs=3)


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("loader", ["0 workers", "2 workers"])
@pytest.mark.parametrize("is_rebuilt", [False, True])
def test_by_ids_every_loop_is_right(make_handler, is_rebuilt, loader, wrapper):
    handler = make_handler(epochs=3)
    loader = make_loader(handler, **({} if is_rebuilt else LOADERS[loader]))
    if is_rebuilt:
        loader = rebuild(loader, num_workers=2 if loader.num_workers else 0)
    run_epochs(handler, loader, WRAPPERS[wrapper], epochs=3, by_ids=True)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_loader_that_a_framework_rebuilds_needs_ids(make_handler, num_workers):
    handler = make_handler()
    loader = rebuild(make_loader(handler), num_workers=num_workers)
    for batch in loader:
        with pytest.raises(RuntimeError, match=r"call update\(loss, batch\)"):
            handler.update(support.batch_loss(batch[0]))
    run_epochs(handler, loader, by_ids=True)


def collate_to_dict(samples):
    return {"index": torch.tensor([s[0] for s in samples]), "text": [str(s[0]) for s in samples]}


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("how", ["delivery", "batch", "ids"])
def test_dict_batches_carry_their_ids_as_a_key(make_handler, how, num_workers):
    handler = make_handler(epochs=2)
    expected = ExpectedScores(len(handler))
    for _ in range(2):
        for batch in handler.loader(8, collate_fn=collate_to_dict, num_workers=num_workers):
            assert tamis.indices_of(batch["tamis_ids"]).tolist() == batch["index"].tolist()
            loss = support.batch_loss(batch["index"])
            if how == "delivery":
                handler.update(loss)
            elif how == "batch":
                handler.update(loss, dict(batch))
            else:
                handler.update(loss, ids=batch["tamis_ids"])
            expected.observe(batch["index"], loss)
    assert_scores(handler, expected)
    assert handler.num_missed_updates == 0


@pytest.mark.filterwarnings("ignore:'pin_memory' argument")
@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"pin_memory": True}])
def test_list_batches_unpack_as_before_and_know_their_ids(make_handler, options):
    handler = make_handler(16)
    plain = next(iter(DataLoader(handler.data.dataset, batch_size=8)))
    pruned = next(iter(handler.loader(8, **options)))
    assert isinstance(pruned, list) and isinstance(pruned, tamis.Batch)
    assert [(b.shape, b.dtype) for b in pruned] == [(b.shape, b.dtype) for b in plain]
    index, _ = pruned
    assert pruned.indices.tolist() == index.tolist()


def test_batches_that_are_neither_stay_what_they_are():
    handler = tamis.prune(range(20), "bls-infobatch", epochs=2)
    for batch in handler.loader(8):
        assert type(batch) is torch.Tensor
        with pytest.raises(ValueError, match="does not know its ids"):
            handler.update(batch.float().mean(), batch)
        handler.update(batch.float().mean())
    assert handler.num_observations == 3


def test_a_batch_that_lost_its_ids_is_refused_with_the_cure(make_handler):
    handler = make_handler()
    for batch in handler.loader(8):
        moved = type(batch)(tensor.clone() for tensor in batch)
        for lost in (moved, list(batch), batch[0]):
            with pytest.raises(ValueError, match="ids="):
                handler.update(support.batch_loss(batch[0]), lost)
        handler.update(support.batch_loss(batch[0]), moved, ids=batch.ids)
    assert handler.num_observations == 13


# forkserver is the default from Python 3.14 on.
@pytest.mark.parametrize("context", ["spawn", "forkserver"])
@pytest.mark.parametrize("persistent", [False, True])
def test_workers_that_are_not_forked_get_the_data_set_alone(make_handler, persistent, context):
    handler = make_handler(epochs=2)
    loader = make_loader(
        handler, num_workers=1, multiprocessing_context=context, persistent_workers=persistent
    )
    run_epochs(handler, loader, epochs=2 if persistent else 1, by_ids=persistent)


def test_out_of_order_only_ids_tell(make_handler):
    handler = make_handler(epochs=2)
    loader = make_loader(handler, num_workers=2, in_order=False)
    for indices, _ in loader:
        with pytest.raises(RuntimeError, match="batch"):
            handler.update(support.batch_loss(indices))
    run_epochs(handler, loader, epochs=2, by_ids=True)


def test_a_loader_in_another_thread_is_refused_without_ids(make_handler):
    handler = make_handler()
    batches = queue.Queue(maxsize=1)

    def fetch():
        for batch in make_loader(handler):
            batches.put(batch)

    thread = threading.Thread(target=fetch)
    thread.start()
    for _ in range(13):
        batch = batches.get()
        loss = support.batch_loss(batch[0])
        with pytest.raises(RuntimeError, match="thread|running"):
            handler.update(loss)
        handler.update(loss, batch)
    thread.join()
    assert handler.num_observations == 13


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


def test_updates_by_delivery_and_by_ids_can_be_mixed(make_handler):
    handler = make_handler(epochs=2)
    expected = ExpectedScores(len(handler))
    for _ in range(2):
        for step, batch in enumerate(make_loader(handler, num_workers=2)):
            loss = support.batch_loss(batch[0])
            handler.update(loss, batch if step % 3 == 0 else None)
            expected.observe(batch[0], loss)
    assert_scores(handler, expected)
    assert handler.num_missed_updates == 0
    assert handler.progress == 1.0


def test_data_sets_that_fetch_batches_do_so(make_handler):
    handler = make_handler(dataset=support.BatchedIndexDataset(103))
    run_epochs(handler, make_loader(handler))


@pytest.mark.parametrize("size", [1, 8, 9, 16, 17])
@pytest.mark.parametrize("mode", support.MODES)
@pytest.mark.parametrize("loader", ["0 workers", "2 workers"])
def test_short_epochs_are_right_too(make_handler, size, mode, loader):
    handler = make_handler(size, epochs=2)
    run_epochs(handler, make_loader(handler, mode, **LOADERS[loader]), epochs=2)


def test_single_samples_are_counted_in_order(make_handler):
    handler = make_handler(20, epochs=2, batch_size=1)
    loader = DataLoader(handler.data, sampler=handler.sampler, batch_size=None)
    expected = ExpectedScores(20)
    for _ in range(2):
        for index, _ in loader:
            loss = support.batch_loss([index])
            handler.update(loss)
            expected.observe([index], loss)
    assert_scores(handler, expected)


def test_the_samplers_alone_are_counted_in_order(make_handler):
    handler = make_handler()
    expected = ExpectedScores(len(handler))
    for _ in range(4):
        train_epoch(handler, ([batch] for batch in handler.batch_sampler(8)), expected)
    assert_scores(handler, expected)


@pytest.mark.parametrize("loader", LOADERS)
def test_an_epoch_left_after_an_update_is_followed_by_the_next_one(make_handler, loader):
    handler = make_handler(epochs=3)
    batches = make_loader(handler, **LOADERS[loader])
    expected = ExpectedScores(len(handler))
    for epoch, num_steps in enumerate((5, 99, 2)):
        for step, (indices, _) in enumerate(batches):
            loss = support.batch_loss(indices)
            handler.update(loss)
            expected.observe(indices, loss)
            if step + 1 == num_steps:
                break
        assert handler.epoch == epoch
    assert_scores(handler, expected)


@pytest.mark.parametrize("mode", support.MODES)
def test_evaluation_over_other_loaders_changes_nothing(make_handler, mode):
    handler = make_handler(epochs=3)
    other = make_handler(50, epochs=2)
    batches = make_loader(handler, mode)
    expected = ExpectedScores(len(handler))
    for _ in range(2):
        for step, batch in enumerate(batches):
            if step % 4 == 1:
                assert len(list(DataLoader(handler.data, batch_size=16))) == 7
                assert len(list(make_loader(other))) == 7
            indices = support.indices_of(batch)
            loss = support.batch_loss(indices)
            handler.update(loss)
            expected.observe(indices, loss)
    assert_scores(handler, expected)
    assert handler.epoch == 1


@pytest.mark.parametrize("is_trained", [False, True])
@pytest.mark.parametrize("loader", ["0 workers", "deep prefetch"])
def test_two_loops_at_a_time_over_one_handler_are_refused(make_handler, loader, is_trained):
    handler = make_handler()
    expected = ExpectedScores(len(handler))
    batches = iter(make_loader(handler, **LOADERS[loader]))
    if is_trained:
        train_epoch(handler, (next(batches) for _ in range(3)), expected)
    outer = next(batches)
    next(iter(make_loader(handler, **LOADERS[loader])))
    assert handler.epoch == (1 if is_trained else 0)
    with pytest.raises(RuntimeError, match=r"another loop.*set_epoch.*update\(loss, batch\)"):
        handler.update(support.batch_loss(outer[0]))
    assert_scores(handler, expected)
    handler.set_epoch(1)
    train_epoch(handler, make_loader(handler), expected)
    assert_scores(handler, expected)


def test_a_look_at_a_batch_before_the_loop_changes_nothing(make_handler):
    handler = make_handler()
    loader = make_loader(handler)
    first, _ = next(iter(loader))
    assert first.tolist() == next(iter(loader)).indices.tolist()
    run_epochs(handler, loader)


def test_a_loss_of_another_loader_after_the_loop_is_refused(make_handler):
    handler = make_handler()
    expected = ExpectedScores(len(handler))
    train_epoch(handler, make_loader(handler), expected)
    for indices, _ in DataLoader(handler.data, batch_size=8, shuffle=True):
        with pytest.raises(RuntimeError, match=r"no loop.*update\(loss, batch\)"):
            handler.update(support.batch_loss(indices))
    assert_scores(handler, expected)


def test_gradient_accumulation_attributes_every_batch(make_handler):
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


def test_two_updates_of_one_batch_are_attributed_to_it(make_handler):
    handler = make_handler()
    expected = ExpectedScores(len(handler))
    for _ in range(3):
        for indices, _ in make_loader(handler, num_workers=2):
            for factor in (1.0, 2.0):
                loss = support.batch_loss(indices) * factor
                handler.update(loss)
                expected.observe(indices, loss)
    assert_scores(handler, expected)
    assert handler.num_missed_updates == 0


def test_ids_of_every_kind_are_taken(make_handler):
    handler = make_handler(20)
    expected = ExpectedScores(20)
    kinds = (list, np.asarray, torch.as_tensor, lambda i: np.asarray(i, dtype=np.uint32))
    for kind in kinds:
        handler.update(torch.tensor(2.5), ids=kind([3, 1, 4]))
        expected.observe([3, 1, 4], 2.5)
    assert_scores(handler, expected)
    with pytest.raises(IndexError, match="index"):
        handler.update(torch.tensor(1.0), ids=[20])
    with pytest.raises(TypeError, match="indices"):
        handler.update(torch.tensor(1.0), ids=torch.tensor([1.0]))


def test_an_unknown_batch_size_is_refused_with_the_cure(make_handler):
    handler = make_handler(batch_size=None)
    loader = DataLoader(handler.data, sampler=handler.sampler, batch_size=8)
    for indices, _ in loader:
        with pytest.raises(RuntimeError, match=r"handler.loader\(B\).*batch_size=B"):
            handler.update(support.batch_loss(indices))
    run_epochs(handler, make_loader(handler, "batch_sampler"))


def test_an_update_without_a_batch_is_refused(make_handler):
    handler = make_handler()
    with pytest.raises(RuntimeError, match="no loop"):
        handler.update(torch.tensor(1.0))
    iterator = iter(make_loader(handler, num_workers=1))
    with pytest.raises(RuntimeError, match="batch"):
        handler.update(torch.tensor(1.0))
    del iterator


def test_a_handler_is_not_a_data_set(make_handler):
    handler = make_handler()
    with pytest.raises(TypeError, match=r"handler.loader\(B\), or handler.data"):
        next(iter(DataLoader(handler, sampler=handler.sampler, batch_size=8)))


def test_the_order_is_the_handlers(make_handler):
    for option in ({"shuffle": True}, {"sampler": [1, 2]}, {"batch_sampler": [[1, 2]]}):
        with pytest.raises(ValueError, match=f"leave out {next(iter(option))}="):
            make_handler().loader(8, **option)


def test_nothing_of_torch_is_patched():
    from torch.utils.data import dataloader, sampler

    for owner in (dataloader._BaseDataLoaderIter, dataloader.DataLoader, sampler.BatchSampler):
        for value in vars(owner).values():
            if callable(value) and hasattr(value, "__module__"):
                assert not str(value.__module__).startswith("tamis")
