"""Warnings, each said once, at the line of the user's own code."""

from __future__ import annotations

import os
import sys
import warnings

import torch.utils.data


class MissedUpdateWarning(UserWarning):
    """Batches were handed out for which update() was not called, or losses were dropped."""


class TargetWarning(UserWarning):
    """target_prune cannot be reached."""


_INTERNAL = tuple(os.path.dirname(str(m.__file__)) for m in (sys.modules[__package__], torch))


def warn(message: str, category: type[Warning]) -> None:
    """Warns at the nearest line that is neither ours nor torch's, where Python can tell."""
    if sys.version_info >= (3, 12):
        warnings.warn(message, category, skip_file_prefixes=_INTERNAL)
    else:
        warnings.warn(message, category, stacklevel=2)
