"""The table of docs/frameworks.md: framework x version x situation, from the marks of the tests."""

from __future__ import annotations

import importlib.metadata
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "frameworks.md"
SITUATIONS = (
    "plain",
    "accumulation",
    "workers",
    "resume",
    "validation",
    "last skipped",
    "break",
    "two processes",
)
# Name in the table: the distribution whose version is shown.
FRAMEWORKS = {
    "HF Trainer": "transformers",
    "TRL SFTTrainer": "trl",
    "Lightning": "lightning",
    "Accelerate": "accelerate",
    "Accelerate, prepared": "accelerate",
    "torchrun DDP": "torch",
    "timm": "timm",
    "StatefulDataLoader": "torchdata",
    "Ray Train": "ray",
    "Keras on torch": "keras",
    "JAX with Grain": "grain",
}


def cell(framework, *situations, refused=False):
    """Marks a test as the proof of cells of the table; framework None: the parameter `name`."""
    assert framework is None or framework in FRAMEWORKS
    assert set(situations) <= set(SITUATIONS)
    return pytest.mark.cell(framework, situations, refused)


def render(proofs):
    """The table of {(framework, situation): {"right", "refused"}}; every cell has a test."""
    for framework in FRAMEWORKS:
        for situation in SITUATIONS:
            assert (framework, situation) in proofs, f"no test of {framework}: {situation}"
    rows = [
        "| framework | version | " + " | ".join(SITUATIONS) + " |",
        "|---|---|" + ":-:|" * len(SITUATIONS),
    ]
    for framework, package in FRAMEWORKS.items():
        cells = [_cell(proofs[framework, situation]) for situation in SITUATIONS]
        version = f"{package} {importlib.metadata.version(package)}"
        rows.append(f"| {framework} | {version} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _cell(outcomes):
    return ", ".join(sorted(outcomes, reverse=True))


def publish(table, check):
    """Puts the table into the page; with `check` returns what is wrong with the page instead."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from pages import with_part

    text = PAGE.read_text()
    updated = with_part(text, "matrix", "\n" + table + "\n")
    if updated == text:
        return None
    if not check:
        PAGE.write_text(updated)
        return None
    return "docs/frameworks.md: the matrix is not what the tests have shown; make frameworks-matrix"
