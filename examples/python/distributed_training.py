"""Trains one network on several processes with DistributedDataParallel.

torchrun --nproc_per_node 2 distributed_training.py
"""

import argparse

import tamis
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import TensorDataset


def make_data(size):
    """Points of two classes; those near the border are hard."""
    points = torch.randn(size, 8, generator=torch.Generator().manual_seed(0))
    return TensorDataset(points, (points[:, 0] + points[:, 1] > 0).long())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--save", help="write the handler's state to this file at the end")
    args = parser.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    train_set = make_data(args.size)
    # Made after init_process_group: every rank then trains on its share of each epoch.
    handler = tamis.prune(train_set, "bls-infobatch", epochs=args.epochs)
    loader = handler.loader(64)
    network = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)))
    optimizer, criterion = torch.optim.SGD(network.parameters(), lr=0.1), nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        handler.set_epoch(epoch)  # on every rank: exchanges losses, plans the epoch
        num_steps = len(loader)
        for points, labels in loader:
            loss = handler.update(criterion(network(points), labels))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            points, labels = train_set.tensors
            accuracy = (network.module(points).argmax(1) == labels).float().mean()
        if dist.get_rank() == 0:
            print(
                f"epoch {epoch}: {num_steps} steps, accuracy {accuracy:.3f}, "
                f"{handler.pruned_share:.1%} of the samples pruned so far",
                flush=True,
            )
    state = handler.state_dict()  # on every rank; any number of ranks can go on from it
    if args.save and dist.get_rank() == 0:
        torch.save(state, args.save)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
