"""Accelerate: our loader beside a prepared model, and our loader behind accelerator.prepare()."""

import warnings

import pytest
import tamis
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState
from loops import SITUATIONS, Situation, check_labels, cross_entropy, expectations, parts, reported, validate
from matrix import cell
from ranks import in_turn, run_ranks
from truth import BATCH, EPOCHS, Log, indices_in, judge, make_classifier, make_handler

from tamis.integrations.accelerate import prepare_loader

NAME = "Accelerate"
PREPARED = "Accelerate, prepared"


@pytest.fixture(autouse=True)
def reset_before_each_test():
    reset()


def reset():
    """Accelerate keeps its state in the process."""
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()


class Run:
    """A script as Accelerate's documentation has it."""

    def __init__(
        self, situation, prepared=False, as_dict=True, num_workers=0, says_epoch=True, **options
    ):
        self.situation, self.says_epoch = situation, says_epoch
        self.accelerator = Accelerator(cpu=True, gradient_accumulation_steps=situation.accumulation)
        self.handler = make_handler(as_dict, **options)
        if prepared:
            self.loader = self.accelerator.prepare(self.handler.loader(BATCH, num_workers=num_workers))
            self.accelerator.register_for_checkpointing(self.handler)
        else:
            self.loader = prepare_loader(self.accelerator, self.handler, BATCH, num_workers=num_workers)
        model = make_classifier()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)
        self.log, self.num_steps = Log(), 0

    def train(self):
        for epoch in range(self.handler.next_epoch, EPOCHS):
            self.train_epoch(epoch)
        return self

    def train_epoch(self, epoch):
        if self.says_epoch:
            self.loader.set_epoch(epoch)
        steps = self.handler.steps_left
        for number, batch in enumerate(self.loader, 1):
            if not (self.situation.skip_last and number == steps):
                self.step(epoch, batch)
            if self.situation.save:
                self.situation.save(self)
            if number == self.situation.stop.get(epoch):
                break

    def step(self, epoch, batch):
        x, labels = parts(batch)
        check_labels(x, labels)
        with self.accelerator.accumulate(self.model):
            loss = cross_entropy(self.model(x), labels)
            self.log.see(epoch, indices_in(x), loss)
            self.accelerator.backward(self.handler.update(loss, batch))
            self.optimizer.step()
            self.num_steps += self.accelerator.sync_gradients
            self.optimizer.zero_grad()
        if self.situation.validate:
            validate(self.model)

    def judge(self, **expected):
        scales = [1 / self.situation.accumulation] * len(self.log.steps)
        judge(self.log.steps, self.handler.scores, scales=scales, **expected)


@pytest.mark.parametrize("as_dict", [False, True])
@pytest.mark.parametrize("name", [pytest.param(n, marks=cell(NAME, n)) for n in SITUATIONS])
def test_our_loader_beside_a_prepared_model(name, as_dict):
    with reported(name):
        run = Run(SITUATIONS[name], as_dict=as_dict).train()
        run.judge(**expectations(name, run.log))
        assert run.handler.num_missed_updates == (EPOCHS if name == "last skipped" else 0)


@pytest.mark.parametrize("name", [pytest.param(n, marks=cell(PREPARED, n)) for n in SITUATIONS])
def test_our_loader_behind_prepare(name):
    with reported(name):
        run = Run(SITUATIONS[name], prepared=True).train()
        run.judge(**expectations(name, run.log))


def test_windows_end_with_the_epoch():
    run = Run(Situation(accumulation=3)).train()
    counts = [sum(step.epoch == epoch for step in run.log.steps) for epoch in range(EPOCHS)]
    assert run.num_steps == sum(-(-count // 3) for count in counts)


@cell(NAME, "workers")
def test_workers_fetch_ahead():
    Run(Situation(accumulation=2), num_workers=2).train().judge()


@cell(PREPARED, "workers")
def test_workers_fetch_ahead_behind_prepare():
    Run(Situation(accumulation=2), prepared=True, num_workers=2).train().judge()


def check_resume(folder, prepared):
    count = 0

    def save(run):
        nonlocal count
        count += 1
        run.accelerator.save_state(str(folder / str(count)))

    whole = Run(Situation(save=save), prepared).train()
    whole.judge()
    for number in range(1, count + 1):
        reset()
        run = Run(Situation(), prepared)
        run.accelerator.load_state(str(folder / str(number)))
        run.train()
        assert run.log.batches == whole.log.batches[number:], f"resumed after batch {number}"
        steps = whole.log.steps[:number] + run.log.steps
        judge(steps, run.handler.scores)
        torch.testing.assert_close(run.model.layer.weight, whole.model.layer.weight)


@cell(NAME, "resume")
def test_a_run_resumed_after_any_batch_is_the_run_that_was_not_interrupted(tmp_path):
    check_resume(tmp_path, prepared=False)


@cell(PREPARED, "resume")
def test_a_prepared_run_resumed_after_any_batch_is_too(tmp_path):
    check_resume(tmp_path, prepared=True)


@cell(PREPARED, "plain", refused=True)
def test_tuples_lose_their_ids_behind_prepare_and_are_refused():
    with pytest.raises(ValueError, match="does not know its ids"):
        Run(Situation(), prepared=True, as_dict=False).train()


@pytest.mark.parametrize("situation", [Situation(), Situation(stop={0: 3})], ids=["resume", "break"])
def test_a_prepared_loader_that_starts_over_is_reported(situation):
    """Accelerate says epoch 0 after a resume and after a loop that was left early."""
    first = Run(Situation(stop={0: 3}), prepared=True)
    first.train_epoch(0)
    reset()
    run = Run(situation, prepared=True, says_epoch=False)
    if not situation.stop:
        first.handler.set_epoch(1)
        run.handler.load_state_dict(first.handler.state_dict())
    with pytest.warns(tamis.LoopWarning, match=r"loader.set_epoch\(handler.next_epoch\)"):
        run.train()


def be_rank(rank, options):
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", tamis.MissedUpdateWarning)
        run = Run(Situation(accumulation=2), **options).train()
    run.handler.state_dict()  # ranks exchange their scores
    return run.log.steps, run.handler.scores


@cell(PREPARED, "two processes")
def test_a_prepared_loader_shares_what_every_rank_plans():
    options = {"prepared": True, "options": tamis.Options(sharding="external")}
    results = run_ranks(be_rank, options)
    steps = in_turn([steps for steps, _ in results])
    judge(steps, results[0][1], scales=[0.5] * len(steps), ordered=False, num_ranks=2)


@cell(NAME, "two processes")
def test_two_processes_share_every_epoch():
    results = run_ranks(be_rank, {})
    steps = in_turn([steps for steps, _ in results])
    judge(steps, results[0][1], scales=[0.5] * len(steps), ordered=False, num_ranks=2)


def be_early(rank):
    handler = make_handler()
    prepare_loader(Accelerator(cpu=True), handler, BATCH)


@cell(NAME, "two processes", refused=True)
def test_a_handler_made_before_the_accelerator_is_refused():
    with pytest.raises(AssertionError, match="make the handler after the Accelerator"):
        run_ranks(be_early)
