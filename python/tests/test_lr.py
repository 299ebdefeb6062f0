"""lr_by_progress: a torch LR scheduler that ends when the run ends, however short it became."""

import copy
import math

import pytest
import support
import tamis
import torch
from support import make_loader
from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    LRScheduler,
    OneCycleLR,
    ReduceLROnPlateau,
    StepLR,
)


def make_optimizer(rate=1.0):
    groups = [{"params": [torch.nn.Parameter(torch.ones(()))], "lr": lr} for lr in (rate, rate / 2)]
    return torch.optim.SGD(groups, lr=rate)


def run(handler, optimizer, scheduler, epochs, stop=None):
    """The learning rates after every step."""
    rates = []
    for _ in range(epochs):
        for indices, _ in make_loader(handler):
            handler.update(support.batch_loss(indices))
            optimizer.step()
            scheduler.step()
            rates.append([group["lr"] for group in optimizer.param_groups])
            assert rates[-1] == scheduler.get_last_lr()
            if len(rates) == stop:
                return rates
    return rates


def test_it_is_an_lr_scheduler(make_handler):
    optimizer = make_optimizer()
    cosine = CosineAnnealingLR(optimizer, T_max=100)
    for schedule in (
        tamis.lr_by_progress(cosine, make_handler()),
        tamis.lr_by_progress(lambda p: 1 - p, make_handler(), optimizer=optimizer),
    ):
        assert isinstance(schedule, LRScheduler)
        assert schedule.optimizer is optimizer
        assert schedule.base_lrs == [1.0, 0.5]
        assert schedule.get_last_lr() == [1.0, 0.5]
        assert isinstance(schedule.last_epoch, int)


def test_one_cycle_reaches_its_end_exactly(make_handler):
    handler, optimizer = make_handler(epochs=4), make_optimizer()
    unpruned = 4 * math.ceil(103 / 8)
    one_cycle = OneCycleLR(optimizer, max_lr=1.0, total_steps=unpruned)
    rates = run(handler, optimizer, tamis.lr_by_progress(one_cycle, handler), 4)
    assert len(rates) < unpruned
    assert one_cycle.last_epoch == unpruned - 1
    assert rates[-1][0] == pytest.approx(1.0 / 25 / 1e4)


def test_a_function_of_the_progress_is_followed_exactly(make_handler):
    handler, optimizer = make_handler(epochs=3), make_optimizer()
    scheduler = tamis.lr_by_progress(lambda p: 1 - p, handler, optimizer=optimizer)
    rates = run(handler, optimizer, scheduler, 3)
    assert rates[-1] == [0.0, 0.0]
    assert rates == sorted(rates, reverse=True)
    assert all(low == high / 2 for high, low in rates)


def test_extra_steps_of_a_framework_change_nothing(make_handler):
    def rates(repeats):
        handler, optimizer = make_handler(epochs=2), make_optimizer()
        scheduler = tamis.lr_by_progress(CosineAnnealingLR(optimizer, T_max=26), handler)
        step = scheduler.step
        scheduler.step = lambda: [step() for _ in range(repeats)]
        return run(handler, optimizer, scheduler, 2)

    assert rates(1) == rates(3)


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
@pytest.mark.parametrize("kind", ["scheduler", "function"])
def test_a_resumed_schedule_goes_on(make_handler, kind):
    def make(handler):
        optimizer = make_optimizer()
        if kind == "function":
            return optimizer, tamis.lr_by_progress(math.cos, handler, optimizer=optimizer)
        one_cycle = OneCycleLR(optimizer, max_lr=1.0, total_steps=50)
        return optimizer, tamis.lr_by_progress(one_cycle, handler)

    whole = make_handler(epochs=3)
    expected = run(whole, *make(whole), 3)
    first = make_handler(epochs=3)
    optimizer, scheduler = make(first)
    rates = run(first, optimizer, scheduler, 3, stop=17)
    state = copy.deepcopy(
        [first.state_dict(), optimizer.state_dict(), scheduler.state_dict()]
    )
    second = make_handler(epochs=3)
    optimizer, scheduler = make(second)
    second.load_state_dict(state[0])
    optimizer.load_state_dict(state[1])
    scheduler.load_state_dict(state[2])
    assert scheduler.get_last_lr() == rates[-1]
    rates += run(second, optimizer, scheduler, 2)
    assert rates == expected


def test_the_schedule_of_an_unpruned_run_is_the_usual_one():
    def rates(by_progress):
        handler = tamis.prune(support.IndexDataset(104), "full", epochs=3, score="batch-loss")
        optimizer = make_optimizer()
        cosine = CosineAnnealingLR(optimizer, T_max=3 * 13)
        scheduler = tamis.lr_by_progress(cosine, handler) if by_progress else cosine
        return run(handler, optimizer, scheduler, 3)

    assert rates(True) == rates(False)
    assert rates(True)[-1][0] == pytest.approx(0.0, abs=1e-12)


def test_what_cannot_be_driven_is_refused(make_handler):
    optimizer, handler = make_optimizer(), make_handler()
    with pytest.raises(TypeError, match="count steps"):
        tamis.lr_by_progress(ReduceLROnPlateau(optimizer), handler)
    with pytest.raises(ValueError, match="total_steps"):
        tamis.lr_by_progress(StepLR(optimizer, step_size=10), handler)
    cycle = OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
    with pytest.raises(ValueError, match=r"own \(10\)"):
        tamis.lr_by_progress(cycle, handler, total_steps=11)
    with pytest.raises(ValueError, match="leave it out"):
        tamis.lr_by_progress(cycle, handler, optimizer=make_optimizer())
    with pytest.raises(TypeError, match="optimizer=optimizer"):
        tamis.lr_by_progress(math.cos, handler)
    with pytest.raises(TypeError, match="scheduler or a function"):
        tamis.lr_by_progress(0.1, handler, optimizer=optimizer)
    with pytest.raises(ValueError, match="left out with a function, got 5"):
        tamis.lr_by_progress(math.cos, handler, 5, optimizer=optimizer)
    by_function = tamis.lr_by_progress(math.cos, handler, optimizer=optimizer)
    with pytest.raises(RuntimeError, match="another kind"):
        tamis.lr_by_progress(cycle, handler).load_state_dict(by_function.state_dict())
