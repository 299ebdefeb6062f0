"""RunView: what is known about a run, for people and for loggers."""

from __future__ import annotations

import difflib
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from ._core import EpochPlan
from ._options import check_count
from ._run import Run


class RunView:
    """The part of a handler that only reads."""

    _run: Run
    _num_samples: int

    def __len__(self) -> int:
        """Samples of the data set."""
        return self._num_samples

    @property
    def options(self) -> dict[str, Any]:
        """Score, policy, schedule, seed and so on, defaults filled in; labels numbered from 0."""
        return self._run.pruner.options

    @property
    def epochs(self) -> int:
        """Length of the run."""
        return self._run.pruner.num_epochs

    @property
    def epoch(self) -> int:
        """The running epoch; 0 before the first."""
        return self._run.epoch

    @property
    def next_epoch(self) -> int:
        """The epoch that the next iteration gives, also of a loaded state; `epochs` at the end."""
        return self._run.next_epoch

    @property
    def progress(self) -> float:
        """Share of the run that is done, in [0, 1]; see lr_by_progress."""
        return self._run.progress

    @property
    def num_ranks(self) -> int:
        """Processes that the handler was made for."""
        return self._run.num_ranks

    @property
    def steps_in_epoch(self) -> int:
        """Batches of the whole current epoch: the running one, and once it is done the next.

        With several ranks: of the running one until all ranks start the next.
        """
        return self._run.num_batches(is_rest=False)

    @property
    def steps_left(self) -> int:
        """Batches of the current epoch that are still to come."""
        return self._run.num_batches(is_rest=True)

    @property
    def plan(self) -> EpochPlan | None:
        """The running epoch's plan; None before the first."""
        return self._run.pruner.plan

    @property
    def weights(self) -> NDArray[np.float32]:
        """What the loss of each sample is multiplied by in the running epoch."""
        plan = self.plan
        return np.ones(len(self), dtype=np.float32) if plan is None else plan.weights

    @property
    def scores(self) -> NDArray[np.float32]:
        """One number per sample, NaN where unscored.

        Losses that are counted in order are part of it once their pass is complete, or after
        end_pass(). With ranks: as of the start of the epoch; sharded: of this rank's part.
        """
        self._run.settle()
        return self._run.pruner.scores

    def suspects(self, k: int) -> NDArray[np.int64]:
        """The k samples with the highest scores, hardest first: look here for wrong labels.

        Only as good as the score: with watched outputs, or one loss per sample. With ranks, of the
        samples whose scores this rank has.
        """
        k = check_count("suspects", "k", k, 1)
        scores = self.scores
        scored = np.flatnonzero(np.isfinite(scores))
        hardest = scored[np.argsort(-scores[scored], kind="stable")[:k]]
        return hardest + self._run.pruner.first_sample

    @property
    def needs(self) -> Literal["mean-loss", "sample-losses", "output-gradients"]:
        """What update() must get: the mean loss, one loss per sample, or watched outputs."""
        return self._run.pruner.needs

    @property
    def pruned_share(self) -> float:
        """Share of the run so far that was left out."""
        return self._run.pruner.pruned_share

    @property
    def num_observations(self) -> int:
        """Losses that became part of the scores."""
        self._run.settle()
        return self._run.pruner.num_observations

    @property
    def num_skipped_observations(self) -> int:
        """Losses that did not: NaN, infinite, or of no use to the score."""
        self._run.settle()
        return self._run.pruner.num_skipped_observations

    @property
    def num_missed_updates(self) -> int:
        """Batches of the passes so far that had no update."""
        self._run.end_pass(only_if_over=True)
        return self._run.num_missed

    def metrics(self, with_scores: bool = True) -> dict[str, float]:
        """Numbers of the running epoch for any logger, such as `wandb.log(handler.metrics())`.

        Statistics of the scores take a look at all of them: leave them out to log every step.
        """
        plan = self.plan
        figures = {
            "tamis/epoch": float(self.epoch),
            "tamis/progress": self.progress,
            "tamis/selected": float(len(self) if plan is None else plan.num_selected),
            "tamis/selected_share": 1.0 if plan is None else plan.num_selected / len(self),
            "tamis/pruned_share": self.pruned_share,
            "tamis/observations": float(self.num_observations),
            "tamis/skipped_observations": float(self.num_skipped_observations),
            "tamis/missed_updates": float(self._run.num_missed),
        }
        if not with_scores:
            return figures
        scores = self.scores
        scored = scores[~np.isnan(scores)]
        figures["tamis/scored_share"] = len(scored) / max(len(scores), 1)
        if len(scored) > 0:
            low, median, high = np.quantile(scored, (0.1, 0.5, 0.9))
            figures["tamis/score_mean"] = float(scored.mean(dtype=np.float64))
            figures["tamis/score_p10"] = float(low)
            figures["tamis/score_median"] = float(median)
            figures["tamis/score_p90"] = float(high)
        return figures

    def summary(self) -> str:
        """The running epoch in one line."""
        now = self.metrics()
        selected = int(now["tamis/selected"])
        line = (
            f"epoch {self.epoch}: {selected:,} of {len(self):,} samples, "
            f"{self.pruned_share:.1%} of the run pruned, {now['tamis/scored_share']:.0%} scored"
        )
        if "tamis/score_mean" in now:
            line += f", mean score {now['tamis/score_mean']:.4g}"
        for name, words in (("skipped_observations", "losses"), ("missed_updates", "batches")):
            if count := int(now[f"tamis/{name}"]):
                line += f", {count:,} {words} {'skipped' if words == 'losses' else 'missed'}"
        return line

    def __repr__(self) -> str:
        options = self.options
        ranks = f", {self._run.num_ranks} ranks" if self._run.num_ranks > 1 else ""
        return (
            f"<{type(self).__name__}: {options['score']} score, {options['policy']} policy, "
            f"{len(self):,} samples, epoch {self.epoch} of {self.epochs}{ranks}>"
        )

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(_unknown(type(self), name), name=name, obj=self)


def _unknown(kind: type, name: str) -> str:
    """The message for an attribute that does not exist."""
    known = [known for known in dir(kind) if not known.startswith("_")]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    if not close and hasattr(list, name):
        hint = "; the data set is handler.data"
    return f"{kind.__name__} has no attribute {name}{hint}"
