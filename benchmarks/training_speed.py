#!/usr/bin/env python3
"""Measures `tamis train` in every precision and memory layout, with one thread and with two, in turn: images per second by the
clock and per second of processor time.

Usage: training_speed.py TAMIS [--repeats N] [--epochs N] [train options...]; the options must not name --epochs, --out,
--precision, --channels-last or --threads. Writes benchmarks/results/training-speed.json. Every command runs twice, with 1 and with
N + 1 epochs: the difference leaves out loading and warming up. Processor time is disturbed less by other work on the machine than
the clock; the fastest of the repeats counts.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHOICES = [(threads, precision, layout) for threads in (1, 2) for precision in ("float32", "bfloat16") for layout in ("off", "on")]


def used():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def train(tamis, options, epochs, folder):
    """Duration and processor time of the command; the settings of the run."""
    before, start = used(), time.monotonic()
    command = [tamis, "train", "--quiet", "--overwrite", "--method", "full", *options, "--epochs", str(epochs), "--out", folder]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - start, used() - before, json.loads((folder / "config.json").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tamis")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    arguments, options = parser.parse_known_args()
    given = ["--test-limit", "100", *options]
    by_clock: dict = {choice: [] for choice in CHOICES}
    by_processor: dict = {choice: [] for choice in CHOICES}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "run"
        for _ in range(arguments.repeats):
            for threads, precision, layout in CHOICES:
                chosen = [*given, "--threads", str(threads), "--precision", precision, "--channels-last", layout]
                *short, _ = train(arguments.tamis, chosen, 1, folder)
                *long, config = train(arguments.tamis, chosen, 1 + arguments.epochs, folder)
                images = arguments.epochs * config["data"]["num_train"]
                for speeds, before, after in zip((by_clock, by_processor), short, long):
                    speeds[threads, precision, layout].append(round(images / (after - before)))
                print(
                    f"{threads} threads, {precision}, channels last {layout}: {by_clock[threads, precision, layout][-1]} images/s,"
                    f" {by_processor[threads, precision, layout][-1]} per processor second",
                    file=sys.stderr,
                )
    result = {
        "command": f"`benchmarks/training_speed.py build/bin/tamis --repeats {arguments.repeats} --epochs {arguments.epochs} "
        f"{' '.join(options)}`".replace(" `", "`"),
        "environment": config["environment"],
        "model": config["model"],
        "rows": [
            {
                "threads": choice[0],
                "precision": choice[1],
                "channels_last": choice[2] == "on",
                "images_per_second": max(by_clock[choice]),
                "images_per_processor_second": max(by_processor[choice]),
                "all_by_clock": by_clock[choice],
                "all_by_processor": by_processor[choice],
            }
            for choice in CHOICES
        ],
    }
    path = ROOT / "benchmarks" / "results" / "training-speed.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
