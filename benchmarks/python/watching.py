#!/usr/bin/env python3
"""What watched outputs cost in a training step on the CPU, on one core.

Figures, each with its limit:
- logits: forward hook, update(loss) and backward hook together, for 128 x 1000 float32 logits, beyond the same
  step without a handler; with norms alone, and with norms and exact weights.
- step: the same for a whole step of a small CNN (28 x 28 images, batch of 128), as a share of the step.
- floors: what torch itself takes here to read such a gradient once, to copy it, and to hook a node of the graph.

A watched and a plain step are timed in turn, in processor time, on equal models, which change places after every
pass; which of the two comes first changes from pair to pair. A figure is the median of the differences within the
pairs, with the 95 % interval of the median.

  benchmarks/python/watching.py                     a table
  benchmarks/python/watching.py --json result.json  also the figures
"""

import argparse
import copy
import os
import pathlib
import sys
import time

import results

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BATCH = 128
LOGITS_LIMIT_US = 60.0
STEP_LIMIT = 0.01


class Indices:
    """A data set that costs next to nothing."""

    def __len__(self):
        return 50 * BATCH

    def __getitem__(self, index):
        return index

    def __getitems__(self, indices):
        return indices


def logits_model():
    import torch

    class Logits(torch.nn.Module):
        """The cheapest model with such an output."""

        def __init__(self):
            super().__init__()
            self.logits = torch.nn.Parameter(torch.randn(BATCH, 1000))

        def forward(self, _):
            return self.logits * 1.0

    return Logits(), None


def small_cnn():
    import torch
    from torch import nn

    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))
    return model, torch.randn(BATCH, 1, 28, 28)


def timed_pairs(make_model, num_classes, is_weighted, num_pairs):
    """Seconds of processor time of watched and of plain steps, two arrays."""
    import numpy as np
    import torch
    import torch.nn.functional as F

    import tamis

    torch.manual_seed(0)
    model, inputs = make_model()
    labels = torch.randint(num_classes, (BATCH,))
    options = tamis.Options(delta=1.0)
    ratio = 0.5 if is_weighted else 0.0
    handler = tamis.prune(Indices(), "ogs-infobatch", epochs=1000, options=options, prune_ratio=ratio)
    models = {"watched": copy.deepcopy(model), "plain": model}
    watch = None
    loader = handler.loader(BATCH, drop_last=True, collate_fn=len)
    times = {"watched": [], "plain": []}
    order = list(models)
    clock = time.thread_time  # what else runs on the machine does not count
    while len(times["plain"]) < num_pairs:
        # They change places: where a model lies in memory makes a percent.
        models = {"watched": models["plain"], "plain": models["watched"]}
        if watch is not None:
            watch.remove()
        watch = handler.watch(models["watched"])
        for _ in loader:
            order.reverse()
            for kind in order:
                model = models[kind]
                model.zero_grad(set_to_none=True)
                start = clock()
                loss = F.cross_entropy(model(inputs), labels)
                if kind == "watched":
                    loss = handler.update(loss)
                loss.backward()
                if handler.epoch > 0:  # nothing is weighted before
                    times[kind].append(clock() - start)
            if len(times["plain"]) >= num_pairs:
                break
    assert not is_weighted or len(np.unique(handler.weights)) > 1
    return np.array(times["watched"]), np.array(times["plain"])


def figure(watched, plain):
    """In microseconds. The interval of a median needs no distribution: it is between two of the sorted values."""
    import numpy as np

    differences = np.sort(watched - plain) * 1e6
    half = 0.98 * len(differences) ** 0.5
    middle = len(differences) / 2
    low, high = differences[int(middle - half)], differences[int(middle + half)]
    return {"plain_us": float(np.median(plain) * 1e6), "beyond_us": float(np.median(differences)), "low_us": float(low),
            "high_us": float(high), "pairs": len(differences)}


def floors():
    """{what: the median's microseconds}"""
    import numpy as np
    import torch

    gradient = torch.randn(BATCH, 1000)
    small = torch.randn(4, 4, requires_grad=True)

    def median(function):
        times = []
        for _ in range(2000):
            start = time.thread_time()
            function()
            times.append(time.thread_time() - start)
        return float(np.median(times) * 1e6)

    product = median(lambda: small * 1.0)
    hooked = median(lambda: (small * 1.0).grad_fn.register_prehook(print))
    return {"the norms of 128 x 1000 by torch": median(lambda: torch.linalg.vector_norm(gradient, dim=1)),
            "a copy of 128 x 1000": median(gradient.clone),
            "a product of 16 numbers": product,
            "a hook on its node": hooked - product}


def measure(args):
    import torch

    torch.set_num_threads(1)
    figures = {}
    for name, is_weighted in (("norms", False), ("norms and weights", True)):
        found = figure(*timed_pairs(logits_model, 1000, is_weighted, args.pairs))
        figures[f"{BATCH} x 1000 logits, {name}"] = found | {"limit_us": LOGITS_LIMIT_US}
        found = figure(*timed_pairs(small_cnn, 10, is_weighted, max(100, args.pairs // 2)))
        figures[f"step of a small CNN, {name}"] = found | {"limit_us": STEP_LIMIT * found["plain_us"]}
    return figures


def table(result):
    told = ", ".join(f"{what} {microseconds:.0f} us" for what, microseconds in result["floors_us"].items())
    return f"{rows(result['figures'])}\n\nFor comparison, torch on the same core: {told}."


def judge(name, f):
    """What a figure is called, what is aimed at, what was found, and whether it is within the aim."""
    return f"watching {name}", f"at most {f['limit_us']:.0f} us", f"{f['beyond_us']:.0f} us", f["beyond_us"] <= f["limit_us"]


def rows(figures):
    lines = ["| step | plain | watching adds | share | limit |", "|---|--:|--:|--:|--:|"]
    for name, f in figures.items():
        share = f["beyond_us"] / f["plain_us"]
        lines.append(f"| {name} | {f['plain_us']:.0f} us | {f['beyond_us']:.0f} us [{f['low_us']:.0f}, {f['high_us']:.0f}] "
                     f"| {share:.2%} | {f['limit_us']:.0f} us |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda p: ROOT / p, default=ROOT / "build")
    parser.add_argument("--pairs", type=int, default=2000, help="of steps; half as many of the CNN's, which are long")
    parser.add_argument("--core", type=int, default=0, help="the processor to run on")
    parser.add_argument("--json", type=pathlib.Path, help="file for the figures")
    args = parser.parse_args()
    sys.path.insert(0, str(args.build / "python"))
    os.sched_setaffinity(0, {args.core})
    figures = measure(args)
    result = {"figures": figures, "floors_us": floors()}
    print(table(result))
    if args.json:
        results.write(args.json, results.header() | result)
    return 0 if all(judge(name, f)[-1] for name, f in figures.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
