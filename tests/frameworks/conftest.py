"""Every test proves cells of the matrix; a whole session compares them with the documentation."""

import pathlib
import sys

import matrix
import pytest
import torch

sys.path.append(str(pathlib.Path(__file__).parents[2] / "python" / "tests"))

from fixtures import missed_updates_are_errors, seeded  # noqa: E402, F401


def pytest_addoption(parser):
    parser.addoption("--matrix", choices=["check", "write"], help="compare or write docs/frameworks.md")


def pytest_configure(config):
    config.addinivalue_line("markers", "cell(framework, situations, refused): what a test proves")


def pytest_collection_finish(session):
    """The table says what the tests claim; the session fails if one of them does not hold."""
    mode = session.config.getoption("--matrix")
    if mode is None:
        return
    proofs = {}
    for item in session.items:
        for mark in item.iter_markers("cell"):
            framework, situations, refused = mark.args
            for situation in situations:
                key = framework or item.callspec.params["name"], situation
                proofs.setdefault(key, set()).add("refused" if refused else "right")
    problem = matrix.publish(matrix.render(proofs), check=mode == "check")
    if problem:
        raise pytest.UsageError(problem)


@pytest.fixture(autouse=True)
def single_thread():
    torch.set_num_threads(1)
