"""`python -m tamis`: the version, the methods and a self-check."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from . import __version__, _program, methods, policies, scores
from ._core import Pruner

if TYPE_CHECKING:
    from ._core import OptionInfo


def _print_table(title: str, rows: Iterable[tuple[str, str]]) -> None:
    listed = list(rows)
    width = max(len(name) for name, _ in listed)
    print(f"\n{title}")
    for name, summary in listed:
        print(f"  {name:<{width}}  {summary}")


def _options(options: list[OptionInfo]) -> str:
    def word(default: float) -> str:
        return "first-batch-loss" if math.isnan(default) else f"{default:g}"

    listed = ", ".join(f"{o['name']}={word(o['default'])}" for o in options)
    return f" ({listed})" if listed else ""


def print_methods() -> None:
    """Lists the registered methods, and policies and scores with their options."""
    _print_table("Methods", ((name, info["summary"]) for name, info in methods().items()))
    _print_table(
        "Policies", ((n, i["summary"] + _options(i["options"])) for n, i in policies().items())
    )
    _print_table(
        "Scores", ((n, i["summary"] + _options(i["options"])) for n, i in scores().items())
    )


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise RuntimeError(message)


def check_core() -> str:
    """A small run through every policy: plans repeat, and a saved state is the state."""
    for name in policies():
        pruner = Pruner(1000, 4, policy=name, score="batch-loss")
        for epoch in range(4):
            pruner.start_epoch(epoch)
            first, second = pruner.preview(epoch).order, pruner.preview(epoch).order
            _require(np.array_equal(first, second), f"{name}: a plan differs from itself")
            plan = pruner.plan
            assert plan is not None
            for begin in range(0, len(plan), 50):
                count = min(50, len(plan) - begin)
                mean = float(np.mean(plan.samples(begin, count)))
                pruner.observe(begin, count, 1.0 + mean / 1000)
        copy = Pruner(1000, 4, policy=name, score="batch-loss")
        copy.deserialize(pruner.serialize())
        same = np.array_equal(copy.scores, pruner.scores, equal_nan=True)
        _require(same, f"{name}: the loaded state differs from the saved one")
    return f"{len(policies())} policies planned, scored, saved and loaded"


class _Numbers:
    """A data set of the numbers 0 to size - 1."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> int:
        return index


def check_torch() -> str:
    """Every loss reaches its own batch through this torch's DataLoader."""
    from . import prune  # before torch, because it says what to install

    import torch

    for num_workers in (0, 2):
        handler = prune(_Numbers(100), "full", epochs=2, score="last-batch-loss")
        loader = handler.loader(batch_size=8, num_workers=num_workers)
        for _ in range(2):
            expected = np.full(100, np.nan, dtype=np.float32)
            for batch in loader:
                loss = batch.float().mean()
                handler.update(loss)
                expected[batch.numpy()] = loss.item()
            same = np.array_equal(handler.scores, expected)
            _require(same, f"a loss reached a wrong batch with {num_workers} workers")
    return f"torch {torch.__version__}: losses attributed exactly with 0 and 2 workers"


def run_check(name: str, check: Callable[[], str]) -> bool:
    """Prints one line; returns False if the check failed."""
    try:
        print(f"  {name}: ok, {check()}")
    except ImportError as error:
        print(f"  {name}: not available ({error})")
    except (RuntimeError, ValueError) as error:
        print(f"  {name}: FAILED, {error}")
        return False
    return True


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 if every check passed."""
    parser = argparse.ArgumentParser(
        prog="python -m tamis", description="Version, methods and self-check of tamis."
    )
    parser.add_argument("what", nargs="?", choices=("version", "methods", "check"))
    what = parser.parse_args(arguments).what
    if what in (None, "version"):
        print(f"tamis {__version__}")
    if what in (None, "methods"):
        print_methods()
    if what in (None, "check"):
        print("\nSelf-check")
        checks = {"core": check_core, "DataLoader": check_torch, "program": _program.version}
        passed = [run_check(name, check) for name, check in checks.items()]
        return 0 if all(passed) else 1
    return 0


def run() -> int:
    """main() for a terminal: who reads the output may stop, as `| head` does."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


if __name__ == "__main__":
    sys.exit(run())
