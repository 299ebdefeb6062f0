#!/usr/bin/env python3
"""Instructions and cache misses of one update and of one plan, counted by valgrind's callgrind.

Counters of the processor are missing on most virtual machines, and times depend on the neighbours; these numbers do not.
The caches are simulated: 32 KiB at the first level, 512 KiB at the second, 8 ways, 64 bytes a line.

  benchmarks/counts.py --base <commit>    also those of another commit, which is built for it; --save keeps them in
                                          benchmarks/results, from where they come into docs/performance.md
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import compare

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "python"))

import results  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "counts.json"
CACHES = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=524288,8,64"]
OBSERVE = "tamis::Pruner::observe(unsigned long, unsigned long, double)"
PLAN = "tamis::Pruner::start_epoch(unsigned long)"
# Operation: benchmark, function that is counted, how often the program calls it if it measures once.
OPERATIONS = {
    "update of 128 samples": ("update/batch-loss/128/1000000", OBSERVE, 1),
    "InfoBatch plan": ("plan/infobatch/1000000", PLAN, 2),
    "SeTa plan, 10 groups": ("plan/seta/1000000", PLAN, 2),
    "random plan": ("plan/random-dynamic/1000000", PLAN, 2),
}


def count_one(program, benchmark, function, num_calls, folder):
    output = pathlib.Path(folder) / "callgrind.out"
    command = ["valgrind", "--tool=callgrind", *CACHES, f"--toggle-collect={function}", f"--callgrind-out-file={output}",
               str(program), f"--benchmark_filter=^{benchmark}", "--benchmark_min_time=0"]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, TAMIS_BENCH_MAX_SAMPLES="1000000"))
    if done.returncode != 0:
        sys.exit(f"counts.py: {' '.join(command)} failed:\n{done.stderr}")
    text = output.read_text()
    events = re.search(r"^events: (.*)$", text, re.MULTILINE)[1].split()
    totals = dict(zip(events, map(int, re.search(r"^(?:totals|summary): (.*)$", text, re.MULTILINE)[1].split())))
    return {"instructions": totals["Ir"] // num_calls,
            "first_level_misses": (totals["D1mr"] + totals["D1mw"]) // num_calls,
            "second_level_misses": (totals["DLmr"] + totals["DLmw"]) // num_calls}


def count(program, base=None):
    """A result: {operation: {"here": counts, "base": those of the commit}}, and the commit."""
    programs = {"here": program}
    if base is not None:
        programs["base"], _ = compare.build_base(base)
    with tempfile.TemporaryDirectory() as folder:
        counted = {operation: {which: count_one(path, *task, folder) for which, path in programs.items()}
                   for operation, task in OPERATIONS.items()}
    return {**results.header(), "base": base, "operations": counted}


def table(counts):
    base = counts["base"]
    names = (["base"] if base else []) + ["here"]
    titles = {"base": f"at {base[:7]}" if base else "", "here": "now"}
    kinds = {"instructions": "instructions", "first_level_misses": "misses of the first level",
             "second_level_misses": "of the second"}
    lines = ["| " + " | ".join(["one operation, N = 1e+06"] + [f"{kind}, {titles[which]}" for kind in kinds.values()
                                                              for which in names]) + " |",
             "|---|" + "--:|" * (len(kinds) * len(names))]
    for operation, counted in counts["operations"].items():
        cells = [f"{counted[which][kind]:,}" for kind in kinds for which in names]
        lines.append(f"| {operation} | " + " | ".join(cells) + " |")
    return "\n".join(lines + ["", f"Counted by callgrind with simulated caches of 32 and 512 KiB: {results.line(counts)}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--base", help="commit to compare with")
    parser.add_argument("--build", default="build", help="build folder of the working tree")
    parser.add_argument("--save", action="store_true", help="keep the result")
    args = parser.parse_args()
    counted = count(ROOT / args.build / "bin" / "core_bench", args.base)
    print(table(counted))
    if args.save:
        results.write(RESULT, counted)


if __name__ == "__main__":
    main()
