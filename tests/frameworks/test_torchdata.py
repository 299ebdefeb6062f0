"""torchdata's StatefulDataLoader, which takes its own state, and that of what it is given, often."""

import pytest
import torch
import torch.distributed as dist
from loops import SITUATIONS, Loop, Situation, check_labels, cross_entropy, expectations, parts, reported, validate
from matrix import cell
from ranks import in_turn, run_ranks
from truth import BATCH, Log, indices_in, judge, make_classifier, make_handler

from tamis.integrations.torchdata import stateful_loader

NAME = "StatefulDataLoader"


class Run(Loop):
    def __init__(self, situation, as_dict=False, **options):
        self.situation = situation
        self.handler = make_handler(as_dict)
        self.loader = stateful_loader(self.handler, BATCH, **options)
        self.model = make_classifier()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.log = Log()

    def step(self, epoch, batch, number, steps):
        x, labels = parts(batch)
        check_labels(x, labels)
        loss = cross_entropy(self.model(x), labels)
        self.log.see(epoch, indices_in(x), loss)
        (self.handler.update(loss, batch) / self.situation.accumulation).backward()
        if number % self.situation.accumulation == 0 or number == steps:
            self.optimizer.step()
            self.optimizer.zero_grad()
        if self.situation.validate:
            validate(self.model)

    def judge(self, **expected):
        scales = [1 / self.situation.accumulation] * len(self.log.steps)
        judge(self.log.steps, self.handler.scores, scales=scales, **expected)


@pytest.mark.parametrize("name", [pytest.param(n, marks=cell(NAME, n)) for n in SITUATIONS])
def test_one_process(name):
    with reported(name):
        run = Run(SITUATIONS[name], as_dict=name == "accumulation").train()
    run.judge(**expectations(name, run.log))


@cell(NAME, "workers")
def test_workers_fetch_ahead():
    Run(Situation(), num_workers=2).train().judge()


@cell(NAME, "resume")
@pytest.mark.parametrize("num_workers", [0, 2])
def test_the_state_of_the_loader_is_all_that_is_needed(num_workers):
    states = []

    def save(run):
        states.append(
            (run.loader.state_dict(), {k: v.clone() for k, v in run.model.state_dict().items()})
        )

    whole = Run(Situation(save=save), num_workers=num_workers).train()
    for number, (state, weights) in enumerate(states, 1):
        if num_workers > 0 and number % 6 != 0:
            continue
        run = Run(Situation(), num_workers=num_workers)
        run.loader.load_state_dict(state)
        run.model.load_state_dict(weights)
        run.train()
        assert run.log.batches == whole.log.batches[number:], f"resumed after batch {number}"
        judge(whole.log.steps[:number] + run.log.steps, run.handler.scores)


def be_rank(rank):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    run = Run(Situation()).train()
    run.handler.state_dict()  # ranks exchange their scores
    return run.log.steps, run.handler.scores


@cell(NAME, "two processes")
def test_two_processes_share_every_epoch():
    results = run_ranks(be_rank)
    steps = in_turn([steps for steps, _ in results])
    judge(steps, results[0][1], ordered=False, num_ranks=2)
