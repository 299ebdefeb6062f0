"""Streams: filtered with the epoch's selection, in the source's order, known by their ids."""

import pickle

import numpy as np
import pytest
import support
import tamis
import torch
from support import ExpectedScores, assert_scores
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

SIZE = 103


class Source(IterableDataset):
    """Reads its samples in one order, each worker its part, and leaves out what is pruned."""

    def __init__(self, keeps):
        self.keeps = keeps

    def __iter__(self):
        worker = get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        for index in range(first, SIZE, step):
            if self.keeps(index):
                yield {"id": index, "x": support.loss_of(index)}


def make_stream(epochs=4):
    return tamis.prune(tamis.Stream(SIZE), "bls-infobatch", epochs=epochs)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_workers": 2},
        {"num_workers": 2, "persistent_workers": True},
        {"num_workers": 1, "multiprocessing_context": "spawn", "persistent_workers": True},
    ],
)
def test_a_stream_gives_the_samples_of_each_epoch(options):
    handler = make_stream()
    expected = ExpectedScores(SIZE)
    loader = DataLoader(Source(handler.keeps), batch_size=8, **options)
    sizes = []
    for epoch in range(4):
        handler.set_epoch(epoch)
        seen = []
        for batch in loader:
            loss = support.batch_loss(batch["id"])
            weight = float(handler.weights[batch["id"]].mean(dtype=np.float64))
            torch.testing.assert_close(handler.update(loss, ids=batch["id"]), loss * weight)
            expected.observe(batch["id"], loss)
            seen += batch["id"].tolist()
        assert sorted(seen) == np.flatnonzero(handler.plan.kept).tolist()
        assert handler.progress == (epoch + 1) / 4
        sizes.append(len(seen))
    assert_scores(handler, expected)
    assert min(sizes) < SIZE


def test_a_stream_resumes_with_the_selection_of_its_epoch():
    first = make_stream()
    for epoch in range(2):
        first.set_epoch(epoch)
        for batch in DataLoader(Source(first.keeps), batch_size=8):
            first.update(support.batch_loss(batch["id"]), ids=batch["id"])
            if epoch == 1:
                break
    second = make_stream()
    keeps = second.keeps
    second.load_state_dict(first.state_dict())
    assert (second.epoch, second.next_epoch, second.progress) == (1, 1, first.progress)
    np.testing.assert_array_equal(keeps(range(SIZE)), first.plan.kept)
    second.set_epoch(1)
    assert second.progress == first.progress


def test_keeps_takes_one_id_or_many_and_refuses_strangers():
    handler = make_stream()
    keeps = handler.keeps
    assert keeps(3) is True
    for ids in ([1, 2], np.array([1, 2]), torch.tensor([1, 2])):
        assert keeps(ids).tolist() == [True, True]
    for wrong in (SIZE, -1, [0, SIZE]):
        with pytest.raises(IndexError, match=rf"an id must be in \[0, {SIZE}\)"):
            keeps(wrong)
    assert len(pickle.dumps(keeps)) < 2000 + SIZE


def test_keeps_also_filters_for_a_handler_with_a_data_set(make_handler):
    handler = make_handler()
    for epoch in range(3):
        handler.set_epoch(epoch)
        np.testing.assert_array_equal(handler.keeps(range(103)), handler.plan.kept)
        for batch in handler.loader(8):
            handler.update(support.batch_loss(batch[0]), batch)


def test_a_stream_that_is_read_twice_in_an_epoch_is_told():
    handler = make_stream()
    with pytest.warns(tamis.LoopWarning, match=r"call handler.set_epoch\(epoch\) before each"):
        for _ in range(2):
            for batch in DataLoader(Source(handler.keeps), batch_size=8):
                handler.update(support.batch_loss(batch["id"]), ids=batch["id"])


def test_a_stream_has_no_data_set_and_no_batches_of_its_own():
    handler = make_stream()
    for use in (lambda: handler.data, lambda: handler.loader(8)):
        with pytest.raises(RuntimeError, match=r"handler.keeps\(ids\).*update\(loss, ids=...\)"):
            use()
    with pytest.raises(RuntimeError, match="no loop"):
        handler.update(torch.tensor(1.0))
    with pytest.raises(ValueError, match="Stream: num_samples must be a whole number"):
        tamis.Stream(0)
