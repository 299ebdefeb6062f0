"""The handler takes the place of the data set."""

import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset

import tamis
from support import BatchedIndexDataset, IndexDataset, make_loader


def test_length_and_items_are_those_of_the_data_set(make_handler):
    handler = make_handler(20)
    assert len(handler) == 20
    assert handler[3] == handler.dataset[3]
    assert isinstance(handler, Dataset)


def test_attributes_fall_through_to_the_data_set(make_handler):
    handler = make_handler(20)
    assert handler.classes == ["easy", "hard"]
    handler.classes = ["one"]
    assert handler.dataset.classes == ["one"]
    handler.my_note = "mine"
    assert not hasattr(handler.dataset, "my_note")
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        handler.nothing_of_the_kind
    with pytest.raises(AttributeError):
        handler.scores = 1


def test_batched_fetching_is_there_only_if_the_data_set_has_it(make_handler):
    assert not hasattr(make_handler(20), "__getitems__")
    assert hasattr(make_handler(dataset=BatchedIndexDataset(20)), "__getitems__")


def test_sequences_and_tensor_data_sets_can_be_wrapped():
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
    with pytest.raises(ValueError, match="num_samples"):
        tamis.InfoBatch([], epochs=1)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"epochs": 0}, "epochs must be a whole number of at least 1, got 0"),
        ({"epochs": 1.5}, "epochs must be a whole number"),
        ({"seed": -1}, "seed must be"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"batch_size": True}, "batch_size must be"),
        ({"lookahead": -1}, "lookahead must be"),
        ({"delta": 1.5}, "delta must be in"),
    ],
)
def test_wrong_arguments_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        tamis.InfoBatch(IndexDataset(10), **{"epochs": 2, **options})
