"""Warnings, each said once, at the line of the user's own code."""

from __future__ import annotations

import os
import sys
import warnings

import torch.utils.data


class LoopWarning(UserWarning):
    """The training loop does something that it hardly means: see the message."""


class MissedUpdateWarning(UserWarning):
    """Batches were handed out for which update() was not called, or losses were dropped."""


class TargetWarning(UserWarning):
    """target_prune cannot be reached."""


_INTERNAL = tuple(os.path.dirname(str(m.__file__)) for m in (sys.modules[__package__], torch))


def warn(message: str, category: type[Warning]) -> None:
    """Warns at the nearest line that is neither ours nor torch's."""
    if sys.version_info >= (3, 12):
        warnings.warn(message, category, skip_file_prefixes=_INTERNAL)
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INTERNAL):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
