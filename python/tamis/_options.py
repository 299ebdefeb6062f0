"""Options: what few runs need to say."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

DEFAULT_TIME_LIMIT = 30.0  # seconds


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
        layout: With torch.distributed: who keeps which scores, "replicated" (every rank all of
            them), "sharded" (every rank those of its part) or "automatic".
        remainder: With torch.distributed: "pad" uses some samples twice where an epoch cannot be
            divided equally, "drop" leaves some out.
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
    layout: str = "automatic"
    remainder: str = "pad"
    time_limit: float = DEFAULT_TIME_LIMIT

    def __post_init__(self) -> None:
        check_count("Options", "seed", self.seed, 0)
        if self.batch_size is not None:
            check_count("Options", "batch_size", self.batch_size, 1)
        elif self.homogeneous:
            raise ValueError("Options: homogeneous batches need batch_size=")
        if not self.time_limit > 0:
            raise ValueError(f"Options: time_limit must be above 0 seconds, got {self.time_limit}")


def check_count(owner: str, name: str, value: Any, least: int) -> int:
    """The value as an int; ValueError unless it is a whole number of at least `least`."""
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if number < least:
        rule = f"a whole number of at least {least}"
        raise ValueError(f"{owner}: {name} must be {rule}, got {value!r}")
    return number
