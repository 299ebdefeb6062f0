"""Known faults of the scripts that the authors of InfoBatch, SeTa and BLS published.

Each test is one that such a script fails and that this package passes:

| fault                                                           | test                         |
|-----------------------------------------------------------------|------------------------------|
| weights of the last pruned epoch stay if delta * E is not whole | weights_are_1_in_annealing   |
| indices travel as floats: wrong from 2^24 (fp32), 256 (bf16)    | indices_are_exact            |
| a loader that fetches ahead shifts every score by one batch     | lookahead                    |
| one NaN loss switches pruning off for good                      | a_bad_batch                  |
| the in-place product breaks sqrt, exp and logsumexp in backward | backward_works               |
| the in-place product changes the loss that the user logs        | what_the_user_logs           |
| pickle and deepcopy recurse without end                         | copies                       |
| numpy is seeded with the epoch: user seeds are overwritten      | global_random_state          |
| a rounded mean marks equal scores as easy and doubles epoch 0   | constant_scores              |
| samples never seen look like the easiest of all                 | unscored_samples             |
| every iter() is a new epoch                                     | iterating_again              |
| k-means fails or makes empty groups with few distinct scores    | fewer_distinct_scores        |
| the data set returns (index, sample): a collate function breaks | a_custom_collate_function    |
| importing it overwrites DataLoader's __next__ for everybody     | other_loaders                |
| a run cannot be resumed                                         | test_state.py, test_training |
"""

import copy
import pickle
import random

import numpy as np
import pytest
import support
import tamis
import torch
from support import ExpectedScores, IndexDataset, assert_scores, make_loader, train_epoch
from torch.utils.data import DataLoader


@pytest.mark.parametrize("epochs", [1, 2, 3, 7, 16, 100, 200, 300])
def test_weights_are_1_in_annealing_for_any_number_of_epochs(epochs):
    pruner = tamis.Pruner(64, epochs, policy="infobatch", score="last-batch-loss")
    for epoch in range(epochs):
        pruner.start_epoch(epoch)
        is_pruned = epoch + 1 <= 0.875 * epochs
        assert pruner.plan.pruning == is_pruned
        if epoch > 0:
            assert (pruner.plan.weights.max() == 2.0) == is_pruned
            assert (len(pruner.plan) == 64) == (not is_pruned)
        for begin in range(0, len(pruner.plan), 8):
            count = min(8, len(pruner.plan) - begin)
            pruner.observe(begin, count, float(np.mean(pruner.plan.samples(begin, count))))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_indices_are_exact_beyond_2_to_the_24_and_for_half_precision_losses(dtype):
    size = 2**24 + 8
    handler = tamis.prune(range(size), "bls-infobatch", epochs=1)
    chosen = [2**24 + 1, 257, 2**24 + 3]
    handler.update(torch.tensor(1.5, dtype=dtype), ids=torch.tensor(chosen))
    assert np.flatnonzero(~np.isnan(handler.scores)).tolist() == sorted(chosen)


@pytest.mark.parametrize("wrap", [support.one_ahead, support.one_ahead_released])
def test_a_lookahead_loader_does_not_shift_the_scores(make_handler, wrap):
    handler = make_handler()
    expected = ExpectedScores(len(handler))
    for _ in range(4):
        train_epoch(handler, wrap(make_loader(handler, num_workers=2)), expected, by_ids=True)
    assert_scores(handler, expected)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_bad_batch_does_not_switch_pruning_off(make_handler, bad):
    handler = make_handler()
    loader = make_loader(handler)
    for step, (indices, _) in enumerate(loader):
        handler.update(torch.tensor(bad) if step == 3 else support.batch_loss(indices))
    assert handler.num_skipped_observations == 1
    assert len(loader) < 13  # pruned
    assert np.isfinite(handler.scores).sum() == 103 - 8


def rmse(x):
    return x.square().mean().sqrt()


def exponential(x):
    return x.mean().exp()


def info_nce(x):
    logits = x.unsqueeze(1) * x.unsqueeze(0)
    return torch.logsumexp(logits, dim=1).mean() - logits.diagonal().mean()


@pytest.mark.parametrize("loss_function", [rmse, exponential, info_nce])
def test_backward_works_for_losses_whose_last_operation_keeps_its_result(
    make_handler, loss_function
):
    handler = make_handler()
    weights = []
    for _ in range(2):
        for indices, values in make_loader(handler):
            x = values.float().requires_grad_()
            plain = torch.autograd.grad(loss_function(x), x)[0]
            weights.append(float(handler.weights[indices].mean()))
            handler.update(loss_function(x)).backward()
            torch.testing.assert_close(x.grad, plain * weights[-1])
    assert max(weights) > 1


def test_what_the_user_logs_is_not_altered(make_handler):
    handler = make_handler()
    for _ in range(2):
        for indices, _ in make_loader(handler):
            loss = support.batch_loss(indices)
            before = loss.item()
            handler.update(loss)
            assert loss.item() == before


def test_copies_by_pickle_and_deepcopy_work(make_handler):
    handler = make_handler()
    train_epoch(handler, make_loader(handler), ExpectedScores(len(handler)))
    for copied in (copy.deepcopy(handler), pickle.loads(pickle.dumps(handler))):
        np.testing.assert_array_equal(copied.scores, handler.scores)
        assert list(copied.sampler) == list(copy.deepcopy(handler).sampler)


def test_the_global_random_state_is_neither_read_nor_written(make_handler):
    def states():
        return (
            random.getstate(),
            np.random.get_state()[1].tolist(),
            torch.get_rng_state().tolist(),
        )

    before = states()
    orders = []
    for seed in (0, 1):
        handler = make_handler(seed=seed)
        expected = ExpectedScores(len(handler))
        orders.append([])
        for _ in range(3):
            batches = [[batch] for batch in handler.batch_sampler(8)]
            orders[-1] += batches
            train_epoch(handler, ([batch] for batch in handler.batch_sampler(8)), expected)
    assert states() == before
    assert orders[0] != orders[1]
    random.seed(7)
    np.random.seed(7)
    torch.manual_seed(7)
    assert [[b] for b in make_handler(seed=0).batch_sampler(8)] == orders[0][:13]


@pytest.mark.parametrize("value", [0.1, 1.0, 0.7, 1e-3, 3.3])
def test_constant_scores_prune_nothing(value):
    handler = tamis.prune(IndexDataset(1003), "bls-infobatch", epochs=8)
    for _ in range(3):
        seen = 0
        for indices, _ in make_loader(handler, batch_size=100):
            loss = torch.tensor(value)
            assert handler.update(loss) is loss
            seen += len(indices)
        assert seen == 1003


def test_unscored_samples_are_kept_and_do_not_count_in_the_mean():
    handler = tamis.prune(IndexDataset(100), "infobatch", score="last-batch-loss", epochs=8)
    for i in range(50):
        handler.update(torch.tensor(10.0 + i), ids=[i])
    handler.set_epoch(1)
    kept = set(handler.sampler)
    assert set(range(50, 100)) <= kept  # never seen
    assert set(range(25, 50)) <= kept  # not below 34.5, the mean of the scored
    assert len(kept) == 50 + 25 + 12
    assert handler.plan.report["threshold"] == pytest.approx(34.5)


def test_iterating_again_does_not_advance_the_epoch(make_handler):
    handler = make_handler()
    loader = make_loader(handler, num_workers=2)
    first = [batch[0].tolist() for batch in loader]
    next(iter(loader))
    assert [batch[0].tolist() for batch in loader] == first
    assert handler.epoch == 0


@pytest.mark.parametrize("distinct", [1, 2, 4])
def test_fewer_distinct_scores_than_groups_make_fewer_groups(distinct):
    handler = tamis.prune(IndexDataset(100), "seta", score="last-batch-loss", epochs=8, groups=5)
    for i in range(100):
        handler.update(torch.tensor(float(i % distinct)), ids=[i])
    for epoch in range(1, 6):
        handler.set_epoch(epoch)
        assert len(list(handler.sampler)) > 0
        groups = handler.plan.report["groups"]
        assert len(groups) == distinct
        assert all(group["size"] > 0 for group in groups)


def collate_pairs(samples):
    index, value = zip(*samples, strict=True)
    return {"index": torch.tensor(index), "pair": list(zip(index, value, strict=True))}


def test_a_custom_collate_function_gets_the_users_own_samples(make_handler):
    handler = make_handler(epochs=2)
    expected = ExpectedScores(len(handler))
    for _ in range(2):
        train_epoch(handler, make_loader(handler, collate_fn=collate_pairs), expected)
    assert_scores(handler, expected)


def test_other_loaders_in_the_process_are_not_touched(make_handler):
    make_handler()
    assert DataLoader.__module__ == "torch.utils.data.dataloader"
    iterator = type(iter(DataLoader(range(4))))
    for owner in iterator.__mro__[:-1]:
        assert owner.__next__.__module__.startswith("torch.utils.data")
    assert [batch.tolist() for batch in DataLoader(range(4), batch_size=2)] == [[0, 1], [2, 3]]
