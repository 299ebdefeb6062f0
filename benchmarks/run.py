#!/usr/bin/env python3
"""Measures tamis's core against its floors and against plain Python, and prints one table of ratios.

Everything is measured in one run on one core, on the same scores; the ratios, not the times, are the
result, because times differ from machine to machine and from hour to hour.

  make bench                                   N up to 10,000,000, about six minutes
  make bench BENCH="--max-samples 1000000"     a table in about a minute
  make bench BENCH="--max-samples 100000000 --billion --save"   the whole table, and keep it in benchmarks/results
  make bench BENCH="--only parts memory --save"   some sections; --save puts them into today's result of the same commit

A machine that others use is waited for, and what they disturbed is measured again; a result that was disturbed
nevertheless says so and is not kept. Ratios more than 10 % worse than those of the newest kept result are shown in red.
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

import measure  # noqa: E402
import quiet  # noqa: E402
import report  # noqa: E402


# One process each: updates are the most sensitive, and files go on being written after their benchmark.
PARTS = ["^(update|random_writes)/", "-^(update|random_writes|floor_write|save|load|threads)/", "^(floor_write|save|load)/",
         "^threads/"]
SECTIONS = ["core", "parts", "peers", "package", "memory"]


def run_core(args, scores_path, folder, max_samples):
    """Runs core_bench, the benchmarks of a part in random order, a part again if others disturbed it.

    Returns {name: {"seconds": least, ...}} and the cores that others used at the worst.
    """
    measured, disturbance = {}, 0.0
    for part in [args.filter] if args.filter else PARTS:
        os.sync()
        results, others = quiet.measure(
            f"core_bench {part}", functools.partial(run_part, args, part, scores_path, folder, max_samples))
        disturbance = max(disturbance, others)
        for result in results:
            for name, values in result.items():
                if name not in measured or values["seconds"] < measured[name]["seconds"]:
                    measured[name] = values
    return measured, disturbance


def run_part(args, part, scores_path, folder, max_samples):
    program = ROOT / args.build / "bin" / "core_bench"
    result = {}
    cores = args.all_cores if part.startswith("^threads") else None
    for name, entries in measure.core_bench(program, folder, max_samples, part, args.repetitions, args.min_time,
                                            scores_path, cores=cores).items():
        times = sorted(entry["seconds"] for entry in entries)
        result[name] = {"seconds": times[0], "median_seconds": times[len(times) // 2]}
        if "bytes_per_sample" in entries[-1]:
            result[name]["bytes_per_sample"] = entries[-1]["bytes_per_sample"]
    return result


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
            peers[f"torch_plan/infobatch/{n}"] = job.seconds(functools.partial(job.torch_infobatch_plan, part), repeats)
        if n <= min(args.max_python_samples, 1_000_000):
            peers[f"python_plan/seta/{n}"] = job.seconds(functools.partial(job.seta_plan, part), 1)
        saved, loaded = job.torch_state_seconds(part, os.path.join(folder, "torch.pt"), repeats)
        peers[f"torch_save/{n}"], peers[f"torch_load/{n}"] = saved, loaded
    return {name: {"seconds": value} for name, value in peers.items()}


def run_parts(args, folder, max_samples):
    """The parts of a plan by themselves: {name: least seconds}."""
    program = ROOT / args.build / "bin" / "parts_bench"
    results, _ = quiet.measure("parts_bench", lambda: measure.core_bench(
        program, folder, max_samples, ".", args.repetitions, args.min_time))
    names = results[0].keys()
    return {name: min(entry["seconds"] for result in results for entry in result[name]) for name in names}


def run_memory(args, folder, sizes):
    """Memory per sample, and what a run in it takes; with all cores at the largest size."""
    program = str(ROOT / args.build / "bin" / "memory_bench")
    results = []
    for n in sizes:
        for policy in ("infobatch", "seta"):
            output = subprocess.run([program, str(n), policy, folder], check=True, capture_output=True, text=True)
            results.append(json.loads(output.stdout))
    return results


def run_package(args, folder, script):
    """The figures of a script in benchmarks/python, if the package was built."""
    if not (ROOT / args.build / "python" / "tamis").exists():
        return {}
    path = pathlib.Path(folder) / "package.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "python" / script), "--build", args.build,
               "--core", str(args.core), "--json", str(path)]
    # Its exit code says whether the limits hold; the table shows it.
    subprocess.run(command, stdout=subprocess.DEVNULL)
    return json.loads(path.read_text())["figures"]


def newest_committed(before=None):
    """The newest result in benchmarks/results, or None; older than the file `before`."""
    paths = sorted((ROOT / "benchmarks" / "results").glob("core-*.json"))
    paths = [path for path in paths if before is None or path < before]
    return json.loads(paths[-1].read_text()) if paths else None


def make_scores(count):
    import numpy as np
    import torch

    torch.set_num_threads(1)
    return np.random.default_rng(1).gamma(2.0, 1.0, count).astype(np.float32)


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
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS, metavar="SECTION",
                        help="what to measure: " + ", ".join(SECTIONS) + " (default: all)")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    parser.add_argument("--render", metavar="RESULT", help="only print the table of a saved result")
    args = parser.parse_args()
    if args.render:
        print(report.table(json.loads(pathlib.Path(args.render).read_text())))
        return

    args.all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {args.core})
    sizes = [n for n in (10**6, 10**7, 10**8) if n <= args.max_samples]
    result = report.header(args)
    measured, others = {}, quiet.wait()
    with tempfile.TemporaryDirectory(dir=ROOT / args.build) as folder:
        if "package" in args.only:
            print("measuring the Python package ...", flush=True)
            result["package"] = run_package(args, folder, "overhead.py")
            result["watching"] = run_package(args, folder, "watching.py")
        if "core" in args.only or "peers" in args.only:
            scores = make_scores(sizes[-1])
            scores_path = pathlib.Path(folder) / "scores.f32"
            scores.tofile(scores_path)
            os.sync()
        if "core" in args.only:
            print(f"measuring the core up to N = {sizes[-1]:,} ...", flush=True)
            measured, disturbance = run_core(args, scores_path, folder, sizes[-1])
            others = max(others, disturbance)
        if "peers" in args.only:
            print("measuring plain Python ...", flush=True)
            measured.update(run_python(args, scores, folder, sizes))
        if "parts" in args.only:
            print("measuring the parts of a plan ...", flush=True)
            result["parts"] = run_parts(args, folder, min(sizes[-1], 10**7))
        if "memory" in args.only:
            print("measuring memory ...", flush=True)
            result["memory"] = run_memory(args, folder, sizes + ([10**9] if args.billion else []))
    result["others_used_cores"] = round(others, 2)
    result["measured"] = measured
    path = ROOT / "benchmarks" / "results" / f"core-{result['date'][:10]}.json"
    committed = newest_committed(before=path)
    if args.only != SECTIONS and path.exists():
        result = report.merged(json.loads(path.read_text()), result)
    print(report.table(result))
    if committed is not None and measured:
        print(report.regressions(result, committed, color=sys.stdout.isatty()))
    if args.save and report.was_disturbed(result):
        sys.exit("not kept: others used the machine meanwhile; run it again on a quiet one")
    if args.save:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n")
        print(f"kept in {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
