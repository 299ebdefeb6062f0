#!/usr/bin/env python3
"""What the Python package costs on top of the core.

Figures, each with its limit:
- update: one handler.update(loss) on a scalar CPU tensor in a loop over handler.loader(), with a
  batch of 128 of a million samples, beyond the one tensor product that weights the loss. Update,
  product and the authors' update (python_job.py) are timed in turn, batch by batch, and the medians
  are compared.
- per-sample update: the same with one loss per sample; all of it is judged, its product included.
- epoch: what a pruned epoch of a small CNN (20,000 images of 28 x 28, batches of 128) spends in the package: the plan,
  all of every update, and what handler.loader() takes beyond a plain DataLoader, as a share of the epoch. After a step of
  training the caches hold nothing of the update, so it takes many times what it takes in a loop of updates, and so does the
  product alone, which is measured in its place at every second batch.
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
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

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
    """Medians of handler.update, of the product alone, of the authors' update, and of the clock."""
    import python_job
    import torch

    import tamis

    handler = tamis.prune(Batches(num_samples), method, epochs=100)
    loader = handler.loader(batch_size, drop_last=True, collate_fn=len)
    is_per_sample = handler.needs == "sample-losses"
    shape = (batch_size,) if is_per_sample else ()
    authors = (python_job.PythonSampleLoss if is_per_sample else python_job.PythonBatchLoss)(num_samples)
    batches = torch.randint(num_samples, (1000, batch_size))
    parameter = torch.ones((), requires_grad=True)
    clock = time.perf_counter_ns
    updates, products, peers, empty = [], [], [], []
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
            start = clock()
            authors.update(batches[step % 1000], loss)
            peers.append(clock() - start)
            assert weighted is not loss and product is not loss
            if len(updates) == num_updates:
                break
    median = lambda values: sorted(values)[len(values) // 2] / 1000  # noqa: E731
    return median(updates), median(products), median(peers), -median(empty)


def batch_waits(plain, pruned, after, num_epochs):
    """Medians of the seconds that a batch takes to come, and that it takes longer from the pruned loader.

    The loaders give their batches in turn, and which of them goes first alternates.
    """
    waits, differences = [], []
    for _ in range(num_epochs):
        loaders = [("plain", iter(plain)), ("pruned", iter(pruned))]
        while True:
            loaders.reverse()
            times = {}
            for name, batches in loaders:
                start = time.perf_counter()
                if next(batches, None) is not None:
                    times[name] = time.perf_counter() - start
            if len(times) < 2:
                break
            after()
            waits.append(times["plain"])
            differences.append(times["pruned"] - times["plain"])
    return statistics.median(waits), statistics.median(differences)


def epoch_shares(num_samples=20_000, batch_size=128, num_epochs=3):
    """Seconds of an epoch, and of what the package does in it; the epoch with the least of the latter."""
    import torch
    import torch.nn.functional as F
    import watching

    import tamis

    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(num_samples, 1, 28, 28), torch.randint(10, (num_samples,)))
    clock = time.perf_counter

    plain = torch.utils.data.DataLoader(data, batch_size, shuffle=True)
    idle = tamis.prune(data, "bls-infobatch", epochs=num_epochs)
    plain_wait, beyond = batch_waits(plain, idle.loader(batch_size), lambda: idle.update(torch.tensor(1.0)), num_epochs)

    handler = tamis.prune(data, "bls-infobatch", epochs=num_epochs)
    loader = handler.loader(batch_size)
    model, _ = watching.small_cnn()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    best = None
    for _ in range(num_epochs):
        updates, products, first, num_batches = [], [], None, 0
        start = clock()
        for images, labels in loader:
            if first is None:
                first = clock() - start
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(images), labels)
            before = clock()
            if num_batches % 2 == 1:
                loss * 1.25
                products.append(clock() - before)
            loss = handler.update(loss)
            if num_batches % 2 == 0:
                updates.append(clock() - before)
            num_batches += 1
            loss.backward()
            optimizer.step()
        epoch = clock() - start
        update, product = statistics.mean(updates), statistics.mean(products)
        own = max(0.0, first - plain_wait) + num_batches * (update + max(0.0, beyond))
        if best is None or own / epoch < best["own_ms"] / best["epoch_ms"]:
            best = {"epoch_ms": epoch * 1e3, "own_ms": own * 1e3, "updates_ms": num_batches * update * 1e3,
                    "product_ms": num_batches * product * 1e3, "batches": num_batches, "limit_share": EPOCH_LIMIT}
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
        update, product, authors, clock = update_microseconds(args.samples, 128, args.updates, method)
        figures[name] = {"samples": args.samples, "batch": 128, "update_us": update - clock,
                         "product_us": product - clock, "beyond_product_us": update - product,
                         "authors_us": authors - clock, "limit_us": limit}
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


def judge(name, f):
    """What a figure is called, what is aimed at, what was found, and whether it is within the aim."""
    if "update_us" in f:
        is_whole = name == "per-sample update"
        found = f["update_us" if is_whole else "beyond_product_us"]
        aim = f"at most {f['limit_us']:g} us {'in all' if is_whole else 'beyond the product'}"
        return f"{name}, batch of {f['batch']}", aim, f"{found:.2f} us", found <= f["limit_us"]
    if "epoch_ms" in f:
        share = f["own_ms"] / f["epoch_ms"]
        title = f"{name}, {f['batches']} batches"
        return title, f"at most {100 * f['limit_share']:g} % of it", f"{100 * share:.3f} %", share <= f["limit_share"]
    title = f"{name}, {f['samples']:,} samples"
    return title, f"at most {f['limit']:g} x the core's", f"{f['ratio']:.2f} x", f["ratio"] <= f["limit"]


def table(figures):
    lines = ["| figure | tamis | product, epoch or core | authors' code | judged | limit |", "|---|--:|--:|--:|--:|--:|"]
    for name, f in figures.items():
        title, aim, found, _ = judge(name, f)
        authors = f"{f['authors_us']:.2f} us" if "authors_us" in f else ""
        if "update_us" in f:
            own, other = f"{f['update_us']:.2f} us", f"{f['product_us']:.2f} us"
        elif "epoch_ms" in f:
            own, other = f"{f['own_ms']:.2f} ms", f"{f['epoch_ms']:,.0f} ms"
            if "product_ms" in f:
                own += f", of which torch's products {f['product_ms']:.2f} ms"
        else:
            own, other = f"{f['python_ms']:.2f} ms", f"{f['core_ms']:.2f} ms"
        lines.append(f"| {title} | {own} | {other} | {authors} | {found} | {aim} |")
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
    is_within = all(judge(name, f)[-1] for name, f in figures.items())
    return 0 if is_within else 1


if __name__ == "__main__":
    sys.exit(main())
