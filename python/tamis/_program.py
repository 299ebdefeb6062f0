"""The program `tamis` that comes with the package: what pip's command runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from . import __version__

_PATH = Path(__file__).with_name("bin") / "tamis"
_MISSING = (
    f"tamis {__version__}: this install has the Python package without the program, because it was "
    "built where CLI11, fmt or nlohmann-json are missing. Install a wheel (pip install "
    "--only-binary tamis tamis), or install them (Debian: apt-get install libcli11-dev libfmt-dev "
    "nlohmann-json3-dev; Homebrew: brew install cli11 fmt nlohmann-json) and then the package again."
)


def version() -> str:
    """What the program says about itself. Throws ImportError if the package came without it."""
    if not _PATH.exists():
        raise ImportError(_MISSING)
    result = subprocess.run([_PATH, "--version"], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{_PATH} --version failed: {result.stderr.strip()}")
    return result.stdout.strip()


def main() -> int:
    """Becomes the program; returns only if there is none."""
    if _PATH.exists():
        os.execv(_PATH, ["tamis", *sys.argv[1:]])
    print(_MISSING, file=sys.stderr)
    return 1
