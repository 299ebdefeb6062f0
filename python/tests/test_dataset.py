"""handler.data is the data set as loaders see it."""

import pytest
import tamis
import torch
from support import BatchedIndexDataset, IndexDataset, make_loader
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset


def test_length_items_and_attributes_are_those_of_the_data_set(make_handler):
    data = make_handler(20).data
    assert len(data) == 20
    assert data[3] == data.dataset[3]
    assert data.classes == ["easy", "hard"]
    assert isinstance(data, Dataset)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        data.nothing_of_the_kind  # noqa: B018


@pytest.mark.parametrize("kind", [IndexDataset, BatchedIndexDataset])
def test_batches_know_their_ids_before_and_after_collation(make_handler, kind):
    data = make_handler(dataset=kind(20)).data
    samples = data.__getitems__([3, 1])
    assert list(samples) == [data[3], data[1]]
    assert samples.ids == [3, 1]
    assert Subset(data, [5, 6, 7]).__getitems__([2, 0]).ids == [7, 5]


def test_sequences_and_tensor_data_sets_can_be_pruned():
    for data in (list("abcdefgh"), range(8), TensorDataset(torch.arange(8))):
        handler = tamis.prune(data, "bls-infobatch", epochs=1)
        assert len(next(iter(make_loader(handler)))) in (1, 8)


def test_what_is_not_a_map_style_data_set_is_refused():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(3))

    for wrong in (Stream(), iter([1, 2]), 5):
        with pytest.raises(TypeError, match="dataset must have len"):
            tamis.InfoBatch(wrong, epochs=1)
    with pytest.raises(ValueError, match="dataset must have at least one sample"):
        tamis.InfoBatch([], epochs=1)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"batch_size": True}, "batch_size must be"),
        ({"homogeneous": True}, "need batch_size="),
        ({"time_limit": 0}, "time_limit must be"),
        ({"threads": 0}, "threads must be a whole number of at least 1, got 0"),
        ({"delta": 1.5}, "delta must be in"),
        ({"layout": "x"}, "layout must be 'automatic', 'replicated' or 'sharded', got 'x'"),
        ({"remainder": "x"}, "remainder must be 'pad' or 'drop', got 'x'"),
        ({"sharding": "x"}, "sharding must be 'own' or 'external', got 'x'"),
        ({"sharding": "external", "layout": "sharded"}, "leave out layout="),
        ({"seed": 2**70}, r"seed must be a whole number in \[0, 18446744073709551615\], got 1180"),
    ],
)
def test_wrong_options_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        tamis.InfoBatch(IndexDataset(10), epochs=2, options=tamis.Options(**options))


@pytest.mark.parametrize("epochs", [0, 1.5, True])
def test_a_wrong_number_of_epochs_is_refused(epochs):
    with pytest.raises(ValueError, match="epochs must be a whole number of at least 1"):
        tamis.InfoBatch(IndexDataset(10), epochs=epochs)
