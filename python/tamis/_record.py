"""RecordedRun: the part of a handler that records a run for `tamis analyze` and `tamis replay`."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _losses
from ._view import RunView


class RecordedRun(RunView):
    """Records every update, if asked to."""

    def record(
        self,
        folder: str | os.PathLike[str],
        num_recorded: int = 10_000,
        *,
        samples: Any = None,
        seed: int = 0,
    ) -> None:
        """Records every update from now on, for `tamis analyze` and `tamis replay`.

        Each step's samples and mean loss are kept, and the per-sample losses of the recorded
        samples where update() gets one loss per sample. A resumed run calls load_state_dict() first
        and then goes on with the recording that it had. With ranks, rank 0 records all of them.

        Args:
            folder: Where the files go; made if it is missing.
            num_recorded: Samples whose losses are kept, drawn at random; all if not as many.
            samples: These samples instead.
            seed: Draws them.
        """
        self._run.settle()
        self._run.pruner.record(folder, num_recorded=num_recorded, samples=samples, seed=seed)

    @property
    def recorded_samples(self) -> NDArray[np.uint32] | None:
        """The samples whose losses are recorded, ascending; None without a recording."""
        return self._run.pruner.recorded_samples

    def record_true_losses(self, losses: Any) -> None:
        """Keeps what the model now loses on each of recorded_samples, measured by yourself.

        `tamis analyze` compares the scores with them. Without them it takes the per-sample losses
        that update() has seen, if any.
        """
        self._run.settle()
        self._run.pruner.record_true_losses(_losses.to_host(losses))

    def flush_recording(self) -> None:
        """Puts every recorded step on disk; state_dict() and the end of the handler do so too."""
        self._run.settle()
        self._run.pruner.flush_recording()
