"""Ids travel with the batch: (epoch, index), through frameworks, models and losses."""

import io

import numpy as np
import pytest
import support
import tamis
import torch
from support import LOADERS, ExpectedScores, assert_scores, make_loader, rebuild, train_epoch
from torch.nn.functional import cross_entropy


def pruned_handler(make_handler, **options):
    """After an epoch, so that the next ones have weights."""
    handler = make_handler(epochs=6, **options)
    expected = ExpectedScores(len(handler))
    train_epoch(handler, make_loader(handler), expected)
    return handler, expected


# An id is an epoch and an index.


def test_a_batch_of_the_epoch_before_has_the_weights_of_its_epoch(make_handler):
    handler, expected = pruned_handler(make_handler)
    late = list(make_loader(handler))[-3:]
    weights = handler.weights
    assert len(set(weights)) == 2
    train_epoch(handler, make_loader(handler), expected)
    handler.set_epoch(2)
    assert not np.array_equal(weights, handler.weights)
    position = handler.steps_left
    for batch in late:
        loss = support.batch_loss(batch[0])
        result = handler.update(loss, batch)
        torch.testing.assert_close(result, loss * float(weights[batch.indices].mean()))
        expected.observe(batch[0], loss)
    assert handler.steps_left == position  # nothing of epoch 2 has been trained on
    assert_scores(handler, expected)


def test_a_batch_of_two_epochs_before_is_refused(make_handler):
    handler, expected = pruned_handler(make_handler)
    late = next(iter(make_loader(handler)))
    for _ in range(2):
        train_epoch(handler, make_loader(handler), expected)
    handler.set_epoch(3)
    with pytest.raises(ValueError, match="of epoch 1, but epoch 3 is running"):
        handler.update(torch.tensor(1.0), late)
    mixed = np.concatenate([late.ids, next(iter(make_loader(handler))).ids])
    with pytest.raises(ValueError, match="of one epoch"):
        handler.update(torch.tensor(1.0), ids=mixed)
    assert_scores(handler, expected)


def test_indices_of_ids_and_of_indices_are_the_same(make_handler):
    handler, _ = pruned_handler(make_handler)
    batch = next(iter(make_loader(handler)))
    for ids in (batch.ids, torch.from_numpy(batch.ids), batch.indices, batch.indices.tolist()):
        assert tamis.indices_of(ids).tolist() == batch[0].tolist()
        assert handler.keeps(ids).all()


@pytest.mark.parametrize("stop", [5, 6, 7, 12, 13, 14, 17])
@pytest.mark.parametrize("is_rebuilt", [False, True])
def test_a_state_saved_in_a_window_stands_after_the_last_batch_trained_on(
    make_handler, is_rebuilt, stop
):
    def trained(handler, until):
        loader = make_loader(handler)
        seen = []
        while handler.next_epoch < 3:
            source = rebuild(loader) if is_rebuilt else loader
            for batch in support.windows(source):
                handler.update(support.batch_loss(batch[0]), batch)
                seen.append(batch[0].tolist())
                if len(seen) == until:
                    return seen
        return seen

    whole = trained(make_handler(epochs=3), None)
    first = make_handler(epochs=3)
    seen = trained(first, stop)
    second = make_handler(epochs=3)
    second.load_state_dict(first.state_dict())
    assert seen + trained(second, None) == whole


# The weight alone.


def test_factor_observes_and_returns_the_weight_alone(make_handler):
    handler, expected = pruned_handler(make_handler)
    for batch in make_loader(handler):
        mean = support.batch_loss(batch[0])
        weight = handler.factor(mean.item(), batch)
        assert type(weight) is float
        assert weight == pytest.approx(handler.weights[batch.indices].mean())
        expected.observe(batch[0], mean)
    assert_scores(handler, expected)


def test_factor_of_losses_is_one_weight_per_sample():
    handler = tamis.InfoBatch(support.IndexDataset(64), epochs=4)
    for _ in range(2):
        for batch in handler.loader(8):
            weights = handler.factor(batch[1], batch)
            assert weights.dtype == batch[1].dtype
            np.testing.assert_array_equal(weights.numpy(), handler.weights[batch.indices])


# Models that take a whole dict.


class Strict(torch.nn.Module):
    def forward(self, index, text=None):
        return index.float().mean()


def test_strip_ids_lets_a_model_take_the_whole_dict(make_handler):
    handler, model = make_handler(), Strict()

    def collate(samples):
        return {"index": torch.tensor([s[0] for s in samples])}

    batches = iter(handler.loader(8, collate_fn=collate))
    batch = next(batches)
    with pytest.raises(TypeError, match="tamis_ids"):
        model(**batch)
    handle = handler.strip_ids(model)
    handler.update(model(**batch), batch)
    assert "tamis_ids" in batch
    handle.remove()
    with pytest.raises(TypeError, match="tamis_ids"):
        model(**next(batches))


def test_strip_ids_also_takes_it_out_of_a_dict_given_by_position():
    class Whole(torch.nn.Module):
        def forward(self, batch):
            return sorted(batch)

    model = Whole()
    tamis.Handler.strip_ids(model)
    batch = {"x": 1, "tamis_ids": 2}
    assert model(batch) == ["x"]
    assert sorted(batch) == ["tamis_ids", "x"]


# On the labels.


class Labelled(support.IndexDataset):
    """A number and a class for each sample."""

    def __getitem__(self, index):
        return torch.tensor([float(index % 7), 1.0]), index % 3


def loop_with_labels(handler, loader, wrap, expected, weight):
    for numbers, labels in wrap(loader):
        indices = tamis.indices_of(labels.ids)
        assert (labels == torch.as_tensor(indices % 3)).all()
        logits = torch.stack([numbers[:, 0] * weight, numbers[:, 1], numbers[:, 1] * 2], dim=1)
        loss = cross_entropy(logits, labels.to("cpu", non_blocking=True))
        result = handler.update(loss)
        assert type(result) is torch.Tensor
        result.backward()
        expected.observe(indices, loss.item())


@pytest.mark.parametrize("wrapper", support.WRAPPERS)
@pytest.mark.parametrize("options", ["0 workers", "2 workers"])
def test_labels_carry_the_ids_to_the_loss(make_handler, options, wrapper):
    handler = make_handler(dataset=Labelled(103), epochs=3)
    loader = make_loader(handler, carry="labels", **LOADERS[options])
    expected = ExpectedScores(103)
    weight = torch.ones((), requires_grad=True)
    for _ in range(3):
        loop_with_labels(handler, loader, support.WRAPPERS[wrapper], expected, weight)
    assert_scores(handler, expected)
    assert handler.num_missed_updates == 0
    assert type(weight.grad) is torch.Tensor


def test_labels_carry_the_ids_through_a_rebuilt_loader_and_spawned_workers(make_handler):
    handler = make_handler(dataset=Labelled(103), epochs=3)
    loader = make_loader(handler, carry="labels")
    expected = ExpectedScores(103)
    weight = torch.ones((), requires_grad=True)
    rebuilt = rebuild(loader, num_workers=1, multiprocessing_context="spawn")
    loop_with_labels(handler, rebuilt, support.bare, expected, weight)
    assert_scores(handler, expected)


def test_dict_labels_carry_the_ids(make_handler):
    handler = make_handler()

    def collate(samples):
        return {"labels": torch.tensor([s[1] for s in samples]), "x": len(samples)}

    for batch in handler.loader(8, collate_fn=collate, carry="labels"):
        assert "tamis_ids" not in batch
        handler.update(batch["labels"].mean())
    assert handler.num_observations == 13


def test_mixup_and_smoothing_keep_the_ids(make_handler):
    handler = make_handler(dataset=Labelled(64))
    expected = ExpectedScores(64)
    for numbers, labels in handler.loader(8, carry="labels"):
        logits = torch.cat([numbers, numbers[:, :1]], dim=1)
        order = torch.randperm(len(labels))
        loss = 0.3 * cross_entropy(logits, labels) + 0.7 * cross_entropy(
            logits, labels[order], label_smoothing=0.1
        )
        handler.update(loss)
        expected.observe(tamis.indices_of(labels.ids), loss.item())
    assert_scores(handler, expected)


def test_a_loss_that_carries_no_ids_is_refused_with_the_cure(make_handler):
    handler = make_handler(dataset=Labelled(64))
    losses = []
    for numbers, labels in handler.loader(8, carry="labels"):
        for lost in (numbers.mean(), torch.tensor(labels.float().mean().item())):
            with pytest.raises(RuntimeError, match=r"carries none.*update\(loss, batch\)"):
                handler.update(lost)
        losses.append(labels.float().mean())
    with pytest.raises(RuntimeError, match="several batches"):
        handler.update(losses[0] + losses[1])
    assert handler.num_observations == 0
    handler.update(losses[0])
    assert handler.num_observations == 1


def test_labels_are_untouched_by_what_is_counted_with_them(make_handler):
    handler = make_handler(dataset=Labelled(64))
    correct = torch.zeros((), dtype=torch.long)
    for _, labels in handler.loader(8, carry="labels"):
        correct += (labels == 1).sum()
        assert type(correct) is torch.Tensor
        buffer = io.BytesIO()
        torch.save(labels.plain(), buffer)
        assert labels.numpy().dtype == np.int64
        handler.update(labels.float().mean())
    assert int(correct) == sum(1 for i in range(64) if i % 3 == 1)


def test_batches_without_labels_cannot_carry(make_handler):
    handler = tamis.prune(range(20), "bls-infobatch", epochs=2)
    with pytest.raises(TypeError, match=r'carry="labels" needs labels.*update\(loss, batch\)'):
        next(iter(handler.loader(8, carry="labels")))
    with pytest.raises(ValueError, match="carry must be 'batch' or 'labels', got 'x'"):
        handler.loader(8, carry="x")
