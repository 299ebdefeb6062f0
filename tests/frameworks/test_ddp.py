"""Plain PyTorch: a loop over our loader, alone and under torchrun with DistributedDataParallel."""

import contextlib

import pytest
import torch
import torch.distributed as dist
from loops import SITUATIONS, Loop, Situation, check_labels, cross_entropy, expectations, parts, validate
from matrix import cell
from ranks import in_turn, run_ranks
from torch.nn.parallel import DistributedDataParallel
from truth import BATCH, EPOCHS, Log, indices_in, judge, make_classifier, make_handler

NAME = "torchrun DDP"


class Run(Loop):
    def __init__(self, situation, num_workers=0, as_dict=False):
        self.situation = situation
        self.handler = make_handler(as_dict)
        self.loader = self.handler.loader(BATCH, num_workers=num_workers)
        self.model = DistributedDataParallel(make_classifier())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.log = Log()

    def state_dict(self):
        return {
            "model": {k: v.clone() for k, v in self.model.state_dict().items()},
            "handler": self.handler.state_dict(),
        }

    def load_state_dict(self, state):
        self.model.load_state_dict(state["model"])
        self.handler.load_state_dict(state["handler"])

    def step(self, epoch, batch, number, steps):
        x, labels = parts(batch)
        check_labels(x, labels)
        is_step = number % self.situation.accumulation == 0 or number == steps
        with contextlib.nullcontext() if is_step else self.model.no_sync():
            loss = cross_entropy(self.model(x), labels)
            self.log.see(epoch, indices_in(x), loss)
            (self.handler.update(loss, batch) / self.situation.accumulation).backward()
        if is_step:
            self.optimizer.step()
            self.optimizer.zero_grad()
        if self.situation.validate:
            validate(self.model.module)


def be_rank(rank):
    dist.init_process_group("gloo")
    return every_situation()


def every_situation():
    """All of them in one process group: starting processes takes longest."""
    torch.set_num_threads(1)
    results = {}
    for name, situation in SITUATIONS.items():
        results[name] = finished(Run(situation).train())
    results["workers"] = finished(Run(SITUATIONS["plain"], num_workers=2).train())
    results["resume"] = resumed()
    return results


def finished(run):
    run.handler.state_dict()  # ranks exchange their scores
    return run.log, run.handler.scores, run.handler.num_missed_updates


def resumed():
    """A run that saves after every batch, and after which batches a resumed one differs from it."""
    states, differing = [], []
    whole = Run(Situation(save=lambda run: states.append(run.state_dict()))).train()
    for number, state in enumerate(states, 1):
        run = Run(Situation())
        run.load_state_dict(state)
        run.train()
        same = torch.equal(run.model.module.layer.weight, whole.model.module.layer.weight)
        if run.log.batches != whole.log.batches[number:] or not same:
            differing.append(number)
    return *finished(whole), differing, len(states)


@pytest.fixture(scope="module")
def results():
    """Of both ranks."""
    return run_ranks(be_rank)


@pytest.mark.parametrize(
    ("name", "kind"),
    [pytest.param(n, n, marks=cell(NAME, n, "two processes")) for n in SITUATIONS]
    + [pytest.param("workers", "plain", marks=cell(NAME, "workers", "two processes"))],
)
def test_two_processes_share_every_epoch(results, name, kind):
    check_situation(results, name, kind)


def check_situation(results, name, kind):
    ranks = [result[name] for result in results]
    steps = in_turn([log.steps for log, _, _ in ranks])
    expected = expectations(kind, ranks[0][0])
    if "cut" in expected:
        expected = {"cut": {epoch: 2 * count for epoch, count in expected["cut"].items()}}
    scales = [1 / SITUATIONS[kind].accumulation] * len(steps)
    for _, scores, num_missed in ranks:
        judge(steps, scores, scales=scales, ordered=False, num_ranks=2, **expected)
        assert num_missed == (EPOCHS if kind == "last skipped" else 0)


@cell(NAME, "resume")
def test_a_run_resumed_after_any_batch_is_the_run_that_was_not_interrupted(results):
    check_resumed(results)


def check_resumed(results):
    ranks = [result["resume"] for result in results]
    judge(in_turn([rank[0].steps for rank in ranks]), ranks[0][1], ordered=False, num_ranks=2)
    for *_, differing, count in ranks:
        assert differing == []
        assert count > 10
