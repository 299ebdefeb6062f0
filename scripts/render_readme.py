#!/usr/bin/env python3
"""Writes the generated parts of the documentation from the result files.

With --check nothing is written, and the exit code is 1 if a part is not what the result files say.
"""

import argparse
import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "python")]

import counts  # noqa: E402
import detection  # noqa: E402
import pages  # noqa: E402
import render_study  # noqa: E402
import render_tasks  # noqa: E402
import report  # noqa: E402
import results  # noqa: E402
import suspects  # noqa: E402
import watching  # noqa: E402


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
    table, measured = render_tasks.short_table(), render_tasks.load()
    if table is None:
        return None
    return (
        f"{table}\n\n{len(measured)} of {len(render_tasks.task_list.TASKS)}. Small models and short runs, three seeds; all but "
        f"`full` train on 70 % of what it trains on, as far as they can. {render_tasks.finding(measured)} In so short a "
        "run this budget is hard on InfoBatch: it drops up to 90 % of the samples below the mean, where its default is 50 %. "
        "Frechet "
        "distances are on the features of a small classifier, not the FID. Made by `make tasks`; more in "
        "[docs/tasks.md](docs/tasks.md)."
    )


def measured(name, make):
    """A part of the page on watched outputs, with what made it; None without a result."""
    path = ROOT / "benchmarks" / "results" / f"{name}.json"
    if not path.exists():
        return None
    result = json.loads(path.read_text())
    source = f"[{path.name}](/benchmarks/results/{path.name})"
    return f"{make(result)}\n\nMade by `benchmarks/python/{name}.py --json FILE`, {source}; {results.line(result)}"


# What is measured, options, task of fidelity.py, what it watches, power or rule, the loss it is compared with.
FIDELITY = [
    ("classification (small CNN)", "`cross_entropy=1`", "cnn", "logits", "cross-entropy", "cross-entropy"),
    ("the same", "power 1, the default", "cnn", "logits", 1, "cross-entropy"),
    ("squared error: denoising (DDPM) at a fixed time step", "`power=2`", "ddpm", "output", 2, "squared error"),
    ("VAE, its decoder watched: squared error", "`power=2`", "vae", "reconstruction", 2, "squared error"),
    ("VAE, the model watched: squared error + KL", "`power=2`", "vae", "all outputs", 2, "squared error + KL"),
    ("language model, blocks of one length", "`power=2`", "gpt-blocks", "logits", 2, "mean of its tokens"),
    ("the same at the input of the head", '`at="input"`, `power=2`', "gpt-blocks", "input", 2, "mean of its tokens"),
    ("padded lines, mean over all tokens of the batch; summed loss of the line", "`power=2`", "gpt-tokens", "logits", 2,
     "sum of its tokens"),
    ("padded lines, mean over the tokens of each line", "`per_token=True`, `power=2`", "gpt-lines", "logits, per token", 2,
     "mean of its tokens"),
    ("the same without `per_token`", "`power=2`", "gpt-lines", "logits", 2, "mean of its tokens"),
]


def fidelity_table(result):
    rows = []
    for title, options, task, watched, rule, loss in (row for row in FIDELITY if row[2] in result["tasks"]):
        cells = []
        for what, when in ((watched, "same pass"), (watched, "at the end"), ("the loss itself, same pass", "at the end")):
            found = [row["spearman"] for row in result["tasks"][task] if row["watched"] == what
                     and row["rule"] in (rule, None) and (row["loss"], row["when"]) == (loss, when)]
            cells.append(f"{statistics.mean(found):.3f} [{min(found):.3f}, {max(found):.3f}]")
        rows.append([title, options, *cells])
    header = ["loss", "options", "with the loss in the same pass", "at the end of training", "ceiling"]
    seeds = len(result["seeds"])
    return pages.table(header, rows) + (
        f"\n\nSpearman's rank correlation, {result['samples']:,} samples, 3 epochs, means of {seeds} seeds with the least and the "
        "greatest; *ceiling* is what the loss itself, taken in the same pass, has with the loss at the end.")


# File, part, function that makes it (None: there is no result yet).
PARTS = [
    ("README.md", "study", study),
    ("README.md", "tasks", tasks),
    ("README.md", "performance", lambda: performance(short=True)),
    ("docs/performance.md", "performance", lambda: performance(short=False)),
    ("docs/performance.md", "counts", counted),
    ("docs/watching_outputs.md", "fidelity", lambda: measured("fidelity", fidelity_table)),
    ("docs/watching_outputs.md", "detection", lambda: measured("detection", detection.table)),
    ("docs/watching_outputs.md", "suspects", lambda: measured("suspects", suspects.table)),
    ("docs/watching_outputs.md", "cost", lambda: measured("watching", watching.table)),
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
