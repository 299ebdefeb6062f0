"""A loss of several components, as in object detection: update() takes their sum, once per batch.

The components stay as they are for logging. Losses per sample are not needed, and in detection they
are hard to get: the number of boxes differs from image to image.
"""

import argparse

import tamis
import torch
from torch import nn
from torch.utils.data import Dataset


class Boxes(Dataset):
    """Feature vectors, each with up to four boxes to find; some vectors are noisier than others."""

    def __init__(self, size):
        generator = torch.Generator().manual_seed(0)
        self.num_boxes = torch.randint(1, 5, (size,), generator=generator)
        self.boxes = torch.rand(size, 4, 4, generator=generator)
        noise = torch.randn(size, 16, generator=generator)
        noise *= torch.rand(size, 1, generator=generator)
        self.features = self.boxes.flatten(1) + 0.3 * noise

    def __len__(self):
        return len(self.features)

    def __getitem__(self, index):
        count = self.num_boxes[index]
        return {"features": self.features[index], "boxes": self.boxes[index, :count]}


def collate(samples):
    """Boxes are a list: their number differs."""
    return {
        "features": torch.stack([s["features"] for s in samples]),
        "boxes": [s["boxes"] for s in samples],
    }


def loss_components(boxes, presence, batch):
    is_there = torch.stack([(torch.arange(4) < len(b)).float() for b in batch["boxes"]])
    found = torch.cat([boxes[i, : len(b)] for i, b in enumerate(batch["boxes"])])
    return {
        "box": nn.functional.smooth_l1_loss(found, torch.cat(batch["boxes"])),
        "objectness": nn.functional.binary_cross_entropy_with_logits(presence, is_there),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--size", type=int, default=2000)
    args = parser.parse_args()
    torch.manual_seed(0)
    handler = tamis.prune(Boxes(args.size), "bls-seta", epochs=args.epochs)
    loader = handler.loader(32, collate_fn=collate)
    network = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 20))
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        for batch in loader:
            boxes, presence = network(batch["features"]).split([16, 4], dim=1)
            parts = loss_components(boxes.view(-1, 4, 4), presence, batch)
            loss = handler.update(5.0 * parts["box"] + parts["objectness"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(
            f"epoch {epoch}: box {parts['box']:.4f}, objectness {parts['objectness']:.4f}, "
            f"{handler.pruned_share:.1%} pruned so far"
        )


if __name__ == "__main__":
    main()
