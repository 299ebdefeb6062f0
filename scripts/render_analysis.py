#!/usr/bin/env python3
"""Renders the tables and plots of docs/analysis.md from benchmarks/results/analysis-*.json.

--collect RUN first copies the analysis.json and config.json of a recorded run to
benchmarks/results/analysis-DATA.json, or the summary of a sweep to sweep-OPTION.json. Each table replaces what is
between `<!-- begin NAME -->` and `<!-- end NAME -->`. --plots also draws docs/analysis/*.svg (needs matplotlib).
--check writes nothing; the exit code is 1 if the page is not what the result files say.
"""

import argparse
import json
import pathlib

import pages

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "analysis.md"
PLOTS = ROOT / "docs" / "analysis"
MAIN_DATA = "fashion-mnist"  # whose spectra the page is about
TITLES = {"fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}


def collect(run, command):
    """Copies the results of a run, rounded to what the tables and plots need."""
    analysis = json.loads((run / "analysis.json").read_text())
    config = json.loads((run / "config.json").read_text())
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    result = {
        "command": command,
        "environment": config["environment"],
        "config": {key: config[key] for key in ("method", "seed", "epochs", "data", "model", "training", "record")},
        "test_accuracy": metrics[-1]["values"]["test_accuracy"],
        "analysis": rounded(analysis),
    }
    pages.keep(RESULTS / f"analysis-{config['data']['name']}-b{config['training']['batch_size']}.json", result)


def collect_sweep(folder, command):
    """Copies the summary of a sweep."""
    sweep = json.loads((folder / "sweep.json").read_text())
    config = json.loads(next(iter(sorted(folder.glob("*/config.json")))).read_text())
    result = {
        "command": command,
        "environment": config["environment"],
        "sweep": sweep,
        "compare": json.loads((folder / "compare.json").read_text()),
        "summary": json.loads((folder / "summary.json").read_text()),
    }
    pages.keep(RESULTS / f"sweep-{sweep['option']}.json", rounded(result))


def rounded(value):
    """Six digits are more than any table shows."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list):
        return [rounded(one) for one in value]
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return value


def load():
    """Result files by data set and batch size."""
    found = {}
    for path in RESULTS.glob("analysis-*.json"):
        result = json.loads(path.read_text())
        found[result["config"]["data"]["name"], result["config"]["training"]["batch_size"]] = result
    # Fashion-MNIST first, as elsewhere.
    return {key: found[key] for key in sorted(found, key=lambda key: (key[0] != MAIN_DATA, key))}


def of_main_data(results):
    """By batch size."""
    return {size: result for (data, size), result in results.items() if data == MAIN_DATA}


def number(value, digits=3):
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.{digits}g}"


def fixed(value, digits=3):
    return "-" if value is None else f"{value:.{digits}f}"


def runs_table(results):
    rows = []
    for (data, size), result in results.items():
        config, recording = result["config"], result["analysis"]["recording"]
        rows.append(
            [
                TITLES[data],
                str(size),
                f"{recording['num_samples']:,}",
                str(recording["num_epochs"]),
                f"{recording['num_recorded']:,}",
                f"{recording['num_steps']:,}",
                f"{100 * result['test_accuracy']:.1f} %",
                f"`{result['command']}`",
            ]
        )
        assert config["model"]["name"] == "small-cnn"
    environment = next(iter(results.values()))["environment"]
    header = ["data", "B", "samples", "epochs", "recorded", "steps", "test accuracy", "command"]
    made = f"Made on {environment['cpu']} with torch {environment['torch']}, {environment['date'][:10]}."
    return pages.table(header, rows) + "\n\n" + made


def spectra_table(results):
    rows = []
    for size, result in results.items():
        spectra = result["analysis"]["spectra"]
        signal, noise = spectra["signal_energy"], spectra["noise_energy"]
        ratio = [n / s for n, s in zip(spectra["noise"], spectra["signal"])]
        rows.append(
            [
                str(size),
                number(noise["power"] / signal["power"]),
                f"{spectra['num_noise_above']} of {spectra['num_frequencies']}",
                f"{number(ratio[1])} at {spectra['frequencies'][1]:.3g}",
                f"{number(ratio[-1])} at {spectra['frequencies'][-1]:.3g}",
                f"{100 * signal['share_below']:.0f} %",
                f"{100 * noise['share_below']:.0f} %",
            ]
        )
    header = ["B", "power, noise / signal", "noise above signal at", "lowest frequency: noise / signal"]
    header += ["highest", "signal below cut-off", "noise below cut-off"]
    return pages.table(header, rows)


def ratio_table(results):
    header = ["alpha"]
    for size in results:
        header += [f"B={size}: over visits", "between samples", "Spearman"]
    rows = []
    first = next(iter(results.values()))["analysis"]
    for k, one in enumerate(first["signal_to_noise"]["after"]):
        row = [f"{one['alpha']:g}"]
        for result in results.values():
            ratio = result["analysis"]["signal_to_noise"]["after"][k]
            agreement = result["analysis"]["fidelity"]["alphas"][k]["spearman"][-1]
            row += [number(ratio["over_visits"]), number(ratio["between_samples"]), fixed(agreement)]
        rows.append(row)
    return pages.table(header, rows)


def fidelity_table(results):
    header = ["score", "sees"] + [f"{TITLES[data]}, B={size}" for data, size in results]
    rows = []
    for score in next(iter(results.values()))["analysis"]["fidelity"]["scores"]:
        sees = score["sees"] if score["sees"] in ("batch losses", "output gradients") else "per-sample losses"
        row = [f"`{score['name']}`", sees]
        for result in results.values():
            found = {one["name"]: one for one in result["analysis"]["fidelity"]["scores"]}[score["name"]]
            spearman, pearson, overlap = (found[key][-1] for key in ("spearman", "pearson", "top_overlap"))
            row.append(f"{fixed(spearman)} ({fixed(pearson)}), {100 * overlap:.0f} %")
        rows.append(row)
    return pages.table(header, rows)


def cost_table():
    path = RESULTS / "recording-cost.json"
    if not path.exists():
        return None
    cost = json.loads(path.read_text())
    rows = [
        [
            one["what"],
            f"{one['seconds_plain']:.1f} s",
            f"{one['seconds_recorded']:.1f} s",
            f"{100 * (one['seconds_recorded'] / one['seconds_plain'] - 1):+.1f} %",
            f"{one['megabytes']:.1f} MB",
        ]
        for one in cost["rows"]
    ]
    header = ["run", "without", "with --record", "difference", "on disk"]
    return pages.table(header, rows) + f"\n\nMade by {cost['command']}, {cost['note']}."


def sweep_table():
    path = RESULTS / "sweep-alpha.json"
    if not path.exists():
        return None
    result = json.loads(path.read_text())
    rows = []
    for row in result["summary"]["rows"]:
        difference = row["difference"]
        rows.append(
            [
                row["method"].rpartition("=")[2],
                f"{100 * row['mean']:.2f} ± {100 * row['deviation']:.2f}",
                "-" if difference is None else pages.points(difference),
                f"{100 * row['pruned_share']:.1f} %",
            ]
        )
    return pages.table(["alpha", "accuracy", "difference to full", "pruned"], rows) + f"\n\nMade by `{result['command']}`."


def plot(results):
    """Spectra, one sample and fidelity, as SVG."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "tamis", "svg.fonttype": "none", "font.size": 9})
    from matplotlib import pyplot

    def save(figure, name):
        PLOTS.mkdir(parents=True, exist_ok=True)
        figure.tight_layout()
        figure.savefig(PLOTS / f"{name}.svg", metadata={"Date": None})
        pyplot.close(figure)

    figure, axes = pyplot.subplots(1, len(results), figsize=(4 * len(results), 3), sharey=True, squeeze=False)
    for axis, (size, result) in zip(axes[0], results.items()):
        spectra = result["analysis"]["spectra"]
        axis.semilogy(spectra["frequencies"][1:], spectra["noise"][1:], color="#dc7107", label="noise L − l/B")
        axis.semilogy(spectra["frequencies"][1:], spectra["signal"][1:], "--", color="#193cb9", label="signal l/B")
        axis.axvline(spectra["cutoff"], color="#888", linewidth=0.8, linestyle=":")
        axis.set(title=f"B = {size}", xlabel="cycles per visit")
    axes[0][0].set_ylabel("power density")
    axes[0][0].legend(frameon=False)
    save(figure, "spectra")

    figure, axes = pyplot.subplots(1, len(results), figsize=(4 * len(results), 3), squeeze=False)
    for axis, (size, result) in zip(axes[0], results.items()):
        series = result["analysis"]["series"]
        visits = range(1, len(series["batch_loss"]) + 1)
        axis.plot(visits, series["batch_loss"], color="#dc7107", linewidth=0.8, label="batch loss L")
        axis.plot(visits, series["score"], color="#9e0f00", label="score")
        axis.plot(visits, series["signal"], "--", color="#193cb9", label="signal l/B")
        axis.set(title=f"sample {series['sample']}, B = {size}", xlabel="visit")
    axes[0][0].set_ylabel("loss")
    axes[0][0].legend(frameon=False)
    save(figure, "one-sample")

    figure, axes = pyplot.subplots(1, len(results), figsize=(4 * len(results), 3), sharey=True, squeeze=False)
    for axis, (size, result) in zip(axes[0], results.items()):
        fidelity = result["analysis"]["fidelity"]
        epochs = [epoch + 1 for epoch in fidelity["epochs"]]
        for score in fidelity["scores"]:
            line = "-" if score["sees"] == "batch losses" else ":"
            axis.plot(epochs, score["spearman"], line, marker=".", label=score["name"])
        axis.set(title=f"B = {size}", xlabel="epoch")
    axes[0][0].set_ylabel("Spearman with the true loss")
    axes[0][-1].legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    save(figure, "fidelity")


def render(results):
    """The page with its tables replaced."""
    main = of_main_data(results)
    parts = {
        "runs": runs_table(results),
        "spectra": spectra_table(main),
        "ratios": ratio_table(main),
        "fidelity": fidelity_table(results),
        "sweep": sweep_table(),
        "cost": cost_table(),
    }
    text = PAGE.read_text()
    for name, part in parts.items():
        if part is not None:
            text = pages.with_part(text, name, part)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collect", metavar="RUN", type=pathlib.Path)
    parser.add_argument("--command", help="the command that made RUN", default="tamis train --record")
    parser.add_argument("--plots", action="store_true")
    parser.add_argument("--check", action="store_true", help="only say whether the page is up to date")
    arguments = parser.parse_args()
    if arguments.collect and (arguments.collect / "sweep.json").exists():
        collect_sweep(arguments.collect, arguments.command)
    elif arguments.collect:
        collect(arguments.collect, arguments.command)
    results = load()
    pages.publish({PAGE: render(results)}, arguments.check)
    if arguments.plots:
        plot(of_main_data(results))


if __name__ == "__main__":
    main()
