"""Recipes run as users run them: by main() with a command line, on small parts of the real data."""

import json
import pathlib
import sys
import warnings

import pytest
import tamis
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


@pytest.fixture(autouse=True)
def one_thread_and_no_missed_updates():
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", tamis.MissedUpdateWarning)
        yield


def lines(folder):
    """Of metrics.jsonl."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def without_times(folder):
    timed = ("train_seconds", "test_seconds", "processor_share")
    return [{key: value for key, value in line.items() if key not in timed} for line in lines(folder)]


class Interrupted(Exception):
    pass


@pytest.fixture
def interrupt(monkeypatch):
    """interrupt(n): the run is killed after its n-th epoch, before its line is written."""
    from recipes.kit import run

    plain = run.Folder.end_epoch

    def after(count):
        def end_epoch(folder, evaluate):
            if len(folder._lines) == count:
                raise Interrupted
            plain(folder, evaluate)

        monkeypatch.setattr(run.Folder, "end_epoch", end_epoch)
        return lambda: monkeypatch.setattr(run.Folder, "end_epoch", plain)

    return after
