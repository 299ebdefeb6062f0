"""Reports batches for which update() was not called."""

from __future__ import annotations

import warnings


class MissedUpdateWarning(UserWarning):
    """Batches were delivered for which update() was not called."""


class MissedUpdates:
    """Counts them, and warns at the first."""

    def __init__(self) -> None:
        self.count = 0
        self._has_warned = False

    def add(self, num_batches: int, epoch: int) -> None:
        self.count += num_batches
        if num_batches > 0 and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"update() was not called for {num_batches} delivered batch(es) of epoch {epoch}; "
                "they are not scored. Further ones are counted in handler.num_missed_updates "
                "without a warning",
                MissedUpdateWarning,
                stacklevel=5,
            )
