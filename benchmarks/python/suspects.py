#!/usr/bin/env python3
"""How well a score finds wrong labels, against rankings that need more.

A share of the labels of Fashion-MNIST is replaced by another class, at random. A small CNN is trained on all samples, nothing
is pruned, and the samples are ranked, the most suspicious first, by

- output-gradient, last visit: what handler.suspects(k) gives, with the power 1 and with cross_entropy=1;
- output-gradient, all epochs: mean rank over the epochs, what `tamis suspects` makes of a recorded run (cross_entropy=1);
- true loss, last visit: needs one loss per sample;
- batch-loss (BLS): needs the mean loss alone;
- cleanlab, self-confidence: the probability of the given label by models that were not trained on the sample, which
  takes a cross-validation of --folds trainings (pip install -r requirements/study.txt).

Of each ranking: precision of its first 100, and precision of as many as there are wrong labels, which is then the recall, too.

  benchmarks/python/suspects.py --images FOLDER --json benchmarks/results/suspects.json
"""

import argparse
import pathlib
import statistics
import sys
from importlib.metadata import version

import fidelity
import results

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FIRST = 100
CLASSES = 10


def wrong_labels(labels, share, seed):
    """The labels with exactly this share of them wrong, and which these are."""
    import numpy as np

    random = np.random.default_rng(seed)
    is_wrong = np.zeros(len(labels), bool)
    is_wrong[random.choice(len(labels), round(share * len(labels)), replace=False)] = True
    given = labels.copy()
    given[is_wrong] = (labels[is_wrong] + random.integers(1, CLASSES, is_wrong.sum())) % CLASSES
    return given, is_wrong


def make_model():
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 49, 10))


def train(args, images, labels, handlers, observe=lambda: None):
    """A model trained on all samples; each handler sees every step, `observe` the end of every epoch."""
    import torch
    import torch.nn.functional as F

    model = make_model()
    for handler in handlers:
        if handler.needs == "output-gradients":
            handler.watch(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    for epoch in range(args.epochs):
        optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - epoch / args.epochs)
        for ids in torch.randperm(len(labels)).split(args.batch):
            losses = F.cross_entropy(model(images[ids]), labels[ids], reduction="none")
            for handler in handlers:
                handler.update(losses if handler.needs == "sample-losses" else losses.mean(), ids=ids)
            optimizer.zero_grad()
            losses.mean().backward()
            optimizer.step()
        observe()
    return model


def rank_by_training(args, images, labels):
    """{ranking: one number per sample, the higher the more suspicious}"""
    import numpy as np
    import tamis

    data = fidelity.Indexed(len(labels))
    made = {name: tamis.prune(data, "none", epochs=args.epochs, score=name)
            for name in ("output-gradient", "sample-loss", "batch-loss")}
    made["exact"] = tamis.prune(data, "none", epochs=args.epochs, score="output-gradient", cross_entropy=1)
    rank_sum = np.zeros(len(labels))

    def observe():
        rank_sum[np.argsort(made["exact"].scores)] += np.arange(len(labels))

    train(args, images, labels, list(made.values()), observe)
    scores = {name: handler.scores for name, handler in made.items()}
    hardest = made["exact"].suspects(FIRST)
    assert set(hardest) == set(np.argsort(-scores["exact"], kind="stable")[:FIRST])
    return {
        "output-gradient, last visit": scores["exact"],
        "output-gradient, power 1, last visit": scores["output-gradient"],
        "output-gradient, all epochs": rank_sum,
        "true loss, last visit": scores["sample-loss"],
        "batch-loss": scores["batch-loss"],
    }


def rank_by_cleanlab(args, images, labels):
    import numpy as np
    import torch
    from cleanlab.rank import get_label_quality_scores

    probabilities = np.zeros((len(labels), CLASSES))
    parts = torch.randperm(len(labels)).chunk(args.folds)
    for k, held_out in enumerate(parts):
        others = torch.cat([part for j, part in enumerate(parts) if j != k])
        model = train(args, images[others], labels[others], [])
        with torch.no_grad():
            probabilities[held_out.numpy()] = model(images[held_out]).softmax(1).numpy()
    return -get_label_quality_scores(labels.numpy(), probabilities, method="self_confidence")


def precision(ranking, is_wrong, count):
    import numpy as np

    return float(is_wrong[np.argsort(-ranking, kind="stable")[:count]].mean())


def measure(args, result):
    """Adds the rows to the result, and keeps it after each share of wrong labels."""
    import torch

    images = fidelity.images(args.images, args.samples).view(-1, 1, 28, 28)
    true = fidelity.idx_bytes(args.images, "train-labels-idx1-ubyte", 8)[: args.samples].astype("int64")
    rows = result["rows"] = []
    for share in args.noise:
        for seed in args.seeds:
            torch.manual_seed(seed)
            labels, is_wrong = wrong_labels(true, share, seed)
            labels = torch.from_numpy(labels)
            rankings = rank_by_training(args, images, labels)
            rankings["cleanlab, self-confidence"] = rank_by_cleanlab(args, images, labels)
            for name, ranking in rankings.items():
                rows.append({"noise": share, "seed": seed, "ranking": name,
                             "first": precision(ranking, is_wrong, FIRST),
                             "all": precision(ranking, is_wrong, int(is_wrong.sum()))})
                print(rows[-1], flush=True)
        if args.json:
            results.write(args.json, result)


def table(result):
    """Means over the seeds, with the least and the greatest."""
    shares = sorted({row["noise"] for row in result["rows"]})
    lines = ["| ranking | " + " | ".join(f"{share:.0%} wrong: first {FIRST} | as many as wrong" for share in shares) + " |",
             "|---|" + "--:|--:|" * len(shares)]
    for name in dict.fromkeys(row["ranking"] for row in result["rows"]):
        cells = []
        for share in shares:
            found = [row for row in result["rows"] if row["ranking"] == name and row["noise"] == share]
            for key in ("first", "all"):
                values = [100 * row[key] for row in found]
                cells.append(f"{statistics.mean(values):.1f} [{min(values):.0f}, {max(values):.0f}]")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda p: ROOT / p, default=ROOT / "build")
    parser.add_argument("--images", default=fidelity.IMAGES)
    parser.add_argument("--samples", type=int, default=6000)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.1, 0.2, 0.4])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--json", type=pathlib.Path, help="file for the result")
    args = parser.parse_args()
    sys.path.insert(0, str(args.build / "python"))

    import torch

    torch.set_num_threads(1)
    settings = {key: getattr(args, key) for key in ("samples", "epochs", "batch", "learning_rate", "folds", "seeds")}
    result = results.header() | {"versions": {"torch": torch.__version__, "cleanlab": version("cleanlab")}, "settings": settings}
    measure(args, result)
    print(table(result))


if __name__ == "__main__":
    main()
