#!/usr/bin/env python3
"""Installs tamis with pip in fresh environments, tries it there, and prints a table.

scripts/test_installs.py [--torch SPEC] [--wheel FILE] PYTHON...

For every interpreter: an empty virtual environment, `pip install` of this folder with build isolation (or of FILE), which must
leave nothing in the folder, `python -m tamis`, the program's commands; with --torch then `pip install SPEC` (several GB, PyPI's
build for CUDA) and `python -m tamis` once more. The environments are removed. Exit code 1 if anything failed.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

SOURCES = pathlib.Path(__file__).resolve().parent.parent
# One run of every command that needs no LibTorch and no file of a run.
COMMANDS = {
    "plan": (["plan", "--scores", "-", "--policy", "infobatch"], "[1, 2, 3, 4]"),
    "simulate": (["simulate", "--epochs", "2", "--samples", "1000"], ""),
    "replay": (["replay", "-", "--score", "batch-loss"], '{"num_samples": 1, "batches": [[0]], "losses": [[2]]}'),
}


class Failure(Exception):
    """A command failed; holds its output."""


def run(*command: object, text: str = "", code: int = 0) -> str:
    result = subprocess.run([str(part) for part in command], input=text, capture_output=True, text=True, cwd=tempfile.gettempdir())
    if result.returncode != code:
        raise Failure(f"{' '.join(map(str, command))}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout + result.stderr


def timed(*command: object) -> str:
    """Runs a command; returns its time and its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    run(*command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{time.monotonic() - start:.0f} s ({processor:.0f} s)"


def listing() -> set[pathlib.Path]:
    """What lies where a build could leave something."""
    return {path for folder in (SOURCES, SOURCES / "report") for path in folder.iterdir()}


def check_package(python: pathlib.Path, with_torch: bool) -> str:
    output = run(python, "-m", "tamis")
    for line in ["core: ok", "program: ok", "DataLoader: ok" if with_torch else "DataLoader: not available"]:
        if line not in output:
            raise Failure(f"`python -m tamis` did not say \"{line}\":\n{output}")
    return re.findall(r"torch (\S+):", output)[0] if with_torch else "ok"


def check_program(tamis: pathlib.Path) -> str:
    for arguments, text in COMMANDS.values():
        run(tamis, *arguments, text=text)
    if "LibTorch" not in run(tamis, "train", code=1):
        raise Failure("`tamis train` does not say what it needs")
    run(tamis, "report", "--help")
    return "ok"


def try_install(interpreter: str, what: pathlib.Path, torch: str | None) -> list[str]:
    version = run(interpreter, "-c", "import platform; print(platform.python_version())").strip()
    with tempfile.TemporaryDirectory(prefix="tamis-install-") as folder:
        run(interpreter, "-m", "venv", folder)
        scripts = pathlib.Path(folder) / "bin"
        python = scripts / "python"
        before = listing()
        install = timed(python, "-m", "pip", "install", "--no-cache-dir", what)
        if left := listing() - before:
            raise Failure(f"pip left in the sources: {', '.join(map(str, sorted(left)))}")
        cells = [version, install, check_package(python, False), check_program(scripts / "tamis")]
        if torch:
            cells += [timed(python, "-m", "pip", "install", "--no-cache-dir", torch), check_package(python, True)]
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", metavar="SPEC", help='also with this torch, for example "torch" or "torch==2.15.0"')
    parser.add_argument("--wheel", metavar="FILE", type=pathlib.Path, help="install this in the place of the sources")
    parser.add_argument("interpreters", metavar="PYTHON", nargs="+")
    arguments = parser.parse_args()
    what = arguments.wheel.resolve() if arguments.wheel else SOURCES
    titles = ["Python", "pip install (processor)", "python -m tamis", "commands"]
    titles += ["pip install torch", "with torch"] if arguments.torch else []
    print("| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|", flush=True)
    failures = []
    for interpreter in arguments.interpreters:
        try:
            print("| " + " | ".join(try_install(interpreter, what, arguments.torch)) + " |", flush=True)
        except Failure as failure:
            failures.append(failure)
            print(f"| {interpreter} | FAILED |", flush=True)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
