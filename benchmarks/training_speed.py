#!/usr/bin/env python3
"""Measures `tamis train` in every precision and memory layout, in turn: images per second of processor time.

Usage: training_speed.py TAMIS [--repeats N] [--epochs N] [train options...]; the options must not name --epochs, --out,
--precision or --channels-last. Writes benchmarks/results/training-speed.json. Every command runs twice, with 1 and with N + 1
epochs: the difference leaves out loading and warming up. Processor time is disturbed less by other work on the machine than
duration; the fastest of the repeats counts. One thread unless the options say otherwise.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHOICES = [("float32", "off"), ("float32", "on"), ("bfloat16", "off"), ("bfloat16", "on")]


def used():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def train(tamis, options, epochs, folder):
    """Processor time of the command; the settings of the run."""
    before = used()
    command = [tamis, "train", "--quiet", "--overwrite", "--method", "full", *options, "--epochs", str(epochs), "--out", folder]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return used() - before, json.loads((folder / "config.json").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tamis")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    arguments, options = parser.parse_known_args()
    given = ["--threads", "1", "--test-limit", "100", *options]
    speeds = {choice: [] for choice in CHOICES}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "run"
        for _ in range(arguments.repeats):
            for choice in CHOICES:
                chosen = [*given, "--precision", choice[0], "--channels-last", choice[1]]
                short, _ = train(arguments.tamis, chosen, 1, folder)
                long, config = train(arguments.tamis, chosen, 1 + arguments.epochs, folder)
                speeds[choice].append(arguments.epochs * config["data"]["num_train"] / (long - short))
                print(f"{choice[0]}, channels last {choice[1]}: {speeds[choice][-1]:.0f} images/s", file=sys.stderr)
    first = max(speeds[CHOICES[0]])
    result = {
        "command": f"`benchmarks/training_speed.py build/bin/tamis --repeats {arguments.repeats} --epochs {arguments.epochs} "
        f"{' '.join(options)}`".replace(" `", "`"),
        "environment": config["environment"],
        "model": config["model"],
        "rows": [
            {
                "precision": precision,
                "channels_last": layout == "on",
                "images_per_second": round(max(values)),
                "all": [round(value) for value in values],
                "relative": round(max(values) / first, 2),
            }
            for (precision, layout), values in speeds.items()
        ],
    }
    path = ROOT / "benchmarks" / "results" / "training-speed.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
