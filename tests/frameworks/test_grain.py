"""JAX with Grain, on the core alone."""

import subprocess
import sys

import grain
import jax
import numpy as np
import pytest
import tamis
from absl import flags
from loops import SITUATIONS, Situation
from matrix import cell
from truth import BATCH, EPOCHS, METHOD, SIZE, Step, features_of, judge, label_of

from tamis.integrations.grain import PrunedGrain

NAME = "JAX with Grain"
SOURCE = [{"x": features_of(i).numpy(), "y": np.int32(label_of(i))} for i in range(SIZE)]


@jax.jit
def losses_and_step(w, x, y, weights):
    def weighted(w):
        logits = x[:, 1:] @ w
        losses = -jax.nn.log_softmax(logits)[jax.numpy.arange(len(y)), y]
        return (losses * weights).mean(), losses

    (_, losses), gradient = jax.value_and_grad(weighted, has_aux=True)(w)
    return losses, w - 0.1 * gradient


def make_pruner():
    chosen = tamis.methods()[METHOD]
    return tamis.Pruner(SIZE, EPOCHS, policy=chosen["policy"], score=chosen["score"])


class Run:
    def __init__(self, situation, num_workers=0, state=None):
        self.situation, self.num_workers = situation, num_workers
        self.pruned = PrunedGrain(make_pruner(), SOURCE, BATCH, drop_remainder=False)
        self.weights = np.zeros((3, 3), np.float32)
        self.steps = []
        if state is not None:
            self.pruned.pruner.deserialize(state[0])
            self.weights = state[1]

    def train(self):
        for epoch in range(self.pruned.next_epoch, EPOCHS):
            batches = self.pruned.batches(epoch)
            if self.num_workers > 0:
                batches = batches.mp_prefetch(grain.MultiprocessingOptions(self.num_workers))
            plan = self.pruned.pruner.plan
            count = -(-(len(plan) - self.pruned.pruner.position) // BATCH)
            for number, batch in enumerate(batches, 1):
                if not (self.situation.skip_last and number == count):
                    self.step(epoch, batch)
                if self.situation.save:
                    self.situation.save(self)
                if number == self.situation.stop.get(epoch):
                    break
        return self

    def step(self, epoch, batch):
        x, y = batch["data"]["x"], batch["data"]["y"]
        losses, updated = losses_and_step(self.weights, x, y, batch["weights"])
        if len(self.steps) % self.situation.accumulation == 0:
            self.weights = updated
        if self.situation.validate:
            losses_and_step(self.weights, x, y, np.ones(len(y), np.float32))
        mean = float(np.asarray(losses).mean())
        ids = x[:, 0].round().astype(int).tolist()
        # The weights are exact, one per sample; judge() knows their mean.
        self.steps.append(Step(epoch, ids, mean, factor=float(np.mean(batch["weights"]))))
        self.pruned.observe(batch, mean)

    def judge(self, **expected):
        judge(self.steps, self.pruned.pruner.scores, **expected)


@pytest.mark.parametrize("name", [pytest.param(n, marks=cell(NAME, n)) for n in SITUATIONS])
def test_one_process(name):
    run = Run(SITUATIONS[name]).train()
    counts = {e: sum(step.epoch == e for step in run.steps) for e in range(EPOCHS)}
    run.judge(**({"cut": counts} if name in ("last skipped", "break") else {}))


@cell(NAME, "workers")
def test_worker_processes_fetch_ahead():
    flags.FLAGS.mark_as_parsed()  # as absl.app.run does, which Grain asks for
    run = Run(Situation(), num_workers=2).train()
    run.judge()


@cell(NAME, "resume")
def test_a_run_resumed_after_any_batch_is_the_run_that_was_not_interrupted():
    states = []

    def save(run):
        states.append((run.pruned.pruner.serialize(), np.asarray(run.weights)))

    whole = Run(Situation(save=save)).train()
    for number, state in enumerate(states, 1):
        run = Run(Situation(), state=state).train()
        assert [s.ids for s in run.steps] == [s.ids for s in whole.steps[number:]], number
        judge(whole.steps[:number] + run.steps, run.pruned.pruner.scores)


@cell(NAME, "two processes", refused=True)
def test_several_processes_without_a_communicator_are_refused(monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(RuntimeError, match="communicator"):
        Run(Situation())


def test_batches_out_of_order_are_refused():
    run = Run(Situation())
    first, second = list(run.pruned.batches(0))[:2]
    with pytest.raises(RuntimeError, match="not the next"):
        run.pruned.observe(second, 1.0)
    run.pruned.observe(first, 1.0)


def test_torch_is_not_needed():
    script = "import sys; sys.modules['torch'] = None; import tamis.integrations.grain"
    subprocess.run([sys.executable, "-c", script], check=True)
