"""A contrastive loss (InfoNCE): one scalar for the batch, which has no losses per sample.

The loss of a pair depends on the whole batch, so that InfoBatch alone could not be used; the mean
loss of the batch is all that there is, and all that BLS and BLR need.
"""

import argparse

import tamis
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import Dataset


class Pairs(Dataset):
    """Two views of every point; the views of some points hardly resemble each other."""

    def __init__(self, size):
        generator = torch.Generator().manual_seed(0)
        self.points = torch.randn(size, 32, generator=generator)
        self.noise = torch.rand(size, 1, generator=generator)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        spread = self.noise[index]
        first, second = torch.randn(2, 32) * spread
        return self.points[index] + first, self.points[index] + second


def info_nce(first, second, temperature=0.1):
    first, second = functional.normalize(first, dim=1), functional.normalize(second, dim=1)
    logits = first @ second.T / temperature
    return functional.cross_entropy(logits, torch.arange(len(logits)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--size", type=int, default=2000)
    args = parser.parse_args()
    torch.manual_seed(0)
    handler = tamis.BLR(tamis.InfoBatch(Pairs(args.size), epochs=args.epochs)).proxy()
    loader = handler.loader(64, drop_last=True)
    encoder = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 16))
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        for first, second in loader:
            loss = info_nce(encoder(first), encoder(second))
            optimizer.zero_grad()
            handler.update(loss).backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss:.3f}, {handler.pruned_share:.1%} pruned so far")


if __name__ == "__main__":
    main()
