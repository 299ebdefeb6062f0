"""The command `tamis` that pip installs."""

import stat
import subprocess
import sys

import pytest
from tamis import _program


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A program in the place of the real one, which says what it was called with."""
    path = tmp_path / "bin" / "tamis"
    path.parent.mkdir()
    path.write_text('#!/bin/sh\necho "$@"\nexit 3\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(_program, "_PATH", path)
    return path


def test_the_command_becomes_the_program(program):
    code = f"""
import pathlib, sys
from tamis import _program
_program._PATH = pathlib.Path({str(program)!r})
sys.argv = ["tamis", "plan", "--scores", "a b"]
_program.main()
"""
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{code}"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (result.stdout, result.returncode) == ("plan --scores a b\n", 3)


def test_a_program_that_fails_is_said_with_its_message(program):
    with pytest.raises(RuntimeError, match="--version failed"):
        _program.version()


def test_a_package_without_the_program_says_how_to_get_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_program, "_PATH", tmp_path / "bin" / "tamis")
    assert _program.main() == 1
    assert "pip install --only-binary tamis" in capsys.readouterr().err
    with pytest.raises(ImportError, match="libcli11-dev"):
        _program.version()
