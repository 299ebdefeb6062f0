"""Options: what few runs need to say."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

DEFAULT_TIME_LIMIT = 30.0  # seconds
_WORDS = {
    "layout": ("automatic", "replicated", "sharded"),
    "remainder": ("pad", "drop"),
    "sharding": ("own", "external"),
}


@dataclass(frozen=True)
class Options:
    """The rarer options of a run, for `prune(..., options=Options(...))`.

    Attributes:
        seed: All randomness of the plans comes from this number and the epoch.
        delta: Share of the epochs that are pruned, in [0, 1]; None for the policy's default.
        batch_size: Samples per batch (of each rank). Needed by `homogeneous`, and if a DataLoader
            of your own draws from `handler.sampler`; `handler.loader(B)` says it by itself.
        drop_last: Whether that DataLoader leaves out an incomplete last batch.
        homogeneous: Every batch holds samples of one weight, so that the mean loss of a batch is
            weighted exactly; needs batch_size.
        min_per_class: Least share of every class in each epoch, in [0, 1]; needs labels.
        labels: The class of every sample, as integers.
        target_prune: Share of the whole run to prune, in [0, 1): sets the policy's prune_ratio for
            each epoch. Warns if it turns out to be out of reach.
        sharding: With torch.distributed: "own" gives every rank its share of each epoch;
            "external" gives every rank the whole epoch, for a framework that cuts it (Accelerate,
            HF Trainer), and losses need ids.
        layout: With sharding "own": who keeps which scores, "replicated" (every rank all of
            them), "sharded" (every rank those of its part) or "automatic".
        remainder: With sharding "own": "pad" uses some samples twice where an epoch cannot be
            divided equally, "drop" leaves some out.
        threads: Processor cores that planning an epoch and loading a state may use, at least 1;
            worth it from ten million samples on. No result depends on it.
        time_limit: With torch.distributed: seconds to wait for a rank before giving up.
    """

    seed: int = 0
    delta: float | None = None
    batch_size: int | None = None
    drop_last: bool = False
    homogeneous: bool = False
    min_per_class: float = 0.0
    labels: Any = None
    target_prune: float | None = None
    sharding: str = "own"
    layout: str = "automatic"
    remainder: str = "pad"
    threads: int = 1
    time_limit: float = DEFAULT_TIME_LIMIT

    def __post_init__(self) -> None:
        check_count("Options", "seed", self.seed, 0, 2**64 - 1)
        check_count("Options", "threads", self.threads, 1, 2**16)
        if self.batch_size is not None:
            check_count("Options", "batch_size", self.batch_size, 1)
        elif self.homogeneous:
            raise ValueError("Options: homogeneous batches need batch_size=")
        for name, kind in (("delta", "in [0, 1]"), ("target_prune", "in [0, 1)")):
            if getattr(self, name) is not None:
                check_number("Options", name, getattr(self, name), f"{kind}, or None")
        check_number("Options", "min_per_class", self.min_per_class, "in [0, 1]")
        check_number("Options", "time_limit", self.time_limit, "above 0, in seconds")
        if not self.time_limit > 0:
            raise ValueError(f"Options: time_limit must be above 0 seconds, got {self.time_limit}")
        for name, words in _WORDS.items():
            if getattr(self, name) not in words:
                *others, last = (repr(word) for word in words)
                rule = f"{', '.join(others)} or {last}"
                raise ValueError(f"Options: {name} must be {rule}, got {getattr(self, name)!r}")
        if self.sharding == "external" and self.layout == "sharded":
            raise ValueError(
                'Options: layout must not be "sharded" with sharding="external", where every rank '
                "keeps all scores; leave out layout="
            )
        _check_labels(self.labels)


def _check_labels(labels: Any) -> None:
    if labels is None:
        return
    kind = np.asarray(labels).dtype
    if kind.kind not in "iu" and len(labels) > 0:
        raise TypeError(
            f"Options: labels must be whole numbers, the class of every sample, got {kind}; number "
            "the classes, as with numpy.unique(labels, return_inverse=True)[1]"
        )


def check_count(owner: str, name: str, value: Any, least: int, most: int | None = None) -> int:
    """The value as an int; ValueError unless it is a whole number of at least `least`."""
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if number < least or (most is not None and number > most):
        rule = f"a whole number of at least {least}"
        if most is not None and number > most:
            rule = f"a whole number in [{least}, {most}]"
        raise ValueError(f"{owner}: {name} must be {rule}, got {value!r}")
    return number


def check_number(owner: str, name: str, value: Any, rule: str) -> float:
    """The value as a float; TypeError, with the rule, unless it is a number."""
    try:
        if not isinstance(value, (str, bool)):
            return float(value)
    except (TypeError, ValueError, RuntimeError):
        pass
    raise TypeError(f"{owner}: {name} must be a number {rule}, got {value!r}")
