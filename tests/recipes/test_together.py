"""Two handlers in one loop: each loss is booked on its own handler, both runs end together, and both are in the checkpoint."""

import numpy as np
import pytest
import tamis
import torch
from conftest import Interrupted, lines, without_times
from truth import Log, judge

from recipes.kit import run
from recipes.kit.together import together

PASSES, EPOCHS = 3, 4
SIZES = {"leader": 90, "other": 29}
METRICS = [{"name": "error", "direction": "lower", "headline": True}]


class Numbered(torch.utils.data.Dataset):
    """Sample i is (i, a loss that it always has)."""

    def __init__(self, size):
        self.losses = 1 + np.random.default_rng(size).random(size).astype(np.float32)

    def __len__(self):
        return len(self.losses)

    def __getitem__(self, index):
        return index, self.losses[index]


def make(method="bls-infobatch"):
    leader = tamis.prune(Numbered(SIZES["leader"]), method, epochs=EPOCHS)
    other = tamis.prune(Numbered(SIZES["other"]), method, epochs=PASSES * EPOCHS)
    return leader, other


def test_each_loss_is_booked_on_its_own_handler():
    """Order, weights and scores of both are those of a core Pruner that sees the batches and losses of one set alone."""
    leader, other = make()
    scale = torch.nn.Parameter(torch.ones(()))
    logs, loaders = (Log(), Log()), (leader.loader(8), other.loader(8))
    for _ in range(EPOCHS):
        for (ids, losses), due in together(*loaders, PASSES):
            mean = (scale * losses).mean()
            logs[0].see(leader.epoch, ids, mean)
            total = leader.update(mean)
            for other_ids, other_losses in due:
                mean = (scale * other_losses).mean()
                logs[1].see(other.epoch, other_ids, mean)
                total = total + other.update(mean)
            total.backward()
    judge(logs[0].steps, leader.scores, size=SIZES["leader"], length=EPOCHS)
    judge(logs[1].steps, other.scores, size=SIZES["other"], length=PASSES * EPOCHS)
    assert leader.progress == other.progress == 1 and leader.num_missed_updates == other.num_missed_updates == 0


def scores_of(model, inputs, method, is_joint):
    """Of both handlers after a run that does not change the model."""
    handlers = [
        tamis.prune(torch.utils.data.TensorDataset(x), method, epochs=length)
        for x, length in zip(inputs, (EPOCHS, PASSES * EPOCHS))
    ]

    def loss_of(handler, x):
        return handler.update(handler.watch(model(x)).square().sum(1).mean())

    loaders = [handler.loader(8) for handler in handlers]
    for _ in range(EPOCHS):
        if is_joint:
            for (x,), due in together(*loaders, PASSES):
                loss = loss_of(handlers[0], x)
                for (y,) in due:
                    loss = loss + loss_of(handlers[1], y)
                loss.backward()
        else:
            for handler, loader, passes in zip(handlers, loaders, (1, PASSES)):
                for _ in range(passes):
                    for (x,) in loader:
                        loss_of(handler, x).backward()
    assert all(handler.num_missed_updates == 0 for handler in handlers)
    return [(handler.scores, handler.plan.order) for handler in handlers]


@pytest.mark.parametrize("method", ["bls-infobatch", "ogs-infobatch", "ogs-seta"])
def test_scores_in_one_loop_are_those_of_two_loops(method):
    """With a model that does not learn the two sets know nothing of each other; also when outputs are watched."""
    torch.manual_seed(0)
    model, inputs = torch.nn.Linear(3, 2), [torch.randn(size, 3) for size in SIZES.values()]
    for joint, apart in zip(scores_of(model, inputs, method, True), scores_of(model, inputs, method, False)):
        np.testing.assert_allclose(joint[0], apart[0], rtol=1e-5)
        np.testing.assert_array_equal(joint[1], apart[1])


def test_both_end_in_the_same_step_whatever_is_pruned():
    """A pruned leader, a full companion: more batches are due in a step, but never of two passes, and none is left over."""
    leader = tamis.prune(Numbered(90), "random-dynamic", epochs=EPOCHS, prune_ratio=0.5)
    other = tamis.prune(Numbered(37), "full", epochs=PASSES * EPOCHS)
    loaders, shares = (leader.loader(8), other.loader(8)), []
    for epoch in range(EPOCHS):
        for (_, losses), due in together(*loaders, PASSES):
            leader.update(losses.mean())
            passes = set()
            for _, other_losses in due:
                other.update(other_losses.mean())
                passes.add(other.epoch)
            assert len(passes) <= 1
            shares.append(abs(leader.progress - other.progress))
        assert leader.progress == other.progress == (epoch + 1) / EPOCHS
    assert max(shares) < 0.5 / EPOCHS


def test_more_passes_than_batches_are_refused_with_the_cure():
    leader, other = make()
    with pytest.raises(ValueError, match="passes must be at most the leader's batches of an epoch, 2 now, got 3; make its batches"):
        next(together(leader.loader(50), other.loader(8), PASSES))


PRESETS = {"quick": {"epochs": EPOCHS, "prune": 0.3}}


def train(out, method="bls-infobatch"):
    args = run.arguments("doc", PRESETS, ["--out", str(out), "--method", method])
    torch.manual_seed(0)
    leader, other = (
        tamis.prune(Numbered(size), args.policy, epochs=length, options=args.options)
        for size, length in zip(SIZES.values(), (args.epochs, PASSES * args.epochs))
    )
    weight = torch.nn.Linear(1, 1)
    folder = run.Folder(args, leader, others={"other": other}, data="numbers", model="none", metrics=METRICS)
    for _ in folder.epochs(model=weight):
        for (_, losses), due in together(leader.loader(8), other.loader(8), PASSES):
            leader.update((losses * torch.rand(len(losses))).mean())
            for _, more in due:
                other.update((more * torch.rand(len(more))).mean())
        folder.end_epoch(lambda: {"error": 0.0})
    return leader, other


def test_a_line_counts_the_samples_of_all_passes(tmp_path):
    leader, other = train(tmp_path)
    found, whole = lines(tmp_path), SIZES["leader"] + PASSES * SIZES["other"]
    assert all(line["samples"] + line["pruned"] == whole for line in found)
    left_out = leader.pruned_share * EPOCHS * SIZES["leader"] + other.pruned_share * EPOCHS * PASSES * SIZES["other"]
    assert sum(line["pruned"] for line in found) == round(left_out) > 0.1 * EPOCHS * whole
    config = run.json.loads((tmp_path / "config.json").read_text())
    assert config["data"]["num_train"] == whole and config["epochs"] == EPOCHS


def test_a_resumed_run_has_both_handlers_where_they_were(tmp_path, interrupt):
    whole = train(tmp_path / "whole")
    restore = interrupt(2)
    with pytest.raises(Interrupted):
        train(tmp_path / "cut")
    restore()
    resumed = train(tmp_path / "cut")
    assert without_times(tmp_path / "cut") == without_times(tmp_path / "whole")
    for one, other in zip(resumed, whole):
        np.testing.assert_array_equal(one.scores, other.scores)


def test_another_number_of_epochs_must_be_a_multiple(tmp_path):
    args = run.arguments("doc", PRESETS, ["--out", str(tmp_path)])
    leader, other = tamis.prune(Numbered(9), "full", epochs=4), tamis.prune(Numbered(9), "full", epochs=6)
    with pytest.raises(ValueError, match="Folder: labels must have a multiple of the run's 4 epochs, got 6"):
        run.Folder(args, leader, others={"labels": other}, data="numbers", model="none", metrics=METRICS)
