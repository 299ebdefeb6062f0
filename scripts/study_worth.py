#!/usr/bin/env python3
"""Makes the comparisons behind docs/worth.md, one after the other; stopped and started again it goes on where it stopped.

Usage: scripts/study_worth.py PROGRAM [--out FOLDER] [--parts NAME...] [--list] [FLAG...]; further flags go to every comparison.
All parts together take days on two cores: --list says how many samples each one trains on. After each part the result goes to
benchmarks/results/worth-NAME.json.
"""

import argparse
import json
import pathlib
import subprocess
import sys

import render_study
import worth_parts

RESULTS = pathlib.Path(__file__).resolve().parent.parent / "benchmarks" / "results"


def finished_runs(folder):
    """(samples, seconds) of the runs in a comparison's folder that are finished."""
    runs = []
    for config in folder.glob("*/config.json"):
        metrics = config.parent / "metrics.jsonl"
        epochs = [json.loads(line) for line in metrics.read_text().splitlines()] if metrics.exists() else []
        if len(epochs) == json.loads(config.read_text())["epochs"]:
            seconds = sum(epoch["train_seconds"] + epoch.get("test_seconds", 0) for epoch in epochs)
            runs.append((sum(epoch["samples"] for epoch in epochs), seconds))
    return runs


def seconds_left(parts, out):
    """By the speed of the runs that each part has already; None as long as one has none."""
    left = 0.0
    for part in parts:
        runs = finished_runs(out / part.name)
        total = part.num_rows() * part.seeds
        if len(runs) >= total:
            continue
        if not runs:
            return None
        samples, seconds = (sum(values) for values in zip(*runs))
        left += max(0, part.num_samples() - samples) * seconds / samples
    return left


def describe_time(seconds):
    if seconds is None:
        return "the time left shows once every part has a finished run"
    return f"about {seconds / 3600:.1f} hours left" if seconds > 5400 else f"about {seconds / 60:.0f} minutes left"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the program tamis")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/worth"), help="where the comparisons go")
    parser.add_argument("--parts", nargs="+", choices=list(worth_parts.PARTS), default=list(worth_parts.PARTS), metavar="NAME")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="where the result files go")
    parser.add_argument("--list", action="store_true", help="only list the parts")
    arguments, flags = parser.parse_known_args()
    parts = [worth_parts.PARTS[name] for name in arguments.parts]
    if arguments.list:
        for part in parts:
            millions = part.num_samples() / 1e6
            print(f"{part.name:<12} {part.num_rows() * part.seeds:>4} runs  {millions:>7.1f} million samples  {part.title}")
        return
    for number, part in enumerate(parts, 1):
        done, total = len(finished_runs(arguments.out / part.name)), part.num_rows() * part.seeds
        left = describe_time(seconds_left(parts, arguments.out))
        print(f"== [{number}/{len(parts)}] {part.name}: {done} of {total} runs done; {left}", flush=True)
        command = [arguments.program, "compare", "--out", str(arguments.out / part.name), *part.flags(), *flags]
        code = subprocess.run(command).returncode
        if code != 0:
            sys.exit(code)
        render_study.collect_one(
            arguments.out / part.name, arguments.results / f"worth-{part.name}.json", f"scripts/study_worth.py --parts {part.name}"
        )
    print("study: render the page with scripts/render_worth.py")


if __name__ == "__main__":
    main()
