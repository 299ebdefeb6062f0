#!/usr/bin/env python3
"""Renders the study's results as tables and plots.

--collect FOLDER first copies the comparisons in FOLDER (from scripts/study.sh) to benchmarks/results/study-NAME.json, the
source of all tables and plots. Writes docs/study.md and, with --plots, docs/study/*.svg (needs matplotlib). The page
includes the table of docs/analysis.md that compares each score with the true losses. --check writes nothing; the exit code is 1
if the page is not what the result files say.
"""

import argparse
import json
import pathlib
import re

import pages
import study_parts

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
TITLES = {"fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}
MAIN = ["full", "random-dynamic", "infobatch", "ogs-infobatch:cross-entropy=1", "bls-infobatch", "seta", "bls-seta"]
POLICIES = {"infobatch": "InfoBatch", "seta": "SeTa"}
DEFAULT_ALPHA = 0.7
PROCESSES = (
    "Runs of the first ablation repeated on two processes, each with half of every batch (Gloo, replicated layout). Difference: "
    "two processes minus one, in points, paired by seed, with its 95 % interval."
)


def collect(folder, results):
    """Copies compare.json, summary.json, the environment and the accuracy curves of every comparison in folder."""
    for summary in sorted(folder.glob("*/summary.json")):
        collect_one(summary.parent, results / f"study-{summary.parent.name}.json", "make study")


def collect_one(comparison, path, command):
    """One finished comparison as a result file."""
    compare = json.loads((comparison / "compare.json").read_text())
    config = json.loads(sorted(comparison.glob("*/config.json"))[0].read_text())
    result = {
        "command": command,
        "compare": compare,
        "summary": json.loads((comparison / "summary.json").read_text()),
        "environment": config["environment"],
        "num_train": config["data"]["num_train"],
        "parameters": config["model"]["parameters"],
        "curves": {method: curve(comparison, method, compare["seeds"]) for method in compare["methods"]},
    }
    pages.keep(path, result)


def curve(comparison, method, seeds):
    """Mean test accuracy after every epoch and mean number of samples used until then."""
    lines = [
        [json.loads(line) for line in (comparison / f"{method}-seed{seed}" / "metrics.jsonl").read_text().splitlines()]
        for seed in seeds
    ]
    accuracy, samples, used = [], [], 0.0
    for epochs in zip(*lines):
        used += sum(epoch["samples"] for epoch in epochs) / len(epochs)
        accuracy.append(sum(epoch["values"]["test_accuracy"] for epoch in epochs) / len(epochs))
        samples.append(used)
    return {"samples": samples, "test_accuracy": accuracy}


def load(results=RESULTS):
    """The result files by name of the data set."""
    return {path.stem.removeprefix("study-"): json.loads(path.read_text()) for path in results.glob("study-*.json")}


def percent(value, digits=1):
    return f"{100 * value:.{digits}f} %"


def difference(row):
    """In points, with its interval; bold only where the seeds support it."""
    interval = row["difference"]
    if interval is None:
        return "-"
    return f"**{pages.points(interval)}**" if interval["supported"] else pages.points(interval)


def accuracy(row):
    deviation = row["deviation"]
    text = f"{100 * row['mean']:.2f}"
    return text if deviation is None else f"{text} ± {100 * deviation:.2f}"


def table(rows, baseline):
    cells = [
        [
            row["method"],
            accuracy(row),
            difference(row),
            percent(row["pruned_share"]),
            f"{row['train_seconds_mean']:.0f} s",
            pages.saved(row, 1),
            percent(row["prune_overhead"], 3),
        ]
        for row in rows
    ]
    header = ["method", "accuracy", f"difference to {baseline}", "pruned", "time", "saved", "overhead"]
    return pages.table(header, cells, numbers=True) + pages.saved_note(rows, baseline)


def rows_of(result, methods):
    rows = {row["method"]: row for row in result["summary"]["rows"]}
    return [rows[method] for method in methods if method in rows]


def alphas(result, policy):
    """(alpha, row) of one policy, the run without an average as alpha 0."""
    found = []
    for row in result["summary"]["rows"]:
        if row["method"] == f"last-batch-loss+{policy}":
            found.append((0.0, row))
        elif row["method"] == f"bls-{policy}":
            found.append((DEFAULT_ALPHA, row))
        elif match := re.fullmatch(f"bls-{policy}:alpha=([0-9.]+)", row["method"]):
            found.append((float(match.group(1)), row))
    return sorted(found, key=lambda entry: entry[0])


def ablation(result):
    lines = ["| score | policy | accuracy | difference to full | pruned |", "|---|---|--:|--:|--:|"]
    for policy, title in POLICIES.items():
        for alpha, row in alphas(result, policy):
            score = "last batch loss (no average)" if alpha == 0.0 else f"BLS, alpha {alpha:g}"
            lines.append(
                f"| {score} | {title} | {accuracy(row)} | {difference(row)} | {percent(row['pruned_share'])} |"
            )
    return "\n".join(lines)


def setup(result):
    config, environment = result["compare"]["config"], result["environment"]
    training = config["training"]
    return (
        f"{result['num_train']:,} training samples, {config['model']['name']} with {result['parameters']:,} parameters, "
        f"{training['epochs']} epochs, batch size {training['batch_size']}, {training['optimizer']}, peak learning "
        f"rate {training['learning_rate']:g} ({training['schedule']}), augmentation {training['augment']}, "
        f"{len(result['compare']['seeds'])} seeds; {environment['cpu']}, {training['threads']} "
        f"{'thread' if training['threads'] == 1 else 'threads'}, "
        f"torch {environment['torch']}, {environment['date'][:10]}."
    )


def verdict(result):
    """One sentence that says no more than the intervals do."""
    rows = [row for row in result["summary"]["rows"] if row["difference"]]
    supported = [row for row in rows if row["difference"]["supported"]]
    if not rows:
        return "With one seed, no difference can be told from chance."
    text = f"{len(supported)} of {len(rows)} differences to full are supported by the seeds (bold)"
    names = ", ".join(row["method"] for row in supported)
    return f"{text}{': ' + names if names else ''}; with 95 % intervals about one in twenty is by chance."


def main_results(results):
    """(name, result) of the comparisons on whole data sets."""
    return [(name, result) for name, result in sorted(results.items(), reverse=True) if name in TITLES]


def ablation_of(results, name):
    """The ablation on a data set: a comparison of its own, or part of the main one."""
    return results.get(f"ablation-{name}", results[name])


def short_table(results=None):
    """For the README: the main methods of every data set."""
    parts = []
    for name, result in main_results(results or load()):
        parts.append(f"{TITLES.get(name, name)}: {setup(result)}\n\n{table(rows_of(result, MAIN), 'full')}")
    return "\n\n".join(parts)


def part(name, result, with_plots):
    """One of the questions of study_parts: setting, table, what the seeds say."""
    particular = study_parts.conditions(result)
    lines = ["", f"## {study_parts.TITLES[name]}", "", study_parts.QUESTIONS[name], ""]
    lines += [setup(result) + (f" Data: {particular}." if particular else ""), ""]
    lines += [table(result["summary"]["rows"], result["summary"]["baseline"]), "", study_parts.findings(name, result)]
    if with_plots:
        lines += ["", f"![{study_parts.TITLES[name]}](study/{name}.svg)"]
    return lines


def fidelity():
    """The table of docs/analysis.md with its heading; nothing if it is not there."""
    text = (ROOT / "docs" / "analysis.md").read_text()
    found = re.search(r"<!-- begin fidelity -->\n(.*?)<!-- end fidelity -->", text, re.DOTALL)
    if not found:
        return []
    question = (
        "How well does each score agree with the true losses at the end of a recorded run? Spearman's rank correlation, "
        "Pearson's in brackets, and how many of the hardest 30 % are the same. One run per column, so there are no intervals. "
        "[analysis.md](analysis.md) has the settings, the commands and the limits."
    )
    return ["", "## Fidelity of the scores", "", question, "", found.group(1).strip()]


def page(results, with_plots):
    text = [
        "# Study",
        "",
        "Generated by `make study` and `scripts/render_study.py`; do not edit.",
        "",
        "- *Accuracy*: test accuracy after the last epoch, in percent, mean ± sample deviation over the seeds.",
        "- *Difference*: in points, paired by seed, with its 95 % interval (Student). An interval that includes 0 means that these",
        "  seeds show no difference, not that there is none.",
        "- *Time*: on a shared machine, where it varies by about 10 %. Accuracies and pruned shares do not depend on it.",
    ]
    for name, result in main_results(results):
        title = TITLES[name]
        text += ["", f"## {title}", "", setup(result), "", table(rows_of(result, MAIN), "full"), "", verdict(result)]
        text += study_parts.pruned_alike(result)
        if with_plots:
            text += ["", f"![Test accuracy against samples used, {title}](study/{name}-accuracy.svg)"]
        found = ablation_of(results, name)
        text += ["", f"### Without the average, and other averages, on {title}", ""]
        text += [] if found is result else [setup(found), ""]
        text += [ablation(found)]
        if with_plots:
            text += ["", f"![Accuracy against alpha, {title}](study/{name}-alpha.svg)"]
    text += fidelity()
    for name in study_parts.TITLES:
        if name in results:
            text += part(name, results[name], with_plots)
    if "processes" in results and "fashion-mnist" in results:
        text += ["", "## Two processes against one", "", PROCESSES, "", setup(results["processes"]), ""]
        text += [study_parts.processes(ablation_of(results, "fashion-mnist"), results["processes"])]
    return "\n".join(text) + "\n"


def plot_part(pyplot, name, result, path):
    """Accuracy of every method, one dot per seed and a bar for the mean."""
    rows = result["summary"]["rows"][::-1]
    figure, axes = pyplot.subplots(figsize=(7, 0.6 + 0.4 * len(rows)), layout="constrained")
    for place, row in enumerate(rows):
        axes.scatter([100 * run["value"] for run in row["runs"]], [place] * len(row["runs"]), color="C0", alpha=0.6)
        axes.plot([100 * row["mean"]] * 2, [place - 0.3, place + 0.3], color="black")
    axes.set_yticks(range(len(rows)), [row["method"] for row in rows])
    axes.set(xlabel="test accuracy, % (dots: seeds, bar: mean)", title=study_parts.TITLES[name])
    save(figure, path)


def plot(results, folder):
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "tamis", "axes.grid": True, "grid.alpha": 0.3})
    folder.mkdir(parents=True, exist_ok=True)
    for name in study_parts.TITLES:
        if name in results:
            plot_part(pyplot, name, results[name], folder / f"{name}.svg")
    for name, result in main_results(results):
        title = TITLES[name]
        figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
        for method in MAIN:
            if method in result["curves"]:
                lines = result["curves"][method]
                axes.plot(
                    [samples / 1e6 for samples in lines["samples"]],
                    [100 * value for value in lines["test_accuracy"]],
                    label=method,
                )
        axes.set(xlabel="samples used, millions", ylabel="test accuracy, %", title=title)
        axes.legend()
        save(figure, folder / f"{name}-accuracy.svg")

        found = ablation_of(results, name)
        figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
        for policy, label in POLICIES.items():
            entries = alphas(found, policy)
            axes.errorbar(
                [alpha for alpha, _ in entries],
                [100 * row["mean"] for _, row in entries],
                yerr=[100 * (row["deviation"] or 0) for _, row in entries],
                marker="o",
                capsize=3,
                label=f"BLS-{label}",
            )
        full = rows_of(found, ["full"])[0]
        axes.axhline(100 * full["mean"], color="black", linestyle="--", label="full")
        axes.set(xlabel="alpha (0: no average)", ylabel="test accuracy, % (bars: deviation)", title=title)
        axes.legend()
        save(figure, folder / f"{name}-alpha.svg")


def save(figure, path):
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collect", metavar="FOLDER", type=pathlib.Path, help="copy the results of this study first")
    parser.add_argument("--results", metavar="FOLDER", type=pathlib.Path, default=RESULTS, help="result files")
    parser.add_argument("--out", metavar="FOLDER", type=pathlib.Path, default=ROOT / "docs", help="for study.md")
    parser.add_argument("--plots", action="store_true", help="also draw the plots")
    parser.add_argument("--check", action="store_true", help="only say whether the page is up to date")
    arguments = parser.parse_args()
    if arguments.collect:
        collect(arguments.collect, arguments.results)
    results = load(arguments.results)
    if not results:
        parser.error(f"no study-*.json in {arguments.results}; run make study first")
    plots = arguments.out / "study"
    if arguments.plots:
        plot(results, plots)
    pages.publish({arguments.out / "study.md": page(results, plots.is_dir())}, arguments.check)


if __name__ == "__main__":
    main()
