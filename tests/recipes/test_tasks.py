"""The page of the tasks says what the results say, also against pruning, and nothing of too few seeds."""

import importlib
import json
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import render_tasks  # noqa: E402
import task_list  # noqa: E402
import tasks  # noqa: E402


def interval(mean, supported):
    return {"mean": mean, "low": mean - 0.01, "high": mean + 0.01, "supported": supported}


def row(method, mean, difference=None, supported=False):
    saved = None if method == "full" else 0.28
    # fewer-epochs reaches 0.66, random-dynamic 0.68
    versus = [{"baseline": "", "difference": interval(mean - other, abs(mean - other) > 0.015)} for other in (0.66, 0.68)]
    return {
        "method": method, "mean": mean, "deviation": 0.005, "difference": difference and interval(difference, supported),
        "time_saved": saved, "equal_budget": versus if method in render_tasks.SCORED else [],
    }


def result(**changes):
    rows = [row("full", 0.7), row("fewer-epochs", 0.66, -0.04, True), row("random-dynamic", 0.68, -0.02)]
    rows += [row("bls-infobatch", 0.67, -0.03), row("bls-seta", 0.65, -0.05, True), row("ogs-infobatch", 0.69, -0.01)]
    rows += [row("ogs-seta", 0.66, -0.04)]
    return {
        "command": "make tasks TASKS=resnet18", "commit": "abc", "seeds": [0, 1, 2],
        "environment": {"cpu": "some", "torch": "2", "date": "2026-01-01T00:00:00"},
        "data": {"name": "cifar10", "num_train": 4000}, "model": {"name": "resnet18"},
        "training": {"epochs": 10, "batch_size": 64, "threads": 1},
        "metrics": [{"name": "acc@1", "unit": "fraction", "direction": "higher", "headline": True}],
        "summary": {"rows": rows}, "used_share": {name: 1.0 if name == "full" else 0.7 for name in task_list.METHODS},
        "fidelity": {"": {"BLS": 0.1, "BLR": 0.2, "OGS": 0.9}}, **changes,
    }


def test_the_table_has_our_figures_and_the_papers():
    text = render_tasks.page({"resnet18": result()})
    assert "| full | 70.00 ± 0.50 | - | 0.0 % | - | 78.2 |" in text
    assert "| bls-infobatch | 67.00 ± 0.50 | -3.00 [-4.00, -2.00] | 30.0 % | 28 % | 78.3, 33.9 % pruned |" in text
    assert "| Classification, ResNet-18 | 0.100 | 0.200 | 0.900 |" in text


def test_a_saving_beyond_what_was_pruned_is_marked():
    assert "more than was pruned" not in render_tasks.page({"resnet18": result()})
    marked = result()
    marked["summary"]["rows"][3] |= {"time_saved": 0.34, "more_saved_than_pruned": True}
    text = render_tasks.page({"resnet18": marked})
    assert "| 30.0 % | 34 %* | 78.3, 33.9 % pruned |" in text
    assert "`*`: more than was pruned, which pruning cannot save: something else slowed full down." in text


def test_what_pruning_costs_is_said():
    text = render_tasks.page({"resnet18": result()})
    assert "Worse than full, beyond what the seeds explain: fewer-epochs, bls-seta." in text
    assert "Above both equal-budget baselines: ogs-infobatch (means only)." in text
    lower = result(metrics=[{"name": "distance", "direction": "lower", "headline": True}])
    assert "Better than full: fewer-epochs, bls-seta." in render_tasks.verdict(lower)


def test_tasks_without_results_are_named():
    text = render_tasks.page({"resnet18": result()})
    rows = {line.split(" | ")[0]: line for line in text.splitlines() if line.startswith("| ")}
    assert rows["| Object detection, YOLOv5n"].endswith("| 38.5, 21.6 % pruned | 38.3, 25.2 % pruned | not measured yet |")
    assert rows["| Classification, YOLOv5n-cls"].endswith("| not measured yet |") and "Not measured yet" in text


def test_two_seeds_are_not_published(tmp_path):
    (tmp_path / "task-resnet18.json").write_text(json.dumps(result(seeds=[0, 1])))
    (tmp_path / "task-vae.json").write_text(json.dumps(result()))
    assert list(render_tasks.load(tmp_path)) == ["vae"]


def test_progress_counts_finished_runs(tmp_path, monkeypatch):
    for name, count in (("full-seed0", 2), ("full-seed1", 1)):
        folder = tmp_path / "vae" / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text('{"epochs": 2}')
        (folder / "metrics.jsonl").write_text("{}\n" * count)
    chosen = [task_list.find("vae")]
    monkeypatch.setattr(tasks.time, "monotonic", lambda: 60.0)
    assert tasks.estimate(tmp_path, chosen, started=0.0, before=1) == "1 of 21 runs done"
    assert tasks.estimate(tmp_path, chosen, started=0.0, before=0) == "1 of 21 runs done, about 20 minutes left"


@pytest.mark.parametrize("task", task_list.TASKS, ids=lambda task: task.key)
def test_every_task_is_a_recipe_whose_settings_it_knows(task, tmp_path):
    import importlib

    from recipes.kit import run

    module = importlib.import_module(task.module)
    changes = [part for setting in task.settings for part in ("--set", setting)]
    args = run.arguments(module.__doc__, module.PRESETS, ["--out", str(tmp_path), *changes])
    assert args.prune == 0.3 and set(task.paper) <= set(task_list.METHODS)


def test_the_tally_counts_tasks_in_which_a_method_is_better_or_worse_than_both_baselines():
    """bls-infobatch lies between them, bls-seta below both (one by 0.01 only), ogs-infobatch above both, ogs-seta at the lower."""
    twice = {"resnet18": result(), "vit": result()}
    assert [line.split("|")[1:7] for line in render_tasks.tally(twice).splitlines()[2:]] == [
        [f" {text} " for text in (method, *map(str, counts))]
        for method, *counts in (
            ("bls-infobatch", 2, 0, 0, 0, 0), ("bls-seta", 2, 0, 0, 2, 0),
            ("ogs-infobatch", 2, 2, 0, 0, 0), ("ogs-seta", 2, 0, 0, 0, 0),
        )
    ]
    for one in twice["vit"]["summary"]["rows"]:
        one.pop("equal_budget")  # as where a method left out more or less than they did
    assert "| ogs-infobatch | 1 | 1 | 0 | 0 | 0 |" in render_tasks.tally(twice)
    assert "No method is shown" in render_tasks.finding(twice)
    for versus in twice["resnet18"]["summary"]["rows"][5]["equal_budget"]:
        versus["difference"]["supported"] = True
    assert render_tasks.finding(twice).endswith("some of them: ogs-infobatch.")
    lower = [{**headline, "direction": "lower"} for headline in result()["metrics"]]
    assert "| bls-seta | 1 | 1 | 0 | 0 | 0 |" in render_tasks.tally({"vit": result(metrics=lower)})


@pytest.mark.parametrize("task", task_list.TASKS, ids=lambda task: task.key)
def test_fewer_epochs_are_the_budget_of_a_quick_run_exactly(task):
    settings = importlib.import_module(task.module).PRESETS["quick"]
    fewer = (1 - settings["prune"]) * settings["epochs"]
    assert fewer == pytest.approx(round(fewer))


def test_a_command_that_fails_ends_the_tasks_with_its_name():
    with pytest.raises(SystemExit, match="stopped at: .*python.* -c 'raise SystemExit.3.'"):
        tasks.run([sys.executable, "-c", "raise SystemExit(3)"])
