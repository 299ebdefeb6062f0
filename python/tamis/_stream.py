"""Stream and Keeps: sources of samples with an order of their own."""

from __future__ import annotations

from typing import Any

import torch

from ._batches import indices_of
from ._core import EpochPlan
from ._options import check_count


class Stream:
    """In the place of a data set: `tamis.prune(tamis.Stream(1_281_167), ...)`.

    The samples are known by ids from 0 to num_samples - 1, which the source must give: a number
    stored with each sample, or its number in the unfiltered stream.
    """

    def __init__(self, num_samples: int) -> None:
        self.num_samples = check_count("Stream", "num_samples", num_samples, 1)

    def __len__(self) -> int:
        return self.num_samples


class Keeps:
    """Which samples the running epoch uses; a filter for streams.

    Its memory is shared with worker processes, also with those that live longer than an epoch.
    """

    def __init__(self, num_samples: int) -> None:
        kept = torch.ones(num_samples, dtype=torch.bool)
        self._kept: torch.Tensor = kept.share_memory_()  # type: ignore[no-untyped-call]

    def show(self, plan: EpochPlan) -> None:
        """From now on the selection of this plan."""
        self._kept.copy_(torch.from_numpy(plan.kept))

    def __call__(self, ids: Any) -> Any:
        """A bool for one id, or an array of them for several. Raises IndexError."""
        indices = indices_of(ids)
        size = len(self._kept)
        if indices.size > 0 and not 0 <= indices.min() <= indices.max() < size:
            raise IndexError(
                f"keeps: an id must be in [0, {size}), the samples of the run, got "
                f"{indices.min()} to {indices.max()}"
            )
        kept = self._kept.numpy()[indices]
        return bool(kept) if indices.ndim == 0 else kept
