"""Real training on Fashion-MNIST, interrupted and resumed."""

import gzip
import pathlib

import numpy as np
import pytest
import tamis
import torch
from torch import nn
from torch.utils.data import TensorDataset

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
SIZE = 4000
EPOCHS = 4


@pytest.fixture(scope="module")
def train_set():
    with gzip.open(DATA / "train-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(16 + SIZE * 784), np.uint8, offset=16)
    with gzip.open(DATA / "train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(8 + SIZE), np.uint8, offset=8)
    images = torch.from_numpy(images.reshape(SIZE, 784).copy()).float() / 255
    return TensorDataset(images, torch.from_numpy(labels.astype(np.int64)))


class Training:
    """Everything that a checkpoint holds."""

    def __init__(self, train_set, method, persistent):
        torch.manual_seed(0)
        self.network = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1, momentum=0.9)
        one_cycle = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=0.2, total_steps=EPOCHS * SIZE // 64
        )
        self.handler = tamis.prune(train_set, method, epochs=EPOCHS)
        self.schedule = tamis.lr_by_progress(one_cycle, self.handler)
        self.loader = self.handler.loader(64, num_workers=2, persistent_workers=persistent)
        self.parts = {
            "network": self.network,
            "optimizer": self.optimizer,
            "schedule": one_cycle,
            "handler": self.handler,
        }

    def run(self, first_epoch=0, interrupt_at=None, path=None):
        """Trains to the end, or saves and stops after `interrupt_at` batches; gives the losses."""
        losses = []
        for epoch in range(first_epoch, EPOCHS):
            self.handler.set_epoch(epoch)
            for images, labels in self.loader:
                loss = nn.functional.cross_entropy(self.network(images), labels)
                losses.append(loss.item())
                self.optimizer.zero_grad()
                self.handler.update(loss).backward()
                self.optimizer.step()
                self.schedule.step()
                if len(losses) == interrupt_at:
                    state = {name: part.state_dict() for name, part in self.parts.items()}
                    torch.save({"epoch": epoch, **state}, path)
                    return losses
        return losses

    def load(self, path):
        state = torch.load(path, weights_only=True)
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        return state["epoch"]


@pytest.mark.parametrize(
    "method, persistent, interrupt_at",
    [("bls-infobatch", False, 100), ("bls-seta", True, 40), ("blr-infobatch", False, 63)],
)
def test_a_training_interrupted_and_resumed_equals_the_uninterrupted_one(
    train_set, tmp_path, method, persistent, interrupt_at
):
    whole = Training(train_set, method, persistent)
    expected = whole.run()

    first = Training(train_set, method, persistent)
    losses = first.run(interrupt_at=interrupt_at, path=tmp_path / "checkpoint.pt")
    second = Training(train_set, method, persistent)
    epoch = second.load(tmp_path / "checkpoint.pt")
    losses += second.run(first_epoch=epoch)

    assert losses == expected
    for a, b in zip(second.network.parameters(), whole.network.parameters(), strict=True):
        assert torch.equal(a, b)
    np.testing.assert_array_equal(second.handler.scores, whole.handler.scores)
    assert second.handler.pruned_share == whole.handler.pruned_share > 0.05
    assert second.handler.progress == 1.0
    assert second.handler.num_missed_updates == 0
    assert second.parts["schedule"].last_epoch == EPOCHS * SIZE // 64 - 1
    assert np.mean(losses[-20:]) < 0.5 * losses[0]
