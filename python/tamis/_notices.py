"""Notices: what a run has to say about its loop, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._core import EpochPlan
from ._warnings import LoopWarning, MissedUpdateWarning, TargetWarning, warn

if TYPE_CHECKING:
    from ._core import PassSummary

_TARGET_TOLERANCE = 0.005


class Notices:
    """Says each thing once, as a warning at the user's line."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def _say(self, key: str, message: str, category: type[Warning] = LoopWarning) -> None:
        if key not in self._said:
            self._said.add(key)
            warn(message, category)

    def summary(self, summary: PassSummary) -> None:
        if summary["warning"]:
            self._say("missed", summary["warning"], MissedUpdateWarning)

    def doubtful(self, epoch: int) -> None:
        self._say(
            "missed",
            f"epoch {epoch}: another loop over this handler was open, so which loss belongs to "
            "which batch is not known and none of them was used; call handler.set_epoch(...) "
            "before each loop, or update(loss, batch)",
            MissedUpdateWarning,
        )

    def idle(self, epoch: int) -> None:
        self._say(
            "idle",
            f"epoch {epoch}: no batch of a whole pass had an update, so nothing was scored; call "
            "loss = handler.update(loss) before backward()",
        )

    def back(self, before: int, epoch: int) -> None:
        self._say(
            "back",
            f"set_epoch({epoch}): the run goes back from epoch {before}. A loop or framework that "
            "counts epochs from 0 after a resume does that; call "
            "loader.set_epoch(handler.next_epoch) before it, if it was not meant",
        )

    def late_group(self, num_ranks: int) -> None:
        self._say(
            "group",
            f"torch.distributed has {num_ranks} ranks, but this handler was made before it was "
            "initialised, so every rank plans alone; make the handler after init_process_group",
        )

    def stream_again(self, plan: EpochPlan) -> None:
        self._say(
            "stream",
            f"epoch {plan.epoch} has had all its {len(plan)} samples, and more come; call "
            "handler.set_epoch(epoch) before each epoch of a stream",
        )

    def plan(self, plan: EpochPlan, target: float | None) -> None:
        """Of a new plan: that it is empty, or that target_prune is out of reach."""
        if plan.num_selected == 0:
            self._say(
                "empty",
                f"epoch {plan.epoch}: the policy keeps none of {plan.num_samples} samples, so "
                "there is nothing to train on; lower prune_ratio",
            )
        if target is None or "lowest_reachable" not in plan.report:  # an annealing epoch
            return
        lowest, highest = plan.report["lowest_reachable"], plan.report["highest_reachable"]
        if not lowest - _TARGET_TOLERANCE <= target <= highest + _TARGET_TOLERANCE:
            self._say(
                "target",
                f"target_prune is {target:g}, but by the scores of epoch {plan.epoch} the whole "
                f"run can prune only between {lowest:.3f} and {highest:.3f}",
                TargetWarning,
            )
