"""timm's create_loader with the loop of its training script: PrefetchLoader is one batch ahead."""

import numpy as np
import pytest
import torch
import torch.distributed as dist
from loops import SITUATIONS, Situation, cross_entropy, expectations, reported
from matrix import cell
from PIL import Image
from ranks import in_turn, run_ranks
from timm.data import create_loader
from truth import BATCH, EPOCHS, METHOD, SIZE, Log, judge, label_of

from tamis.integrations.timm import PrunedLoader

NAME = "timm"


class Images(torch.utils.data.Dataset):
    """Images of one colour, which says the index."""

    transform = None

    def __len__(self):
        return SIZE

    def __getitem__(self, i):
        image = Image.fromarray(np.full((4, 4, 3), 4 * i, dtype=np.uint8))
        return (image if self.transform is None else self.transform(image)), label_of(i)


def indices_in(images):
    return (images[:, 0, 0, 0] * 255 / 4).round().long().tolist()


def make_loader(num_workers=0, **options):
    return create_loader(
        Images(), (3, 4, 4), BATCH, is_training=True, no_aug=True, mean=(0.0,) * 3, std=(1.0,) * 3,
        num_workers=num_workers, device=torch.device("cpu"), **options,
    )


class Run:
    """As train_one_epoch of timm's train.py does it."""

    def __init__(self, situation, **options):
        self.situation = situation
        self.loader = PrunedLoader(make_loader(**options), METHOD, epochs=EPOCHS)
        self.handler = self.loader.handler
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 3))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.log = Log()

    def train(self):
        for epoch in range(self.handler.next_epoch, EPOCHS):
            self.loader.sampler.set_epoch(epoch)
            accumulation = self.situation.accumulation
            last, rest = len(self.loader) - 1, len(self.loader) % accumulation
            for number, (images, target) in enumerate(self.loader):
                window = rest if rest and number >= last + 1 - rest else accumulation
                if not (self.situation.skip_last and number == last):
                    loss = cross_entropy(self.model(images), target)
                    self.log.see(epoch, indices_in(images), loss)
                    loss = self.loader.update(loss)
                    (loss / window).backward()
                if (number + 1) % accumulation == 0 or number == last:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                if self.situation.validate:
                    with torch.no_grad():
                        for images, _ in make_loader():
                            self.model(images)
                if self.situation.save:
                    self.situation.save(self)
                if number + 1 == self.situation.stop.get(epoch):
                    break
        return self

    def state_dict(self):
        return {
            "model": {k: v.clone() for k, v in self.model.state_dict().items()},
            "handler": self.handler.state_dict(),
        }


def shares(steps, accumulation):
    result = []
    for epoch in range(EPOCHS):
        count = sum(step.epoch == epoch for step in steps)
        full = count // accumulation * accumulation
        result += [1 / accumulation] * full + [1 / (count - full or 1)] * (count - full)
    return result


@pytest.mark.parametrize("name", [pytest.param(n, marks=cell(NAME, n)) for n in SITUATIONS])
@pytest.mark.parametrize("use_prefetcher", [True, False])
def test_the_loop_of_the_training_script(name, use_prefetcher):
    with reported(name):
        run = Run(SITUATIONS[name], use_prefetcher=use_prefetcher).train()
    expected = {"drop_last": True, **expectations(name, run.log)}
    scales = shares(run.log.steps, SITUATIONS[name].accumulation)
    judge(run.log.steps, run.handler.scores, scales=scales, **expected)


@cell(NAME, "workers")
def test_workers_fetch_ahead():
    run = Run(Situation(), num_workers=2).train()
    judge(run.log.steps, run.handler.scores, drop_last=True)


@cell(NAME, "resume")
def test_a_run_resumed_after_any_batch_is_the_run_that_was_not_interrupted():
    states = []
    whole = Run(Situation(save=lambda run: states.append(run.state_dict()))).train()
    for number, state in enumerate(states, 1):
        run = Run(Situation())
        run.model.load_state_dict(state["model"])
        run.handler.load_state_dict(state["handler"])
        run.train()
        assert run.log.batches == whole.log.batches[number:], f"resumed after batch {number}"
        judge(whole.log.steps[:number] + run.log.steps, run.handler.scores, drop_last=True)


@cell(NAME, "plain", refused=True)
@pytest.mark.parametrize(
    ("options", "cure"),
    [
        ({"use_multi_epochs_loader": True}, "use_multi_epochs_loader=False"),
        ({"input_size_choices": [4, 8]}, "input_size_choices"),
    ],
)
def test_loaders_with_an_order_of_their_own_are_refused(options, cure):
    with pytest.raises(TypeError, match=cure):
        PrunedLoader(make_loader(**options), METHOD, epochs=EPOCHS)


def be_rank(rank):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    run = Run(Situation(), distributed=True).train()
    run.handler.state_dict()  # ranks exchange their scores
    return run.log.steps, run.handler.scores


@cell(NAME, "two processes")
def test_two_processes_share_every_epoch():
    results = run_ranks(be_rank)
    steps = in_turn([steps for steps, _ in results])
    counts = {e: sum(step.epoch == e for step in steps) for e in range(EPOCHS)}
    judge(steps, results[0][1], ordered=False, num_ranks=2, cut=counts)
