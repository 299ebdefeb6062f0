"""The command line and the run folder: the budget, the contract, resuming, and what is refused."""

import json

import numpy as np
import pytest
import tamis
import torch
from conftest import Interrupted, lines, without_times

from recipes.kit import run

QUICK = {"epochs": 10, "prune": 0.3, "batch_size": 8, "rate": 0.1}
PRESETS = {"quick": QUICK, "full": {**QUICK, "epochs": 200}}
METRICS = [{"name": "error", "direction": "lower", "headline": True}]


def arguments(tmp_path, *more):
    return run.arguments("doc", PRESETS, ["--out", str(tmp_path / "run"), *more])


def train(tmp_path, *more):
    """A line through 64 points, as a recipe would do it."""
    args = arguments(tmp_path, *more)
    torch.manual_seed(args.seed)
    x = torch.linspace(-1, 1, 64)[:, None]
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), args.rate)
    points = torch.utils.data.TensorDataset(x, 2 * x)
    handler = tamis.prune(points, args.policy, epochs=args.epochs, options=args.options, **args.score)
    if args.watches:
        handler.watch(model)
    folder = run.Folder(args, handler, data="line", model="linear", metrics=METRICS)
    for _ in folder.epochs(model=model, optimizer=optimizer):
        for inputs, targets in handler.loader(args.batch_size):
            noise = torch.randn_like(inputs) * 0.1
            loss = handler.update((model(inputs + noise) - targets).square().mean())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        folder.end_epoch(lambda: {"error": (model(x) - 2 * x).square().mean().item()})
    if args.record:
        folder.record_true_losses((model(x) - 2 * x).square()[:, 0].detach())
    return handler


@pytest.mark.parametrize("method", run.METHODS)
def test_every_method_keeps_its_budget(method, tmp_path):
    train(tmp_path, "--method", method)
    used = sum(line["samples"] for line in lines(tmp_path / "run"))
    assert used == 640 if method == "full" else abs(used - 448) <= 0.02 * 640


def test_the_folder_is_that_of_the_contract(tmp_path):
    train(tmp_path, "--method", "fewer-epochs", "--seed", "3")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["format"] == "tamis-run" and config["format_version"] == 2
    assert config["method"] == {"name": "fewer-epochs", "full_epochs": 10}
    assert config["seed"] == 3 and config["epochs"] == 7 and config["metrics"] == METRICS
    assert config["data"] == {"name": "line", "num_train": 64}
    found = lines(tmp_path / "run")
    assert [line["epoch"] for line in found] == list(range(7))
    assert all(line["samples"] + line["pruned"] == 64 and line["train_seconds"] >= 0 for line in found)
    assert found[-1]["values"]["error"] < found[0]["values"]["error"]
    assert run.is_finished(tmp_path / "run")


@pytest.mark.parametrize("method", ["full", "bls-infobatch", "ogs-seta"])
def test_a_resumed_run_is_the_run_that_was_not_interrupted(method, tmp_path, interrupt):
    whole = train(tmp_path / "whole", "--method", method)
    restore = interrupt(4)
    with pytest.raises(Interrupted):
        train(tmp_path / "cut", "--method", method)
    assert len(lines(tmp_path / "cut" / "run")) == 4 and not run.is_finished(tmp_path / "cut" / "run")
    restore()
    resumed = train(tmp_path / "cut", "--method", method)
    assert without_times(tmp_path / "cut" / "run") == without_times(tmp_path / "whole" / "run")
    np.testing.assert_array_equal(resumed.scores, whole.scores)


def test_a_finished_run_is_left_alone(tmp_path):
    train(tmp_path)
    before = (tmp_path / "run" / "metrics.jsonl").read_text()
    train(tmp_path)
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == before


def test_a_folder_of_other_settings_is_refused(tmp_path):
    train(tmp_path)
    with pytest.raises(SystemExit, match="holds a run with another seed .0, now 1.; remove it, or choose another --out"):
        train(tmp_path, "--seed", "1")


def test_a_recorded_run_keeps_norms_and_true_losses(tmp_path):
    handler = train(tmp_path, "--record")
    names = {path.name for path in (tmp_path / "run" / "record").iterdir()}
    assert {"samples.safetensors", "steps-00000.safetensors", "losses-epoch00009.safetensors"} <= names
    assert handler.needs == "output-gradients" and handler.pruned_share == 0


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (["--method", "bls"], "--method must be one of full, fewer-epochs"),
        (["--method", "infobatch"], "infobatch needs the loss of each sample"),
        (["--set", "epoch=3"], "the settings are epochs, prune, batch_size, rate"),
        (["--set", "epochs=three"], "epochs must be int"),
        (["--record", "--method", "bls-seta"], "--method must be full, got bls-seta"),
    ],
)
def test_bad_command_lines_are_refused_with_the_cure(more, problem, tmp_path, capsys):
    with pytest.raises(SystemExit):
        arguments(tmp_path, *more)
    assert problem in capsys.readouterr().err


def test_settings_can_be_changed_one_by_one(tmp_path):
    args = arguments(tmp_path, "--preset", "full", "--set", "epochs=20", "--set", "rate=0.5")
    assert (args.epochs, args.rate, args.batch_size) == (20, 0.5, 8)
