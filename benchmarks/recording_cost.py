#!/usr/bin/env python3
"""Measures what `tamis train --record` costs: the same run with and without it, in turn.

Usage: recording_cost.py TAMIS [--repeats N] [train options...]; the options must not have --record or --out. Writes
benchmarks/results/recording-cost.json. Times are processor time of the whole command, which other work on the machine
disturbs less than its duration; the least of the repeats counts.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def used():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def train(tamis, options, folder):
    before = used()
    subprocess.run([tamis, "train", "--quiet", *options, "--out", folder], check=True, stdout=subprocess.DEVNULL)
    return used() - before


def size_of(folder):
    return sum(path.stat().st_size for path in folder.iterdir())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tamis")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--record", default="10000", help="samples to record")
    arguments, options = parser.parse_known_args()
    plain, recorded = [], []
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        for k in range(arguments.repeats):
            plain.append(train(arguments.tamis, options, scratch / f"plain{k}"))
            recorded.append(train(arguments.tamis, [*options, "--record", arguments.record], scratch / f"recorded{k}"))
            print(f"{plain[-1]:.2f} s without, {recorded[-1]:.2f} s with", file=sys.stderr)
        config = json.loads((scratch / "recorded0" / "config.json").read_text())
        size = size_of(scratch / "recorded0" / "record")
    training = config["training"]
    result = {
        "command": f"`benchmarks/recording_cost.py build/bin/tamis --repeats {arguments.repeats} "
        f"--record {arguments.record} {' '.join(options)}`",
        "note": "processor time of the whole command, the least of the repeats, with and without in turn",
        "environment": config["environment"],
        "rows": [
            {
                "what": f"{config['data']['num_train']:,} samples, {config['epochs']} epochs, "
                f"B={training['batch_size']}, {int(arguments.record):,} recorded",
                "seconds_plain": min(plain),
                "seconds_recorded": min(recorded),
                "all_plain": plain,
                "all_recorded": recorded,
                "megabytes": size / 1e6,
            }
        ],
    }
    path = ROOT / "benchmarks" / "results" / "recording-cost.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
