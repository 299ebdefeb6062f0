"""The training script of InfoBatch's authors, in plain PyTorch: ResNet, one-cycle, label smoothing.

Four lines differ from a script without pruning; they are marked. Trains on CIFAR-10 in its official
binary form (--data cifar-10-batches-bin), or on Fashion-MNIST.
"""

import argparse
import gzip
import math
import pathlib

import numpy as np
import tamis
import torch
from torch import nn
from torch.nn.functional import relu
from torch.utils.data import TensorDataset


def read_cifar(folder, files):
    """Images of shape (n, 3, 32, 32) and labels, from the official binary files."""
    rows = [np.fromfile(folder / name, np.uint8).reshape(-1, 1 + 3 * 32 * 32) for name in files]
    table = np.concatenate(rows)
    return table[:, 1:].reshape(-1, 3, 32, 32), table[:, 0]


def read_fashion_mnist(folder, part):
    """Images of shape (n, 1, 28, 28) and labels, from the original files."""
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        return images, np.frombuffer(file.read(), np.uint8, offset=8)


def read_data(folder, limit):
    if (folder / "test_batch.bin").exists():
        train = read_cifar(folder, [f"data_batch_{k}.bin" for k in range(1, 6)])
        test = read_cifar(folder, ["test_batch.bin"])
    else:
        train, test = (read_fashion_mnist(folder, part) for part in ("train", "t10k"))

    def to_dataset(images, labels):
        images = torch.from_numpy(images[:limit].copy()).float().div(255).sub(0.5).div(0.25)
        return TensorDataset(images, torch.from_numpy(labels[:limit].astype(np.int64)))

    return to_dataset(*train), to_dataset(*test)


class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.first = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))
        self.around = nn.Conv2d(channels_in, channels, 1, stride, bias=False)

    def forward(self, x):
        y = self.norms[0](self.first(x))
        return relu(self.norms[1](self.second(relu(y))) + self.around(x))


def make_resnet(channels_in, width):
    """Four stages; width 64 and two blocks per stage would be a ResNet-18."""
    widths = [width, 2 * width, 4 * width, 8 * width]
    blocks = [Block(a, b, 2) for a, b in zip([width, *widths], widths, strict=False)]
    stem = [nn.Conv2d(channels_in, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(
        *stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, 10)
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--limit", type=int, default=None, help="training samples to use")
    parser.add_argument("--width", type=int, default=16)
    args = parser.parse_args()

    torch.manual_seed(0)
    train_set, test_set = read_data(args.data, args.limit)
    model = make_resnet(train_set[0][0].shape[0], args.width)
    # Of the authors: InfoBatch(train_set, epochs, 0.5, 0.875) and DataLoader(sampler=...).
    handler = tamis.InfoBatch(train_set, epochs=args.epochs, prune_ratio=0.5)  # 1
    loader = handler.loader(batch_size=128)  # 2
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1, reduction="none")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, weight_decay=5e-4)
    steps = args.epochs * math.ceil(len(train_set) / 128)
    one_cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.2, total_steps=steps)
    scheduler = tamis.lr_by_progress(one_cycle, handler)  # 3
    for _ in range(args.epochs):
        model.train()
        for images, labels in loader:
            loss = handler.update(criterion(model(images), labels))  # 4
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        model.eval()
        with torch.no_grad():
            outputs = torch.cat([model(part) for part in test_set.tensors[0].split(500)])
        accuracy = (outputs.argmax(1) == test_set.tensors[1]).float().mean()
        print(f"{handler.summary()}, accuracy {accuracy:.3f}")
    print(f"pruned {handler.pruned_share:.1%} of the run")


if __name__ == "__main__":
    main()
