"""Homogeneous batches, the class floor and the target budget."""

import copy

import numpy as np
import pytest
import tamis
import torch
from support import MODES, IndexDataset, batch_loss, indices_of, make_loader

SIZE = 403


def prune(method="bls-infobatch", size=SIZE, epochs=4, prune_ratio=0.5, **options):
    return tamis.prune(
        IndexDataset(size),
        method,
        epochs=epochs,
        prune_ratio=prune_ratio,
        options=tamis.Options(**options),
    )


def train(handler, epochs, batch_size=16, mode="loader"):
    """Trains on the mean loss; returns the weights of every batch, epoch by epoch."""
    weights = []
    for _ in range(epochs):
        weights.append([])
        for batch in make_loader(handler, mode, batch_size):
            indices = indices_of(batch)
            weights[-1].append(handler.weights[indices])
            handler.update(batch_loss(indices))
    return weights


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", ["bls-infobatch", "blr-infobatch"])
def test_homogeneous_batches_have_one_weight_each(mode, method):
    handler = prune(method, delta=1.0, homogeneous=True, batch_size=16)
    epochs = train(handler, 4, mode=mode)
    assert all(len(set(batch)) == 1 for batches in epochs for batch in batches)
    assert any(batch[0] != 1.0 for batches in epochs for batch in batches)


def test_homogeneous_batches_are_weighted_exactly():
    handler = prune(epochs=3, homogeneous=True, batch_size=16)
    train(handler, 1)
    seen = set()
    for batch in make_loader(handler, batch_size=16):
        indices = indices_of(batch)
        losses = torch.tensor([1.0 + i / SIZE for i in indices])
        weights = torch.from_numpy(handler.weights[indices])
        torch.testing.assert_close(handler.update(losses.mean()), (losses * weights).mean())
        seen.add(float(weights[0]))
    assert len(seen) == 2


def test_homogeneous_batches_need_the_loaders_batch_size():
    with pytest.raises(ValueError, match="homogeneous batches need batch_size="):
        prune(epochs=3, homogeneous=True)
    handler = prune(epochs=3, homogeneous=True, batch_size=16)
    with pytest.raises(ValueError, match="32 does not divide 16"):
        next(iter(make_loader(handler, batch_size=32)))
    assert len(indices_of(next(iter(make_loader(handler, batch_size=8))))) == 8  # a divisor


@pytest.mark.parametrize("as_array", [list, np.array, torch.tensor])
def test_the_class_floor_keeps_its_share_of_every_class(as_array):
    labels = [i % 13 - 3 for i in range(SIZE)]
    handler = prune(prune_ratio=0.9, min_per_class=0.7, labels=as_array(labels))
    for _ in range(3):
        train(handler, 1)
        kept = handler.plan.kept
        for label in set(labels):
            members = np.array(labels) == label
            assert kept[members].sum() >= 0.7 * members.sum()
    assert handler.plan.report["num_restored"] > 0


def test_labels_must_fit():
    with pytest.raises(ValueError, match="labels for min_per_class must be as many as samples"):
        prune(min_per_class=0.1, labels=[1, 2])
    with pytest.raises(TypeError):
        prune(size=2, min_per_class=0.1, labels=[0.5, 1.0])
    with pytest.raises(ValueError, match="32-bit"):
        prune(size=2, min_per_class=0.1, labels=[1, 2**40])


def test_the_target_is_met():
    handler = prune(epochs=12, target_prune=0.3)
    train(handler, 12)
    assert abs(handler.pruned_share - 0.3) < 0.005


def test_a_target_out_of_reach_is_told_once():
    handler = prune(epochs=8, target_prune=0.6)
    with pytest.warns(tamis.TargetWarning, match="target_prune is 0.6") as caught:
        train(handler, 8)
    assert len([w for w in caught if w.category is tamis.TargetWarning]) == 1
    assert handler.pruned_share < 0.595
    with pytest.raises(ValueError, match="target_prune must be at most"):
        prune(epochs=8, target_prune=0.9)


def test_proxies_states_and_copies_keep_the_options():
    def make(labels):
        options = tamis.Options(
            batch_size=16,
            homogeneous=True,
            min_per_class=0.5,
            labels=labels,
            target_prune=0.2,
            threads=3,
        )
        return tamis.BLR(tamis.InfoBatch(IndexDataset(SIZE), epochs=6, options=options)).proxy()

    handler = make([i % 5 * 2 for i in range(SIZE)])
    assert handler.options["score"] == "reconstruction"
    assert handler.options["homogeneous_batch_size"] == 16
    assert handler.options["min_per_class"] == 0.5
    assert handler.options["target_prune"] == 0.2
    assert handler.options["threads"] == 3
    assert handler.options["labels"].tolist() == [i % 5 for i in range(SIZE)]  # numbered
    train(handler, 2)
    twin = copy.deepcopy(handler)
    other = make(np.arange(SIZE) % 5)
    other.load_state_dict(handler.state_dict())
    for run in (handler, twin, other):
        train(run, 4)
    np.testing.assert_array_equal(handler.scores, twin.scores)
    np.testing.assert_array_equal(handler.scores, other.scores)
    np.testing.assert_array_equal(handler.plan.order, other.plan.order)
