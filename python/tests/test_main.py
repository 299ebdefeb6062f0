"""python -m tamis."""

import os
import subprocess
import sys

import tamis
from tamis import __main__ as program


def test_the_module_prints_version_methods_and_a_passing_check():
    result = subprocess.run(
        [sys.executable, "-m", "tamis"],
        capture_output=True,
        text=True,
        timeout=120,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
    )
    assert result.returncode == 0, result.stderr
    assert f"tamis {tamis.__version__}" in result.stdout
    for name in [*tamis.methods(), *tamis.policies(), *tamis.scores()]:
        assert name in result.stdout
    assert "core: ok" in result.stdout
    assert "DataLoader: ok" in result.stdout


def test_a_reader_that_stops_early_gets_no_traceback():
    command = f"{sys.executable} -m tamis | true"
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    result = subprocess.run(
        command, shell=True, capture_output=True, text=True, timeout=120, env=environment
    )
    assert result.stderr == ""


def test_one_part_can_be_asked_for(capsys):
    assert program.main(["version"]) == 0
    assert capsys.readouterr().out == f"tamis {tamis.__version__}\n"
    assert program.main(["methods"]) == 0
    assert "first-batch-loss" in capsys.readouterr().out


def test_a_failed_check_is_said_and_counted(capsys, monkeypatch):
    def fail():
        raise RuntimeError("a loss reached a wrong batch")

    monkeypatch.setattr(program, "check_torch", fail)
    assert program.main(["check"]) == 1
    assert "DataLoader: FAILED, a loss reached a wrong batch" in capsys.readouterr().out
