"""Trains a small network on Fashion-MNIST. The three lines that tamis needs are marked."""

import argparse
import gzip
import pathlib

import numpy as np
import tamis
import torch
from torch import nn
from torch.utils.data import TensorDataset


def read_fashion_mnist(folder, part, limit):
    """Images of shape (n, 1, 28, 28) in [0, 1] and labels, from the original files."""
    with gzip.open(pathlib.Path(folder) / f"{part}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(pathlib.Path(folder) / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    images = torch.from_numpy(images[:limit].copy()).float() / 255
    return TensorDataset(images, torch.from_numpy(labels[:limit].astype(np.int64)))


def make_network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 6 * 6, 10),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--limit", type=int, default=60_000, help="training samples to use")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(0)
    train_set = read_fashion_mnist(args.data, "train", args.limit)
    test_set = read_fashion_mnist(args.data, "t10k", 10_000)
    handler = tamis.prune(train_set, "bls-infobatch", epochs=args.epochs)  # 1
    loader = handler.loader(batch_size=128, num_workers=args.workers)  # 2
    network, criterion = make_network(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(args.epochs):
        num_batches = len(loader)
        for images, labels in loader:
            loss = criterion(network(images), labels)
            loss = handler.update(loss)  # 3
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        images, labels = test_set.tensors
        with torch.no_grad():
            accuracy = (network(images).argmax(1) == labels).float().mean()
        print(
            f"epoch {epoch}: {num_batches} batches, accuracy {accuracy:.3f}, "
            f"{handler.pruned_share:.1%} of the samples pruned so far"
        )


if __name__ == "__main__":
    main()
