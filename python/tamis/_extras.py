"""Packages that tamis works without: what needs one names the extra that installs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_TITLES = {"torch": "PyTorch", "pytorch_lightning": "lightning"}


@contextmanager
def needed_by(what: str, extra: str, *packages: str) -> Iterator[None]:
    """Around imports: one of these packages that is missing becomes an ImportError with the cure."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in packages:
            raise
        message = f"{what} needs {_TITLES.get(error.name, error.name)}: pip install tamis[{extra}]"
        raise ImportError(message, name=error.name) from error
