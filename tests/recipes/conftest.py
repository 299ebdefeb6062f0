"""Recipes run as users run them: by main() with a command line, on small parts of the real data."""

import json
import pathlib
import sys
import warnings

import pytest
import tamis
import torch
from truth import Log, judge

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
    timed = ("train_seconds", "test_seconds", "processor_seconds", "processor_share")
    return [{key: value for key, value in line.items() if key not in timed} for line in lines(folder)]


def command(out, *settings, method="bls-infobatch", seed=0):
    changes = [part for setting in settings for part in ("--set", setting)]
    return ["--out", str(out), "--method", method, "--seed", str(seed), *changes]


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


def check_resumed(recipe, settings, folder, interrupt, method="ogs-infobatch"):
    """A run that is killed after two epochs and started again is the one that was not."""
    recipe.main(command(folder / "whole", *settings, method=method))
    restore = interrupt(2)
    with pytest.raises(Interrupted):
        recipe.main(command(folder / "cut", *settings, method=method))
    restore()
    recipe.main(command(folder / "cut", *settings, method=method))
    assert without_times(folder / "cut") == without_times(folder / "whole")


def check_scored(recipe, model, indices, arguments, monkeypatch):
    """Plan, weights and scores are those of the samples that `indices` finds in what the model was called with in each step."""
    log, seen, handlers, plain, forward = Log(), [], [], tamis.Handler.update, model.forward

    def update(handler, loss, *more, **options):
        handlers.append(handler)
        log.see(handler.epoch, seen[-1], loss)
        return plain(handler, loss, *more, **options)

    def watched(module, *inputs):
        if torch.is_grad_enabled():
            seen.append(indices(*inputs))
        return forward(module, *inputs)

    monkeypatch.setattr(tamis.Handler, "update", update)
    monkeypatch.setattr(model, "forward", watched)
    recipe.main(arguments)
    judge(log.steps, handlers[-1].scores)
