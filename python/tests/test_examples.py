"""The examples run, train and prune."""

import re
import runpy
import sys

import pytest
from support import EXAMPLES

ARGUMENTS = {
    "train_classifier.py": ["--epochs", "3", "--limit", "3000"],
    "detection_loss.py": ["--epochs", "3", "--size", "500"],
    "contrastive.py": ["--epochs", "3", "--size", "500"],
}


def test_every_example_is_tested():
    elsewhere = {"distributed_training.py"}  # by test_distributed.py
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(ARGUMENTS) | elsewhere


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_example_trains_and_prunes(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [name, *ARGUMENTS[name]])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    output = capsys.readouterr().out
    assert output.count("epoch ") == 3
    shares = [float(share) for share in re.findall(r"([\d.]+)%", output)]
    assert shares[-1] > 3.0
