"""`python -m tamis`: the version, the methods and a self-check."""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING, Callable, List, Optional, Tuple

import numpy as np

from . import __version__, policies, scores
from ._core import Pruner

if TYPE_CHECKING:
    from ._core import OptionInfo


def _print_table(title: str, rows: List[Tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in rows)
    print(f"\n{title}")
    for name, summary in rows:
        print(f"  {name:<{width}}  {summary}")


def _word(default: float) -> str:
    return "first-batch-loss" if math.isnan(default) else f"{default:g}"


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise RuntimeError(message)


def _options(options: List[OptionInfo]) -> str:
    listed = ", ".join(f"{o['name']}={_word(o['default'])}" for o in options)
    return f" ({listed})" if listed else ""


def print_methods() -> None:
    """Lists the registered policies and scores with their options."""
    rows = [(name, i["summary"] + _options(i["options"])) for name, i in policies().items()]
    _print_table("Policies", rows)
    rows = [(name, i["summary"] + _options(i["options"])) for name, i in scores().items()]
    _print_table("Scores", rows)
    print('\nmethod= takes a policy, or one with "bls-" or "blr-" in front: bls-infobatch')


def check_core() -> str:
    """A small run through every policy: plans repeat, and a saved state is the state."""
    for name in policies():
        pruner = Pruner(1000, 4, policy=name, score="batch-loss")
        for epoch in range(4):
            pruner.start_epoch(epoch)
            first, second = pruner.preview(epoch).order, pruner.preview(epoch).order
            _require(np.array_equal(first, second), f"{name}: a plan differs from itself")
            for begin in range(0, pruner.plan_size, 50):
                indices = pruner.planned_indices(begin, 50)
                pruner.step(begin, 50, 1.0 + float(np.mean(indices)) / 1000)
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
    import torch
    from torch.utils.data import DataLoader

    from . import prune

    for num_workers in (0, 2):
        handler = prune(_Numbers(100), policy="none", score="last-batch-loss", epochs=2)
        loader = DataLoader(
            handler, sampler=handler.sampler, batch_size=8, num_workers=num_workers
        )
        for _ in range(2):
            expected = np.full(100, np.nan, dtype=np.float32)
            for batch in loader:
                loss = batch.float().mean()
                handler.update(loss)
                expected[batch.numpy()] = loss.item()
            same = np.array_equal(handler.scores, expected)
            _require(same, f"a loss reached a wrong batch with {num_workers} workers")
    return f"torch {torch.__version__}: losses booked exactly with 0 and 2 workers"


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


def main(arguments: Optional[List[str]] = None) -> int:
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
        passed = [run_check("core", check_core), run_check("DataLoader", check_torch)]
        return 0 if all(passed) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
