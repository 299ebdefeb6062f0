#!/usr/bin/env python3
"""Writes docs/worth.md from benchmarks/results/worth-*.json, the results of scripts/study_worth.py.

With --check nothing is written, and the exit code is 1 if the page is not what the result files say.
"""

import argparse
import json
import pathlib

import pages
import render_study
import worth_parts

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
ANSWERS = (ROOT / "docs" / "worth_answers.md").read_text()


def is_judged(row):
    return all(one["difference"]["num_pairs"] >= 3 for one in row["equal_budget"])


def unbeaten(row):
    """The rows that only train on fewer samples and that this one is not shown to be better than."""
    return [
        one["baseline"] for one in row["equal_budget"] if not one["difference"]["supported"] or one["difference"]["mean"] <= 0
    ]


def budget_cell(row):
    if "equal_budget" not in row:
        return "-"
    if not is_judged(row):
        return "not judged"
    left = unbeaten(row)
    if len(left) == len(row["equal_budget"]):
        return "no"
    return f"all but {', '.join(left)}" if left else "**yes**"


def duration(seconds):
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def reach_cell(row, baseline):
    reach = row.get("reach")
    if reach is None:
        return "-"
    if reach["num_reached"] == 0:
        return "never"
    some = f" ({reach['num_reached']} of {row['num_seeds']} seeds)" if reach["num_reached"] < row["num_seeds"] else ""
    if row["method"] == baseline or reach["share_of_baseline"] is None:
        return f"{duration(reach['seconds'])}{some}"
    return f"{render_study.percent(reach['share_of_baseline'], 0)}{some}"


def table(result):
    summary = result["summary"]
    baseline = summary["baseline"]
    header = ["method", "accuracy", f"difference to {baseline}", "beats equal budget", "pruned", "saved", "of its time scoring"]
    if "reach" in summary:
        header.append(f"to {100 * summary['reach']:g} %")
    rows = []
    for row in summary["rows"]:
        cells = [
            row["method"],
            render_study.accuracy(row),
            render_study.difference(row),
            budget_cell(row),
            render_study.percent(row["pruned_share"]),
            pages.saved(row, 0),
            render_study.percent(row["score_seconds_mean"] / row["train_seconds_mean"], 0) if "score_seconds_mean" in row else "-",
        ]
        rows.append(cells + ([reach_cell(row, baseline)] if "reach" in summary else []))
    return pages.table(header, rows, numbers=True) + pages.saved_note(summary["rows"], baseline)


def finding(result):
    """How many methods are worth more than training on fewer samples."""
    rows = [row for row in result["summary"]["rows"] if "equal_budget" in row and is_judged(row)]
    winners = [row["method"] for row in rows if not unbeaten(row)]
    if not rows:
        return "No method is judged against an equal budget."
    if not winners:
        return f"None of {len(rows)} methods is shown to beat every row that only trains on fewer samples."
    return f"{len(winners)} of {len(rows)} methods beat every row that only trains on fewer samples: {', '.join(winners)}."


def section(part, result):
    lines = ["", f"## {part.title}", "", part.question, "", render_study.setup(result), ""]
    lines += [table(result), "", finding(result)]
    disturbed = sum(row.get("num_disturbed", 0) for row in result["summary"]["rows"])
    runs = sum(row["num_seeds"] for row in result["summary"]["rows"])
    if disturbed:
        lines += ["", f"{disturbed} of {runs} runs got less than 90 % of the processor, which others used too."]
    if left := [row for row in part.rows() if row not in result["compare"]["methods"]]:
        lines += ["", f"Not trained yet: {', '.join(f'`{row}`' for row in left)}. The command below goes on with them."]
    lines += ["", f"Made by `{result['command']}`, [worth-{part.name}.json](/benchmarks/results/worth-{part.name}.json)."]
    return lines


def page(results):
    made = [part for part in worth_parts.PARTS.values() if part.name in results]
    missing = [part for part in worth_parts.PARTS.values() if part.name not in results]
    lines = [ANSWERS.rstrip(), "", "## How to read the tables", ""]
    lines += [
        "Every table begins with what trains on as few samples without choosing among them: `fewer-epochs` (all samples, fewer "
        "epochs, the same learning-rate shape) and `random-dynamic` (a fresh random subset in every epoch; with `delta=0.875` the "
        "last eighth of the epochs uses everything, as InfoBatch does). *Beats equal budget* is yes only if the 95 % interval of "
        "the difference to each of them, paired by seed, is above 0; *all but* names those that it is not shown "
        "to beat. Static methods train on all samples first to score them: "
        "that time is part of theirs, so they can cost more than they save. *Saved*, and the time to an accuracy, are the "
        "processor's time."
    ]
    for part in made:
        lines += section(part, results[part.name])
    if missing:
        lines += ["", "## Not made yet", ""]
        lines += [
            "These comparisons are written and can be run, but have not been: on two cores most take one to two hours each. "
            "`scripts/study_worth.py build/bin/tamis --parts NAME` makes one, `--list` shows their size; "
            "stopped and started again it goes on where it stopped. What a finished run is judged by is kept in "
            "`benchmarks/results/worth-runs`: commit it, and another machine goes on with the rest.",
            "",
            pages.table(
                ["part", "what it compares", "runs", "million samples"],
                [
                    [f"`{part.name}`", part.title, str(part.num_rows() * part.seeds), f"{part.num_samples() / 1e6:.0f}"]
                    for part in missing
                ],
            ),
        ]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether the page is up to date")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="result files")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "worth.md", help="the page")
    arguments = parser.parse_args()
    results = {
        path.stem.removeprefix("worth-"): json.loads(path.read_text()) for path in arguments.results.glob("worth-*.json")
    }
    pages.publish({arguments.out: page(results)}, arguments.check)


if __name__ == "__main__":
    main()
