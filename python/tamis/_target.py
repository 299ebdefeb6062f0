"""Says when the share that a run was asked to prune is out of reach."""

from __future__ import annotations

import warnings
from typing import Any

_TOLERANCE = 0.005


class TargetWarning(UserWarning):
    """target_prune cannot be reached."""


class TargetWatch:
    """Warns once."""

    def __init__(self) -> None:
        self._has_warned = False

    def check(self, pruner: Any) -> None:
        """To be called when an epoch has started."""
        target = pruner.target_prune
        if target is None or self._has_warned or pruner.plan is None:
            return
        report = pruner.plan.report
        if "lowest_reachable" not in report:  # an annealing epoch
            return
        lowest, highest = report["lowest_reachable"], report["highest_reachable"]
        if lowest - _TOLERANCE <= target <= highest + _TOLERANCE:
            return
        self._has_warned = True
        warnings.warn(
            f"target_prune is {target:g}, but by the scores of epoch {pruner.epoch} the whole run "
            f"can prune only between {lowest:.3f} and {highest:.3f}",
            TargetWarning,
            stacklevel=6,
        )
