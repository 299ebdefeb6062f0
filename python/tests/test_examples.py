"""The examples run, train and prune."""

import pathlib
import re
import runpy
import sys

import numpy as np
import pytest
import tamis
import torch
from support import EXAMPLES

ARGUMENTS = {
    "train_classifier.py": ["--epochs", "3", "--limit", "3000"],
    "detection_loss.py": ["--epochs", "3", "--size", "500"],
    "contrastive.py": ["--epochs", "3", "--size", "500"],
    "infobatch_resnet.py": ["--epochs", "3", "--limit", "1000", "--width", "4"],
}


def test_every_example_is_tested():
    elsewhere = {"distributed_training.py"}  # by test_distributed.py
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(ARGUMENTS) | elsewhere


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_example_trains_and_prunes(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [name, *ARGUMENTS[name]])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    output = capsys.readouterr().out
    assert output.count("epoch ") == 3
    shares = [float(share) for share in re.findall(r"([\d.]+)%", output)]
    assert shares[-1] > 3.0


class AuthorsInfoBatch:
    """The algorithm as its authors published it, without their loader."""

    def __init__(self, size, num_epochs, ratio=0.5, delta=0.875):
        self.scores = np.full(size, 3.0, dtype=np.float32)
        self.keep_ratio = 1.0 - ratio
        self.num_pruned_epochs = num_epochs * delta

    def select(self, epoch):
        """The samples that always stay, and how many of the others are drawn."""
        if epoch == 0 or epoch > self.num_pruned_epochs - 1:
            return np.arange(len(self.scores)), 0
        is_learned = self.scores < self.scores.mean(dtype=np.float64)
        return np.flatnonzero(~is_learned), int(self.keep_ratio * is_learned.sum())


def test_infobatch_selects_as_many_samples_as_its_authors_do():
    example = runpy.run_path(str(EXAMPLES / "infobatch_resnet.py"))
    torch.manual_seed(0)
    data, _ = example["read_data"](pathlib.Path("/usr/share/datasets/fashion-mnist"), 1000)
    model, epochs = example["make_resnet"](1, 4), 8
    handler = tamis.InfoBatch(data, epochs=epochs, prune_ratio=0.5)
    loader = handler.loader(batch_size=100)
    authors = AuthorsInfoBatch(len(data), epochs)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = torch.nn.CrossEntropyLoss(reduction="none")
    counts = []
    for epoch in range(epochs):
        staying, num_drawn = authors.select(epoch)
        handler.set_epoch(epoch)
        kept, weights = handler.plan.kept, handler.plan.weights
        counts.append(int(kept.sum()))
        assert counts[-1] == len(staying) + num_drawn
        assert kept[staying].all() and (weights[staying] == 1.0).all()
        drawn = np.setdiff1d(np.flatnonzero(kept), staying)
        assert len(drawn) == num_drawn and (weights[drawn] == 2.0).all()
        for batch in loader:
            losses = criterion(model(batch[0]), batch[1])
            authors.scores[batch.indices] = losses.detach().numpy()
            optimizer.zero_grad()
            handler.update(losses).backward()
            optimizer.step()
    assert min(counts) < 800 and counts[0] == counts[-1] == 1000
