"""Methods by name and by class, their options and what is refused."""

import copy
import inspect
import math

import numpy as np
import pytest
import support
import tamis
import torch
from support import IndexDataset, make_loader


def train_step(handler, values):
    if handler.needs == "output-gradients":
        outputs = handler.watch(values.clone().requires_grad_())
        handler.update(outputs.square().mean()).backward()
    else:
        handler.update(values if handler.needs == "sample-losses" else values.mean())


STATIC = [name for name, info in tamis.methods().items() if info["policy"] == "subset"]


@pytest.mark.parametrize("method", [name for name in tamis.methods() if name not in STATIC])
def test_every_method_trains(method):
    handler = tamis.prune(IndexDataset(64), method, epochs=3)
    for _ in range(3):
        for _, values in make_loader(handler):
            train_step(handler, values)
    assert not np.isnan(handler.scores).all()
    assert handler.num_missed_updates == 0
    assert handler.progress == 1.0


@pytest.mark.parametrize("method", STATIC)
def test_static_methods_are_refused_with_the_way_to_use_them(method):
    with pytest.raises(ValueError, match="tamis.scoring"):
        tamis.prune(IndexDataset(64), method, epochs=3)


@pytest.mark.parametrize("score", tamis.scores())
@pytest.mark.parametrize("policy", tamis.policies())
def test_every_score_goes_with_every_policy(score, policy):
    method = next(name for name, info in tamis.methods().items() if info["policy"] == policy)
    handler = tamis.prune(IndexDataset(64), method, score=score, epochs=2)
    assert handler.options["score"] == score
    assert handler.options["policy"] == policy
    for _, values in make_loader(handler):
        train_step(handler, values)
    assert 0 < len(handler.sampler) <= 64


def test_methods_say_what_they_are():
    methods = tamis.methods()
    assert methods["bls-infobatch"]["policy"] == "infobatch"
    assert methods["bls-infobatch"]["score"] == "batch-loss"
    assert methods["full"]["policy"] == "none"
    assert all(info["summary"] for info in methods.values())


def test_the_papers_lines_are_the_named_method():
    by_class = tamis.BLS(tamis.InfoBatch(IndexDataset(64), epochs=20), alpha=0.7).proxy()
    by_name = tamis.prune(IndexDataset(64), "bls-infobatch", epochs=20)
    assert str(by_class.options) == str(by_name.options)
    assert isinstance(by_class, tamis.InfoBatch)
    assert str(by_class.options) == str(copy.deepcopy(by_class).options)
    by_class = tamis.BLR(tamis.SeTa(IndexDataset(64), epochs=20)).proxy()
    by_name = tamis.prune(IndexDataset(64), "BLR_SeTa", epochs=20)
    assert by_class.options == by_name.options


def test_the_defaults_of_the_classes_are_those_of_the_registry():
    for make, policy in ((tamis.InfoBatch, "infobatch"), (tamis.SeTa, "seta")):
        parameters = inspect.signature(make).parameters
        for option in tamis.policies()[policy]["options"]:
            assert parameters[option["name"]].default == option["default"]
        named = tamis.prune(IndexDataset(64), policy, epochs=20)
        assert make(IndexDataset(64), epochs=20).options == named.options
    for make, score in ((tamis.BLS, "batch-loss"), (tamis.BLR, "reconstruction")):
        parameters = inspect.signature(make).parameters
        for option in tamis.scores()[score]["options"]:
            default = parameters[option["name"]].default
            assert default == option["default"] or default == "first-batch-loss"


def test_options_reach_the_score_and_the_policy():
    handler = tamis.prune(
        IndexDataset(64),
        "bls-seta",
        epochs=20,
        prune_ratio=0.2,
        groups=4,
        alpha=0.8,
        initial_score="zero",
        options=tamis.Options(delta=0.5, seed=7),
    )
    options = handler.options
    assert options["policy_options"] == {"prune_ratio": 0.2, "groups": 4, "window_scale": 0.9}
    assert options["score_options"] == {"alpha": 0.8, "initial_score": 0.0}
    assert options["delta"] == 0.5
    assert options["seed"] == 7


def test_prune_ratio_is_the_fraction_removed():
    for method, kept in (("random", 70), ("random-dynamic", 70), ("bls-seta", 70)):
        options = tamis.Options(delta=1.0)
        handler = tamis.prune(IndexDataset(100), method, epochs=2, prune_ratio=0.3, options=options)
        assert len(handler.sampler) == kept


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"method": "bls-inforbatch"}, ValueError, "method must be one of .*bls-infobatch"),
        ({"method": "infobatch", "score": "loss"}, ValueError, "score must be one of batch-loss,"),
        ({"method": "bls-seta", "prune_rate": 1}, TypeError, "unknown option prune_rate: seta has"),
        ({"method": "seta", "seed": 1}, TypeError, r"options=tamis.Options\(seed=...\)"),
        ({"method": "seta", "prune_ratio": None}, TypeError, "prune_ratio must be a number"),
        ({"method": "infobatch", "prune_ratio": 0.95}, ValueError, r"prune_ratio .*\[0, 0.9\]"),
        ({"method": "infobatch", "prune_ratio": "half"}, TypeError, "prune_ratio must be a number"),
        ({"method": "bls-infobatch", "alpha": 1.0}, ValueError, "freezes the scores"),
        ({"method": "bls-infobatch", "alpha": -0.1}, ValueError, r"alpha must be in \[0, 1\)"),
        ({"method": "bls-infobatch", "initial_score": "x"}, TypeError, "or 'first-batch-loss'"),
        ({"method": "seta", "groups": 1.5}, ValueError, "groups"),
    ],
)
def test_wrong_methods_and_options_are_refused_by_name(arguments, error, message):
    with pytest.raises(error, match=message):
        tamis.prune(IndexDataset(64), epochs=2, **arguments)


def test_a_proxy_takes_a_handler_that_has_not_started():
    with pytest.raises(TypeError, match="takes a handler"):
        tamis.BLS(IndexDataset(10))
    handler = tamis.InfoBatch(IndexDataset(10), epochs=2)
    with pytest.raises(ValueError, match="alpha must be in"):
        tamis.BLS(handler, alpha=2.0)
    next(iter(handler.sampler))
    with pytest.raises(ValueError, match="must not have started"):
        tamis.BLS(handler)


def test_bls_starts_from_the_score_that_it_is_told():
    for initial, first in (("first-batch-loss", 2.0), ("zero", 0.6), (1.0, 1.3)):
        handler = tamis.BLS(
            tamis.InfoBatch(IndexDataset(4), epochs=2), 0.7, initial_score=initial
        ).proxy()
        handler.update(torch.tensor(2.0), ids=[0])
        assert handler.scores[0] == pytest.approx(first)
    assert math.isnan(handler.scores[1])


def test_the_seed_decides_the_plans():
    def order(seed):
        handler = tamis.prune(IndexDataset(64), "full", epochs=2, options=tamis.Options(seed=seed))
        return list(handler.sampler)

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert sorted(order(1)) == list(range(64))


def test_losses_that_can_be_negative_are_skipped_by_blr():
    handler = tamis.BLR(tamis.InfoBatch(IndexDataset(16), epochs=2)).proxy()
    for step, (indices, _) in enumerate(make_loader(handler)):
        handler.update(support.batch_loss(indices) * (1 if step == 0 else -1))
    assert handler.num_observations == 1
    assert handler.num_skipped_observations == 1
