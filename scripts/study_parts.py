"""The parts of the study that ask where a score pays off: budget, noise, memorized, tail, homogeneous."""

import math

import pages

# Student's 97.5 % quantile by degrees of freedom.
QUANTILES = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]

TITLES = {
    "budget": "Clean data, equal budget",
    "noise": "Wrong labels",
    "memorized": "Wrong labels, known by heart",
    "tail": "Long-tailed classes",
    "homogeneous": "Homogeneous against mixed batches",
}

QUESTIONS = {
    "budget": "All methods prune the same share of the run (`target_prune`). Does it matter how the samples are chosen?",
    "noise": "Part of the training labels is wrong. trim leaves out the highest scores after 5 epochs; random pruning "
    "saves the same share of the run. Does the score find the wrong labels?",
    "memorized": "As before, with fewer samples and more epochs: without pruning, the model learns the wrong labels by heart.",
    "tail": "Class sizes fall exponentially, the test data stays balanced, and all methods prune the same share of the run. "
    "Does it help to keep 70 % of every class in each epoch (`min_per_class`)?",
    "homogeneous": "The same method with mixed batches, whose weights are right only on average, and with batches of one "
    "weight each, whose weights are exact.",
}

# Part -> pairs whose difference answers the question: first minus second.
PAIRS = {
    "budget": [
        ("blr-infobatch", "random-dynamic"),
        ("bls-infobatch", "random-dynamic"),
        ("infobatch", "random-dynamic"),
        ("blr-infobatch", "bls-infobatch"),
    ],
    "noise": [
        ("ogs-trim", "trim"),
        ("ogs-trim:prune-ratio=0.36,cross-entropy=1", "trim"),
        ("ogs-trim", "random-dynamic"),
        ("ogs-trim", "bls-trim"),
        ("ogs-trim", "blr-trim"),
        ("blr-trim", "random-dynamic"),
        ("blr-trim", "bls-trim"),
        ("bls-trim", "random-dynamic"),
        ("trim", "blr-trim"),
    ],
    "tail": [
        ("random-dynamic:min-per-class=0.7", "random-dynamic"),
        ("bls-infobatch:min-per-class=0.7", "bls-infobatch"),
    ],
    "homogeneous": [
        ("bls-infobatch:homogeneous=1", "bls-infobatch"),
    ],
}
PAIRS["memorized"] = PAIRS["noise"]


def find(result, name):
    """The row of a method; options of the ratio and the budget may follow its name."""
    rows = result["summary"]["rows"]
    exact = [row for row in rows if row["method"] == name]
    return exact[0] if exact else next((row for row in rows if row["method"].startswith(f"{name}:prune-ratio=")), None)


def paired(first, second, of="value"):
    """Differences of the accuracy, or of another figure, seed by seed, with the mean's 95 % interval."""
    before = {run["seed"]: run[of] for run in second["runs"]}
    values = [run[of] - before[run["seed"]] for run in first["runs"]]
    mean = sum(values) / len(values)
    if len(values) < 2:
        return {"values": values, "mean": mean, "low": -math.inf, "high": math.inf}
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    half = QUANTILES[min(len(values) - 1, len(QUANTILES)) - 1] * deviation / math.sqrt(len(values))
    return {"values": values, "mean": mean, "low": mean - half, "high": mean + half}


def sentence(first, second, difference):
    """What the seeds say about one pair, and no more."""
    values = difference["values"]
    better = sum(value > 0 for value in values)
    interval = pages.points(difference).replace(" [", " points [")
    if difference["low"] > 0:
        verdict = f"`{first}` is better than `{second}`"
    elif difference["high"] < 0:
        verdict = f"`{first}` is worse than `{second}`"
    else:
        verdict = f"no difference shown between `{first}` and `{second}`"
    return f"{verdict}: {interval}, higher in {better} of {len(values)} seeds"


def findings(name, result):
    """A list with one sentence per pair, made from the numbers, and what they allow to conclude."""
    lines = []
    for first, second in PAIRS[name]:
        rows = find(result, first), find(result, second)
        if all(rows):
            text = sentence(rows[0]["method"], rows[1]["method"], paired(*rows))
            lines.append(f"- {text[:1].upper()}{text[1:]}.")
    seeds = len(result["compare"]["seeds"])
    lines += [
        "",
        f"{seeds} seeds, 95 % intervals (Student, paired by seed): one in twenty such comparisons shows a difference by chance. "
        "One model and one data set; others may differ.",
    ]
    return "\n".join(lines)


def pruned_alike(result):
    """Whether InfoBatch prunes as much by output gradients as by the true losses; nothing without both."""
    by_gradient, by_loss = find(result, "ogs-infobatch:cross-entropy=1"), find(result, "infobatch")
    if not (by_gradient and by_loss):
        return []
    difference = paired(by_gradient, by_loss, of="pruned_share")
    largest = max(abs(value) for value in difference["values"])
    return [
        "",
        f"By output gradients InfoBatch prunes {100 * by_gradient['pruned_share']:.1f} % of the run, by true losses "
        f"{100 * by_loss['pruned_share']:.1f} %: {pages.points(difference).replace(' [', ' points [')}, at most "
        f"{100 * largest:.1f} points apart in any of {len(difference['values'])} seeds.",
    ]


def conditions(result):
    """What is special about the data."""
    data = result["compare"]["config"]["data"]
    parts = []
    if data.get("label_noise", 0) > 0:
        parts.append(f"{100 * data['label_noise']:g} % of the training labels are wrong")
    if data.get("imbalance", 1) < 1:
        parts.append(f"the last class has {100 * data['imbalance']:g} % of its size")
    return "; ".join(parts)


def processes(one, two):
    """The methods that ran on one process and on two: the accuracy of both and the paired difference."""
    rows = []
    for row in two["summary"]["rows"]:
        if single := find(one, row["method"]):
            difference = pages.points(paired(row, single))
            rows.append([row["method"], f"{100 * single['mean']:.2f}", f"{100 * row['mean']:.2f}", difference])
    return pages.table(["method", "1 process", "2 processes", "difference"], rows, numbers=True)
