#!/usr/bin/env python3
"""Compares the speed of two builds of the core: that of another commit and that of the working tree.

  make bench-compare BASE=<commit>

Builds core_bench of the commit in build/compare, runs both programs in turn, and prints the least time of each benchmark
and their ratio: processor time, so that other work on the machine disturbs less, but the real time of save, which waits.
Rows above the limit are measured again, on both sides, before they count. Exits with 1 if one stays above.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import measure  # noqa: E402

# One process each: updates are the most sensitive, and files go on being written after their benchmark.
PARTS = ["^update/", "^plan", "^(save|load)/"]


def build_base(commit):
    """The program core_bench of a commit, and the prefix of its settings: the project's name, which may be another one."""
    sha = subprocess.run(["git", "rev-parse", "--verify", f"{commit}^{{commit}}"], cwd=ROOT, check=True,
                         capture_output=True, text=True).stdout.strip()
    folder = ROOT / "build" / "compare" / sha[:12]
    source = folder / "source"
    if not source.exists():
        source.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", sha], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True)
    name = re.search(r"project\((\w+)", (source / "CMakeLists.txt").read_text())[1].upper()
    off = [f"-D{name}_{part}=OFF" for part in ("PROGRAM", "LIBTORCH", "REPORT", "PYTHON", "TESTS")]
    subprocess.run(["cmake", "-S", str(source), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    "-Wno-dev", f"-D{name}_BENCHMARKS=ON", *off], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(folder), "--target", "core_bench"], check=True, stdout=subprocess.DEVNULL)
    return next(path for path in folder.rglob("core_bench") if path.is_file() and os.access(path, os.X_OK)), name


def measure_both(programs, args, part, rounds, least):
    """Adds to least: {name: {"base": seconds, "here": seconds}}, the minimum over the rounds."""
    for k in range(rounds):
        for which in (("base", "here"), ("here", "base"))[k % 2]:
            program, prefix = programs[which]
            with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
                measured = measure.core_bench(program, folder, args.max_samples, part, 1, args.min_time, prefix=prefix)
            for name, entries in measured.items():
                clock = "seconds" if name.startswith("save/") else "processor_seconds"
                times = least.setdefault(name, {})
                times[which] = min([times.get(which, float("inf"))] + [entry[clock] for entry in entries])


def ratios(least):
    return {name: times["here"] / times["base"] for name, times in least.items() if len(times) == 2}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--build", default="build", help="build folder of the working tree")
    parser.add_argument("--max-samples", type=int, default=10_000_000, help="largest N: 1e6, 1e7 or 1e8")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each program, in turn")
    parser.add_argument("--again", type=int, default=10, help="more rounds for rows above the limit")
    parser.add_argument("--min-time", type=float, default=0.05, help="seconds of each measurement")
    parser.add_argument("--limit", type=float, default=1.05, help="highest ratio that passes")
    parser.add_argument("--filter", help="regular expression over the benchmarks (default: updates, plans, files)")
    args = parser.parse_args()
    programs = {"base": build_base(args.base), "here": (ROOT / args.build / "bin" / "core_bench", "TAMIS")}
    least = {}
    for part in [args.filter] if args.filter else PARTS:
        measure_both(programs, args, part, args.rounds, least)
    first = ratios(least)
    for name in [name for name, ratio in first.items() if ratio > args.limit]:
        measure_both(programs, args, f"^{name}(/|$)", args.again, least)
    last = ratios(least)
    print(f"| benchmark | {args.base[:12]} | here | ratio |\n|---|---:|---:|---:|")
    for name, ratio in last.items():
        again = f" ({first[name]:.2f} before it was repeated)" if first[name] > args.limit else ""
        print(f"| {name} | {least[name]['base']:.3g} s | {least[name]['here']:.3g} s | {ratio:.2f}{again} |")
    slower = [name for name, ratio in last.items() if ratio > args.limit]
    print(f"{len(slower)} of {len(last)} benchmarks above {args.limit:g} x")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
