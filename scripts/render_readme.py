#!/usr/bin/env python3
"""Writes the generated parts of the documentation from the result files.

With --check nothing is written, and the exit code is 1 if a part is not what the result files say.
"""

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import counts  # noqa: E402
import pages  # noqa: E402
import render_study  # noqa: E402
import render_tasks  # noqa: E402
import report  # noqa: E402


def newest(pattern):
    """The newest result file, by the date in its name."""
    paths = sorted((ROOT / "benchmarks" / "results").glob(pattern))
    return paths[-1] if paths else None


def performance(short):
    path = newest("core-*.json")
    if path is None:
        return None
    result = json.loads(path.read_text())
    table = report.short_table(result) if short else report.table(result)
    command = '`make bench BENCH="--max-samples 100000000 --billion --save"`'
    return f"{table}\n\nMade by {command}, [{path.name}](/benchmarks/results/{path.name})."


def counted():
    if not counts.RESULT.exists():
        return None
    result = json.loads(counts.RESULT.read_text())
    base = f" --base {result['base']}" if result["base"] else ""
    return f"{counts.table(result)} Made by `benchmarks/counts.py{base} --save`."


def study():
    tables = render_study.short_table()
    if not tables:
        return None
    return (
        f"{tables}\n\nDifference: in points, paired by seed, with its 95 % interval; bold where the seeds support it. "
        "Made by `make study`; more, with the plots, in [docs/study.md](docs/study.md)."
    )


def tasks():
    table = render_tasks.short_table()
    if table is None:
        return None
    return (
        f"{table}\n\nSmall models and short runs, three seeds; all but `full` train on 70 % of what it trains on. Frechet "
        "distances are on the features of a small classifier, not the FID. Made by `make tasks`; more in "
        "[docs/tasks.md](docs/tasks.md)."
    )


# File, part, function that makes it (None: there is no result yet).
PARTS = [
    ("README.md", "study", study),
    ("README.md", "tasks", tasks),
    ("README.md", "performance", lambda: performance(short=True)),
    ("docs/performance.md", "performance", lambda: performance(short=False)),
    ("docs/performance.md", "counts", counted),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether everything is up to date")
    check = parser.parse_args().check
    texts = {}
    for file, name, make in PARTS:
        content = make()
        if content is not None:
            path = ROOT / file
            texts[path] = pages.with_part(texts.get(path) or path.read_text(), name, content)
    pages.publish(texts, check)


if __name__ == "__main__":
    main()
