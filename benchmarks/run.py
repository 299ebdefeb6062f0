#!/usr/bin/env python3
"""Measures tamis's core against its floors and against plain Python, and prints one table of ratios.

Everything is measured in one run on one core, on the same scores; the ratios, not the times, are the
result, because times differ from machine to machine and from hour to hour.

  make bench                                   N up to 10,000,000, about six minutes
  make bench BENCH="--max-samples 1000000"     a table in about a minute
  make bench BENCH="--max-samples 100000000 --billion --save"   the whole table, and keep it in benchmarks/results
  make bench BENCH="--only parts memory --save"   some sections; --save puts them into today's result of the same commit

Every result is in build/bench.json. A machine that others use is waited for, and what they disturbed is measured again; a
result that was disturbed nevertheless says so and is not kept in benchmarks/results. Ratios more than 10 % worse than in the
newest result that is committed are shown in red.
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


class Quietly:
    """Measures, and again what others disturbed. Keeps by how many cores they disturbed it at the worst."""

    def __init__(self):
        self.others = 0.0

    def __call__(self, name, function, *arguments):
        """All that the function returned, the least disturbed first."""
        results, others = quiet.measure(name, functools.partial(function, *arguments))
        self.others = max(self.others, others)
        return results


def fastest(results):
    """{name: {"seconds": least, ...}} of such results."""
    least = {}
    for result in results:
        for name, values in result.items():
            if name not in least or values["seconds"] < least[name]["seconds"]:
                least[name] = values
    return least


def run_core(quietly, args, scores_path, folder, max_samples):
    """Runs core_bench, the benchmarks of a part in random order; {name: {"seconds": least, ...}}."""
    measured = {}
    for part in [args.filter] if args.filter else PARTS:
        os.sync()
        measured.update(fastest(quietly(f"core_bench {part}", run_part, args, part, scores_path, folder, max_samples)))
    return measured


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


def run_peers(quietly, args, scores, folder, sizes):
    """The peers, under the same kind of names."""
    measured = {}
    for n in sizes:
        measured.update(fastest(quietly(f"plain Python, N = {n:.0e}", peers_of_size, args, scores[:n], folder)))
    return measured


def peers_of_size(args, scores, folder):
    import python_job as job

    peers, n = {}, len(scores)
    for batch in (32, 128, 1024):
        peers[f"python_update/{batch}/{n}"] = job.update_seconds(n, batch)
    repeats = 3 if n <= 10_000_000 else 1
    peers[f"torch_randperm/{n}"] = job.randperm_seconds(n, repeats)
    if n <= args.max_python_samples:
        peers[f"python_plan/infobatch/{n}"] = job.seconds(functools.partial(job.infobatch_plan, scores), repeats)
        peers[f"torch_plan/infobatch/{n}"] = job.seconds(functools.partial(job.torch_infobatch_plan, scores), repeats)
    if n <= min(args.max_python_samples, 1_000_000):
        peers[f"python_plan/seta/{n}"] = job.seconds(functools.partial(job.seta_plan, scores), 1)
    saved, loaded = job.torch_state_seconds(scores, os.path.join(folder, "torch.pt"), repeats)
    peers[f"torch_save/{n}"], peers[f"torch_load/{n}"] = saved, loaded
    return {name: {"seconds": value} for name, value in peers.items()}


def run_parts(quietly, args, folder, max_samples):
    """The parts of a plan by themselves: {name: least seconds}."""
    program = ROOT / args.build / "bin" / "parts_bench"
    results = quietly("parts_bench", measure.core_bench, program, folder, max_samples, ".", args.repetitions, args.min_time)
    names = results[0].keys()
    return {name: min(entry["seconds"] for result in results for entry in result[name]) for name in names}


def run_memory(quietly, args, folder, sizes):
    """Memory per sample, and what a run in it takes; at the largest size also with all cores."""
    cores = args.all_cores
    runs = [(n, [args.core]) for n in sizes] + ([(sizes[-1], sorted(cores))] if len(cores) > 1 else [])
    return [quietly(f"memory_bench {policy}, N = {n:.0e}", memory_of, args, folder, n, policy, allowed)[0]
            for n, allowed in runs for policy in ("infobatch", "seta")]


def memory_of(args, folder, num_samples, policy, cores):
    program = str(ROOT / args.build / "bin" / "memory_bench")
    command = ["taskset", "--cpu-list", ",".join(map(str, cores)), program, str(num_samples), policy, folder, str(len(cores))]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def run_package(quietly, args, folder, script):
    """The figures of a script in benchmarks/python, if the package was built."""
    if not (ROOT / args.build / "python" / "tamis").exists():
        return {}
    return quietly(script, figures_of, args, folder, script)[0]


def figures_of(args, folder, script):
    path = pathlib.Path(folder) / "package.json"
    path.unlink(missing_ok=True)
    command = [sys.executable, str(ROOT / "benchmarks" / "python" / script), "--build", args.build,
               "--core", str(args.core), "--json", str(path)]
    # Its exit code says whether the limits hold; the table shows it.
    done = subprocess.run(command, stdout=subprocess.DEVNULL)
    if not path.exists():
        sys.exit(f"{script} failed with exit code {done.returncode}")
    return json.loads(path.read_text())["figures"]


def newest_committed(machine):
    """The newest result of such a machine in benchmarks/results, as the commit that is checked out has it; None if there is none.

    Ratios of other processors differ by more than what a change of the code does: how fast they copy is one side of most.
    """
    git = lambda *command: subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True,  # noqa: E731
                                          text=True).stdout
    names = [name for name in git("ls-tree", "--name-only", "HEAD", "benchmarks/results/").split() if "/core-" in name]
    found = (json.loads(git("show", f"HEAD:{name}")) for name in sorted(names, reverse=True))
    return next((result for result in found if result["machine"] == machine), None)


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
    quiet.wait()
    measured, quietly = {}, Quietly()
    with tempfile.TemporaryDirectory(dir=ROOT / args.build) as folder:
        if "package" in args.only:
            print("measuring the Python package ...", flush=True)
            result["package"] = run_package(quietly, args, folder, "overhead.py")
            result["watching"] = run_package(quietly, args, folder, "watching.py")
        if "core" in args.only or "peers" in args.only:
            scores = make_scores(sizes[-1])
            scores_path = pathlib.Path(folder) / "scores.f32"
            scores.tofile(scores_path)
            os.sync()
        if "core" in args.only:
            print(f"measuring the core up to N = {sizes[-1]:,} ...", flush=True)
            measured = run_core(quietly, args, scores_path, folder, sizes[-1])
        if "peers" in args.only:
            print("measuring plain Python ...", flush=True)
            measured.update(run_peers(quietly, args, scores, folder, sizes))
        if "parts" in args.only:
            print("measuring the parts of a plan ...", flush=True)
            result["parts"] = run_parts(quietly, args, folder, min(sizes[-1], 10**7))
        if "memory" in args.only:
            print("measuring memory ...", flush=True)
            result["memory"] = run_memory(quietly, args, folder, sizes + ([10**9] if args.billion else []))
    result["others_used_cores"] = round(quietly.others, 2)
    result["measured"] = measured
    latest = ROOT / args.build / "bench.json"
    latest.write_text(json.dumps(result, indent=1) + "\n")
    print(report.table(result))
    committed = newest_committed(result["machine"])
    if committed is None:
        print("No result of such a processor is committed to compare with.")
    else:
        print(report.regressions(result, committed, color=sys.stdout.isatty()))
    print(f"all figures: {latest}")
    if args.save:
        keep(result, is_whole=args.only == SECTIONS)


def keep(result, is_whole):
    """Puts a result into benchmarks/results: some sections into today's."""
    if report.was_disturbed(result):
        sys.exit("not kept: others used the machine meanwhile; run it again on a quiet one")
    path = ROOT / "benchmarks" / "results" / f"core-{result['date'][:10]}.json"
    if not is_whole and path.exists():
        result = report.merged(json.loads(path.read_text()), result)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"kept in {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
