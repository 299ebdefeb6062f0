"""The comparisons behind docs/worth.md: converged trainings, with every honest baseline."""

import re
from dataclasses import dataclass, field

SCORED = ["infobatch", "seta", "bls-infobatch", "bls-seta", "blr-infobatch", "ogs-infobatch", "ogs-seta"]
STATIC = ["el2n:score-epochs=3", "grand:score-epochs=2", "dp:score-epochs=5", "forgetting:score-epochs=5"]
# What the program scores after if not told.
SCORE_EPOCHS = {"el2n": 20, "grand": 4, "dp": 20, "forgetting": 20}
# What --equal-budget begins with.
BUDGET_ROWS = ["full", "fewer-epochs", "random-dynamic", "random-dynamic:delta=0.875"]
SHARES = [0.3, 0.5, 0.7]
SAMPLES = {"cifar10": 50_000, "fashion-mnist": 60_000}
NUM_CLASSES = 10
# Ten epochs, of which 30, 50 and 70 % are whole ones. Tests without mirror images, which would take a tenth of all time.
CIFAR = {"preset": "cifar10-fast", "width": 1, "epochs": 10, "test_flip": "off"}
FASHION = {**CIFAR, "data": "fashion-mnist"}


@dataclass
class Part:
    """One call of `tamis compare`."""

    name: str
    title: str
    question: str
    settings: dict
    methods: list
    seeds: int = 3
    target: float | None = None
    # The rows that every comparison at an equal budget begins with; without a target there is no budget to be equal.
    equal_budget: bool = True
    extra: list = field(default_factory=list)

    def baselines(self):
        """The rows that all others are compared with."""
        return BUDGET_ROWS if self.equal_budget and self.target is not None else ["full"]

    def rows(self):
        """The methods, those that the others are compared with first."""
        return list(dict.fromkeys(self.baselines() + self.methods))

    def common_flags(self):
        flags = ["--threads", "1"]
        for key, value in self.settings.items():
            flags += [f"--{key.replace('_', '-')}", str(value)]
        return flags + self.extra

    def flags(self, methods=None):
        """Of the comparison as a whole, or of some of its methods."""
        flags = self.common_flags()
        if self.target is not None:
            flags += ["--target-prune", str(self.target)]
        if self.equal_budget and self.target is not None:
            flags.append("--equal-budget")
        chosen = self.methods if methods is None else [method for method in self.methods if method in methods]
        return [*flags, "--methods", *chosen, "--seeds", *map(str, range(self.seeds))]

    def flags_of(self, method, seed):
        """Of one of its runs. A comparison leaves the target to the methods that take one; where it has but one method, that
        must be asked first."""
        takes_target = method.partition(":")[0] not in ("full", "random")
        target = ["--target-prune", str(self.target)] if self.target is not None and takes_target else []
        return [*self.common_flags(), *target, "--methods", method, "--seeds", str(seed)]

    def num_rows(self):
        return len(self.rows())

    def num_epochs(self):
        return self.settings["epochs"]

    def num_train(self):
        size = self.settings.get("limit") or SAMPLES[self.settings.get("data", "cifar10")]
        imbalance = self.settings.get("imbalance", 1)
        return size * sum(imbalance ** (c / (NUM_CLASSES - 1)) for c in range(NUM_CLASSES)) / NUM_CLASSES

    def samples_of(self, method):
        """Samples that a run sees, about; a static method trains on all samples before it leaves any out."""
        left = 1 - (0 if method == "full" else self.target or 0)
        name, _, options = method.partition(":")
        told = re.search("score-epochs=([0-9]+)", options)
        scoring = int(told.group(1)) if told else SCORE_EPOCHS.get(name, 0)
        return self.num_train() * (left * self.num_epochs() + min(scoring, self.num_epochs()))

    def num_samples(self):
        """Of all runs, about."""
        return round(self.seeds * sum(map(self.samples_of, self.rows())))


def table2():
    for data, title, settings, reach in [("cifar10", "CIFAR-10", CIFAR, 0.85), ("fashion", "Fashion-MNIST", FASHION, 0.92)]:
        for share in SHARES:
            percent = round(100 * share)
            yield Part(
                f"{data}-{percent}",
                f"{title}, {percent} % pruned",
                "Table 2 of the paper: every method leaves out the same share of the run. Is any better than fewer epochs?",
                settings,
                [f"random:prune-ratio={share}", *STATIC, "epsilon-greedy", "ucb", *SCORED],
                target=share,
                extra=["--reach", str(reach)],
            )


def all_parts():
    yield from table2()
    yield Part(
        "ablation",
        "Which score, which policy",
        "The same two policies on every score, from the last batch's loss to the per-sample loss.",
        CIFAR,
        [f"{score}{policy}" for policy in ("infobatch", "seta") for score in ("last-batch-loss+", "bls-", "blr-", "ogs-", "")],
        target=0.3,
    )
    yield Part(
        "alpha",
        "How much of the old score to keep",
        "BLS with InfoBatch at several alpha; 0 is no average at all.",
        CIFAR,
        [f"bls-infobatch:alpha={alpha}" for alpha in (0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)],
        target=0.3,
    )
    for share in (0.2, 0.4):
        yield Part(
            f"labels-{round(100 * share)}",
            f"{round(100 * share)} % wrong labels",
            "trim leaves out the highest scores after 5 epochs. Does the score find the wrong labels?",
            {**CIFAR, "label_noise": share},
            ["full", *(f"{score}trim:prune-ratio={share}" for score in ("bls-", "blr-", "ogs-", "")), f"el2n:prune-ratio={share}"]
            + [f"random-dynamic:prune-ratio={share}", f"fewer-epochs:target-prune={share}"],
        )
    yield Part(
        "redundant",
        "Redundant data",
        "Four of five images are copies of 300 others, as in crawled data. Does a score find the rare ones?",
        {**CIFAR, "copies": 0.8},
        [*STATIC, *SCORED],
        target=0.5,
    )
    yield Part(
        "tail",
        "Long-tailed classes",
        "Class sizes fall exponentially to 1 %, the test data stays balanced.",
        {**CIFAR, "imbalance": 0.01, "epochs": 60},
        [*SCORED, "ogs-infobatch:min-per-class=0.7"],
        target=0.3,
    )
    yield Part(
        "little",
        "Long training on little data",
        "2,000 samples, 60 epochs: every sample is seen so often that most of the visits can hardly teach anything.",
        {"data": "fashion-mnist", "limit": 2000, "epochs": 60, "model": "small-cnn"},
        ["el2n", "infobatch", "bls-infobatch", "ogs-infobatch"],
        seeds=5,
        target=0.5,
        extra=["--reach", "0.8"],
    )


PARTS = {part.name: part for part in all_parts()}
