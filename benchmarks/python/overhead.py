#!/usr/bin/env python3
"""What the Python package costs on top of the core.

Figures, each with its limit:
- update: one handler.update(loss) on a scalar CPU tensor in a loop over handler.loader(), with a
  batch of 128 of a million samples, beyond the one tensor product that weights the loss. Update and
  product are timed in turn, batch by batch, and the medians are compared.
- per-sample update: the same with one loss per sample, all of it.
- epoch: what a pruned epoch of a small CNN (20,000 images of 28 x 28, batches of 128) spends in the package: the plan,
  all of every update, and what handler.loader() takes beyond a plain DataLoader, as a share of the epoch.
- plan: from the end of an epoch to the first index of the next one, for a million samples, against
  the core's own time for the same scores (core_bench). Least times are compared.

  benchmarks/python/overhead.py                     a table
  benchmarks/python/overhead.py --json result.json  also the figures, with machine and versions
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
UPDATE_LIMIT_US = 4.0
SAMPLE_UPDATE_LIMIT_US = 15.0
PLAN_LIMIT = 1.5
EPOCH_LIMIT = 0.001


class Batches:
    """A data set that costs next to nothing: a batch is its own list of indices."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return index

    def __getitems__(self, indices):
        return indices


def update_microseconds(num_samples, batch_size, num_updates, method):
    """Medians of handler.update, of the product alone, and of the clock."""
    import torch

    import tamis

    handler = tamis.prune(Batches(num_samples), method, epochs=100)
    loader = handler.loader(batch_size, drop_last=True, collate_fn=len)
    shape = (batch_size,) if handler.needs == "sample-losses" else ()
    parameter = torch.ones((), requires_grad=True)
    clock = time.perf_counter_ns
    updates, products, empty = [], [], []
    losses = torch.rand((1000, *shape))
    for epoch in range(2):
        for step, _ in enumerate(loader):
            loss = parameter * losses[step % 1000]
            if epoch == 0:  # nothing is weighted yet
                handler.update(loss)
                continue
            start = clock()
            product = loss * 1.25
            middle = clock()
            weighted = handler.update(loss)
            end = clock()
            empty.append(clock() - clock())
            products.append(middle - start)
            updates.append(end - middle)
            assert weighted is not loss and product is not loss
            if len(updates) == num_updates:
                break
    median = lambda values: sorted(values)[len(values) // 2] / 1000  # noqa: E731
    return median(updates), median(products), -median(empty)


def epoch_shares(num_samples=20_000, batch_size=128, num_epochs=3):
    """Seconds of an epoch, and of what the package does in it; the epoch with the least of the latter."""
    import torch
    import torch.nn.functional as F
    import watching

    import tamis

    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(num_samples, 1, 28, 28), torch.randint(10, (num_samples,)))
    clock = time.perf_counter

    def median_wait(loader, after):
        """What a batch takes to come, without a model."""
        waits = []
        start = clock()
        for _ in loader:
            waits.append(clock() - start)
            after()
            start = clock()
        return sorted(waits)[len(waits) // 2]

    plain_wait = median_wait(torch.utils.data.DataLoader(data, batch_size, shuffle=True), lambda: None)
    idle = tamis.prune(data, "bls-infobatch", epochs=num_epochs)
    pruned_wait = median_wait(idle.loader(batch_size), lambda: idle.update(torch.tensor(1.0)))

    handler = tamis.prune(data, "bls-infobatch", epochs=num_epochs)
    loader = handler.loader(batch_size)
    model, _ = watching.small_cnn()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    best = None
    for _ in range(num_epochs):
        updates, first, num_batches = 0.0, None, 0
        start = clock()
        for images, labels in loader:
            if first is None:
                first = clock() - start
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(images), labels)
            before = clock()
            loss = handler.update(loss)
            updates += clock() - before
            num_batches += 1
            loss.backward()
            optimizer.step()
        epoch = clock() - start
        own = max(0.0, first - plain_wait) + updates + num_batches * max(0.0, pruned_wait - plain_wait)
        if best is None or own / epoch < best["own_ms"] / best["epoch_ms"]:
            best = {"epoch_ms": epoch * 1e3, "own_ms": own * 1e3, "updates_ms": updates * 1e3,
                    "batches": num_batches, "limit_share": EPOCH_LIMIT}
    return best


def python_plan_seconds(scores, policy, options, repeats):
    """Least time from the end of an epoch to the first index of the next one."""
    import tamis

    run = tamis.Options(delta=1.0)
    handler = tamis.prune(range(len(scores)), policy, epochs=repeats + 1, options=run, **options)
    handler.update(scores, ids=range(len(scores)))
    least = float("inf")
    for epoch in range(1, repeats + 1):
        start = time.perf_counter()
        handler.set_epoch(epoch)
        next(iter(handler.sampler))
        least = min(least, time.perf_counter() - start)
    return least


def core_plan_seconds(build, scores, policy, repeats):
    program = build / "bin" / "core_bench"
    if not program.exists():
        sys.exit(f"overhead.py: {program} is missing; configure with -DTAMIS_BENCHMARKS=ON")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "scores.f32"
        scores.tofile(path)
        result = pathlib.Path(folder) / "result.json"
        environment = dict(os.environ, TAMIS_BENCH_SCORES=str(path),
                           TAMIS_BENCH_MAX_SAMPLES=str(len(scores)))
        subprocess.run(
            [str(program), f"--benchmark_filter=^plan/{policy}/{len(scores)}",
             "--benchmark_min_time=0.02", f"--benchmark_repetitions={repeats}",
             f"--benchmark_out={result}", "--benchmark_out_format=json"],
            env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        entries = json.loads(result.read_text())["benchmarks"]
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    return min(entry["real_time"] * units[entry["time_unit"]]
               for entry in entries if entry["run_type"] == "iteration")


def measure(args):
    import numpy as np
    import torch

    torch.set_num_threads(1)
    figures = {}
    kinds = {"update": ("bls-infobatch", UPDATE_LIMIT_US),
             "per-sample update": ("infobatch", SAMPLE_UPDATE_LIMIT_US)}
    for name, (method, limit) in kinds.items():
        update, product, clock = update_microseconds(args.samples, 128, args.updates, method)
        figures[name] = {"samples": args.samples, "batch": 128, "update_us": update - clock,
                         "product_us": product - clock, "beyond_product_us": update - product,
                         "limit_us": limit}
    figures["epoch of a small CNN"] = epoch_shares()
    scores = np.random.default_rng(1).gamma(2.0, 1.0, args.samples).astype(np.float32)
    half = {"infobatch": {"prune_ratio": 0.5},
            "seta": {"prune_ratio": 0.5, "groups": 10, "window_scale": 0.5}}
    for policy, options in half.items():
        core = core_plan_seconds(args.build, scores, policy, 10)
        python = python_plan_seconds(scores, policy, options, 15)
        core = min(core, core_plan_seconds(args.build, scores, policy, 10))
        figures[f"plan/{policy}"] = {"samples": args.samples, "python_ms": python * 1e3,
                                     "core_ms": core * 1e3, "ratio": python / core,
                                     "limit": PLAN_LIMIT}
    return figures


def table(figures):
    lines = ["| figure | Python | core or product | overhead | limit |", "|---|--:|--:|--:|--:|"]
    for name, f in figures.items():
        if "update_us" in f:
            limit = f"{f['limit_us']:g} us" if "limit_us" in f else ""
            lines.append(f"| {name}, batch of {f['batch']} | {f['update_us']:.2f} us "
                         f"| {f['product_us']:.2f} us | {f['beyond_product_us']:.2f} us "
                         f"| {limit} |")
        elif "epoch_ms" in f:
            lines.append(f"| {name}, {f['batches']} batches | {f['own_ms']:.2f} ms | {f['epoch_ms']:,.0f} ms "
                         f"| {f['own_ms'] / f['epoch_ms']:.3%} | {f['limit_share']:.1%} |")
        else:
            lines.append(f"| {name}, {f['samples']:,} samples | {f['python_ms']:.2f} ms "
                         f"| {f['core_ms']:.2f} ms | {f['ratio']:.2f} x | {f['limit']:g} x |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda p: ROOT / p, default=ROOT / "build")
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--updates", type=int, default=5000)
    parser.add_argument("--core", type=int, default=0, help="the processor to run on")
    parser.add_argument("--json", type=pathlib.Path, help="file for the figures")
    args = parser.parse_args()
    sys.path.insert(0, str(args.build / "python"))
    os.sched_setaffinity(0, {args.core})

    import torch

    import tamis

    figures = measure(args)
    print(table(figures))
    if args.json:
        versions = {"tamis": tamis.__version__, "torch": torch.__version__,
                    "python": platform.python_version(), "machine": platform.platform()}
        result = {"versions": versions, "figures": figures}
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    is_within = (figures["update"]["beyond_product_us"] <= UPDATE_LIMIT_US
                 and figures["per-sample update"]["update_us"] <= SAMPLE_UPDATE_LIMIT_US
                 and figures["epoch of a small CNN"]["own_ms"] <= EPOCH_LIMIT * figures["epoch of a small CNN"]["epoch_ms"]
                 and all(f["ratio"] <= PLAN_LIMIT for f in figures.values() if "ratio" in f))
    return 0 if is_within else 1


if __name__ == "__main__":
    sys.exit(main())
