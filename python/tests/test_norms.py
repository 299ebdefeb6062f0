"""Norms of watched outputs, as the native module takes them."""

import numpy as np
import pytest
import torch
from tamis import Pruner


@pytest.fixture
def pruner():
    pruner = Pruner(100, 4, policy="none", score="output-gradient")
    pruner.start_epoch(0)
    return pruner


@pytest.mark.parametrize(
    "norms",
    [
        [1.0, 2.0, 3.0],
        [1, 2, 3],
        np.array([1.0, 2.0, 3.0]),
        np.array([1.0, 2.0, 3.0], dtype=np.float16),
        torch.tensor([1.0, 2.0, 3.0]),
        torch.arange(1.0, 7.0)[::2] * 0.5 + 0.5,
    ],
)
@pytest.mark.parametrize("loss", [2.0, torch.tensor(2.0), [1.0, 2.0, 3.0]])
def test_the_mean_loss_is_shared_out_by_norms_of_every_kind(pruner, loss, norms):
    assert pruner.needs == "output-gradients"
    assert pruner.observe_samples([5, 0, 99], loss, norms)
    assert pruner.scores[[5, 0, 99]].tolist() == [1.0, 2.0, 3.0]


def test_positions_and_indices_are_two_ways_to_say_the_same(pruner):
    other = Pruner(100, 4, policy="none", score="output-gradient")
    other.start_epoch(0)
    norms = [0.5, 4.0, 0.25, 1.0]
    assert pruner.observe(10, 4, 1.5, norms=norms)
    assert other.observe_samples(other.plan.samples(10, 4), 1.5, norms=norms)
    assert pruner.serialize() == other.serialize()


@pytest.mark.parametrize("bad", [[0.0, 0.0], [1.0, np.nan], [np.inf, 1.0], [-1.0, 1.0]])
def test_norms_that_say_nothing_are_skipped_and_counted(pruner, bad):
    assert not pruner.observe_samples([1, 2], 1.0, bad)
    assert pruner.num_skipped_observations == 1
    assert pruner.num_scored == 0


def test_norms_are_left_aside_by_scores_that_need_none():
    plain, watched = (Pruner(100, 4, score="batch-loss") for _ in range(2))
    plain.observe_samples([1, 2], 3.0)
    watched.observe_samples([1, 2], 3.0, [1.0, 5.0])
    assert plain.serialize() == watched.serialize()


def test_what_is_missing_is_said_with_the_cure(pruner):
    with pytest.raises(ValueError, match="needs the norm of the output gradient of each of the 2"):
        pruner.observe(0, 2, 1.0)
    with pytest.raises(ValueError, match=r"norms must be as many as count \(2\), got 3"):
        pruner.observe(0, 2, 1.0, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"norms must be as many as samples \(2\), got 1"):
        pruner.observe_samples([1, 2], 1.0, [1.0])
    with pytest.raises(ValueError, match="norms must have one dimension, got 2"):
        pruner.observe_samples([1, 2], 1.0, [[1.0, 2.0]])
    with pytest.raises(TypeError, match="a norm must be a real number"):
        pruner.observe_samples([1, 2], 1.0, ["a", "b"])
    own = Pruner(100, 4, score="sample-loss")
    with pytest.raises(ValueError, match="output-gradient works with these"):
        own.observe_samples([1, 2], 1.0, [1.0, 2.0])
