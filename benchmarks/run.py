#!/usr/bin/env python3
"""Measures tamis's core against its floors and against plain Python, and prints one table of ratios.

Everything is measured in one run on one core, on the same scores; the ratios, not the times, are the
result, because times differ from machine to machine and from hour to hour.

  make bench                                   N up to 10,000,000, about six minutes
  make bench BENCH="--max-samples 1000000"     a table in about a minute
  make bench BENCH="--max-samples 100000000 --billion --save"   the whole table, and keep it in benchmarks/results
"""

import argparse
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import report  # noqa: E402


# One process each: updates are the most sensitive, and files go on being written after their benchmark.
PARTS = ["^(update|random_writes)/", "-^(update|random_writes|floor_write|save|load)/", "^(floor_write|save|load)/"]


def run_core(args, scores_path, folder, max_samples):
    """Runs core_bench, the benchmarks of a part in random order; returns {name: {"seconds": least, ...}}."""
    measured = {}
    for part in [args.filter] if args.filter else PARTS:
        os.sync()
        measured.update(run_part(args, part, scores_path, folder, max_samples))
    return measured


def run_part(args, part, scores_path, folder, max_samples):
    result_path = pathlib.Path(folder) / "core.json"
    environment = dict(os.environ, TAMIS_BENCH_SCORES=str(scores_path), TAMIS_BENCH_DIR=folder,
                       TAMIS_BENCH_MAX_SAMPLES=str(max_samples))
    command = [str(ROOT / args.build / "bin" / "core_bench"), f"--benchmark_min_time={args.min_time}",
               f"--benchmark_repetitions={args.repetitions}",
               "--benchmark_enable_random_interleaving=true",
               "--benchmark_report_aggregates_only=false",
               f"--benchmark_out={result_path}", "--benchmark_out_format=json",
               f"--benchmark_filter={part}"]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    times, counters = {}, {}
    for entry in json.loads(result_path.read_text())["benchmarks"]:
        if entry["run_type"] != "iteration":
            continue
        name = entry["run_name"].replace("/real_time", "")
        times.setdefault(name, []).append(entry["real_time"] * units[entry["time_unit"]])
        if "bytes_per_sample" in entry:
            counters[name] = entry["bytes_per_sample"]
    return {name: {"seconds": min(values), "median_seconds": sorted(values)[len(values) // 2],
                   **({"bytes_per_sample": counters[name]} if name in counters else {})}
            for name, values in times.items()}


def run_python(args, scores, folder, sizes):
    """The peers, under the same kind of names."""
    import python_job as job

    peers = {}
    for n in sizes:
        part = scores[:n]
        for batch in (32, 128, 1024):
            peers[f"python_update/{batch}/{n}"] = job.update_seconds(n, batch)
        repeats = 3 if n <= 10_000_000 else 1
        peers[f"torch_randperm/{n}"] = job.randperm_seconds(n, repeats)
        if n <= args.max_python_samples:
            peers[f"python_plan/infobatch/{n}"] = job.seconds(functools.partial(job.infobatch_plan, part), repeats)
        if n <= min(args.max_python_samples, 1_000_000):
            peers[f"python_plan/seta/{n}"] = job.seconds(functools.partial(job.seta_plan, part), 1)
        saved, loaded = job.torch_state_seconds(part, os.path.join(folder, "torch.pt"), repeats)
        peers[f"torch_save/{n}"], peers[f"torch_load/{n}"] = saved, loaded
    return {name: {"seconds": value} for name, value in peers.items()}


def run_memory(args, sizes):
    program = str(ROOT / args.build / "bin" / "memory_bench")
    results = []
    for n in sizes:
        for policy in ("infobatch", "seta"):
            output = subprocess.run([program, str(n), policy], check=True, capture_output=True, text=True)
            results.append(json.loads(output.stdout))
    return results


def run_package(args, folder):
    """What the Python package costs on top of the core, if it was built."""
    if not (ROOT / args.build / "python" / "tamis").exists():
        return {}
    path = pathlib.Path(folder) / "package.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "python" / "overhead.py"), "--build", args.build,
               "--core", str(args.core), "--json", str(path)]
    # Its exit code says whether the limits hold; the table shows it.
    subprocess.run(command, stdout=subprocess.DEVNULL)
    return json.loads(path.read_text())["figures"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--max-samples", type=int, default=10_000_000, help="largest N: 1e6, 1e7 or 1e8")
    parser.add_argument("--max-python-samples", type=int, default=10_000_000,
                        help="largest N for the slow plans in Python")
    parser.add_argument("--repetitions", type=int, default=5, help="of every C++ measurement")
    parser.add_argument("--min-time", type=float, default=0.05, help="seconds of each repetition")
    parser.add_argument("--filter", help="regular expression over the C++ benchmarks (default: all)")
    parser.add_argument("--billion", action="store_true", help="also run N = 1e9 once (needs 12 GiB)")
    parser.add_argument("--build", default="build", help="build folder")
    parser.add_argument("--core", type=int, default=0, help="the core to run on")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    parser.add_argument("--render", metavar="RESULT", help="only print the table of a saved result")
    args = parser.parse_args()
    if args.render:
        print(report.table(json.loads(pathlib.Path(args.render).read_text())))
        return

    import numpy as np
    import torch

    torch.set_num_threads(1)
    os.sched_setaffinity(0, {args.core})
    sizes = [n for n in (10**6, 10**7, 10**8) if n <= args.max_samples]
    scores = np.random.default_rng(1).gamma(2.0, 1.0, sizes[-1]).astype(np.float32)
    with tempfile.TemporaryDirectory(dir=ROOT / args.build) as folder:
        scores_path = pathlib.Path(folder) / "scores.f32"
        scores.tofile(scores_path)
        os.sync()
        print("measuring the Python package ...", flush=True)
        package = run_package(args, folder)
        print(f"measuring the core up to N = {sizes[-1]:,} ...", flush=True)
        measured = run_core(args, scores_path, folder, sizes[-1])
        print("measuring plain Python ...", flush=True)
        measured.update(run_python(args, scores, folder, sizes))
    print("measuring memory ...", flush=True)
    memory_sizes = sizes + ([10**9] if args.billion else [])
    result = {**report.header(ROOT, args), "measured": measured, "memory": run_memory(args, memory_sizes),
              "package": package}
    print(report.table(result))
    if args.save:
        path = ROOT / "benchmarks" / "results" / f"core-{result['date'][:10]}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n")
        print(f"kept in {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
