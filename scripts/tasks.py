#!/usr/bin/env python3
"""Runs the paper's tasks: every recipe with every method and seed, and the fidelity of its scores.

Stopped and started again it goes on where it stopped. Every task that is complete is copied to benchmarks/results/task-KEY.json,
from which scripts/render_tasks.py makes docs/tasks.md.

  scripts/tasks.py build/bin/tamis                  all tasks
  scripts/tasks.py build/bin/tamis vae detection    these
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

import pages
import task_list

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SCORES = {"batch-loss": "BLS", "reconstruction": "BLR", "output-gradient": "OGS"}


def command(python, task, changes=()):
    settings = [part for change in (*task.settings, *changes) for part in ("--set", change)]
    return [*shlex.split(python), "-m", task.module, "--preset", "quick", *settings]


def run(arguments):
    """From the root, one thread each, so that figures do not depend on the number of cores."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT}:{ROOT / 'build' / 'python'}"}
    call = list(map(str, arguments))
    if subprocess.run(call, cwd=ROOT, env=environment).returncode:
        sys.exit(f"tasks.py: stopped at: {shlex.join(call)}")  # which has said why


def num_finished(folder):
    """Runs of a comparison that have all of their lines."""
    found = 0
    for config in folder.glob("*-seed*/config.json"):
        lines = config.parent / "metrics.jsonl"
        found += lines.exists() and len(lines.read_text().splitlines()) == json.loads(config.read_text())["epochs"]
    return found


def estimate(folder, tasks, started, before):
    """What is left, by the mean time of the runs that were made since the start."""
    total = len(tasks) * len(task_list.METHODS) * len(task_list.SEEDS)
    done = sum(num_finished(folder / task.key) for task in tasks)
    if done == before:
        return f"{done} of {total} runs done"
    each = (time.monotonic() - started) / (done - before)
    return f"{done} of {total} runs done, about {each * (total - done) / 60:.0f} minutes left"


def fidelity(program, python, task, folder, name, changes):
    """Spearman of each score with the brute-force losses at the end of a run without pruning."""
    out = folder / "fidelity" / f"{task.key}{'-' + name.replace(' ', '-') if name else ''}"
    run([*command(python, task, changes), "--method", "full", "--record", "--seed", "0", "--out", out])
    run([program, "analyze", out])
    found = json.loads((out / "analysis.json").read_text())
    return {SCORES[row["score"]]: row["spearman"] for row in last_fidelity(found) if row["score"] in SCORES}


def last_fidelity(analysis):
    """Rows of the last epoch: {"score", "spearman"}."""
    rows = []
    for row in analysis["fidelity"]["scores"]:
        rows.append({"score": row["name"], "spearman": row["spearman"][-1]})
    return rows


def collect(task, folder, measured):
    comparison = folder / task.key
    config = json.loads(next(comparison.glob("full-seed*/config.json")).read_text())
    head = ["git", "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    result = {
        "command": f"make tasks TASKS={task.key}",
        "commit": commit,
        "environment": config["environment"],
        "data": config["data"],
        "model": config["model"],
        "training": config["training"],
        "metrics": config["metrics"],
        "seeds": task_list.SEEDS,
        "summary": json.loads((comparison / "summary.json").read_text()),
        "used_share": {method: used_share(comparison, method) for method in task_list.METHODS},
        "fidelity": measured,
    }
    pages.keep(RESULTS / f"task-{task.key}.json", result)


def used_share(comparison, method):
    """Samples trained on, as a share of those of full; the mean over the seeds."""
    def used(name):
        files = [comparison / f"{name}-seed{seed}" / "metrics.jsonl" for seed in task_list.SEEDS]
        return sum(json.loads(line)["samples"] for file in files for line in file.read_text().splitlines())

    return used(method) / used("full")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(task.key for task in task_list.TASKS)} (default: all)")
    python = ROOT / ".venv-frameworks" / "bin" / "python"
    parser.add_argument("--python", default=str(python), help='may have a prefix: "nice python"')
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "runs" / "tasks")
    arguments = parser.parse_args()
    known = [task.key for task in task_list.TASKS]
    unknown = [key for key in arguments.tasks if key not in known]
    if unknown:
        parser.error(f"no task {', '.join(unknown)}; the tasks are {', '.join(known)}")
    tasks = [task for task in task_list.TASKS if not arguments.tasks or task.key in arguments.tasks]
    program, folder = arguments.program.resolve(), arguments.out.resolve()
    started, before = time.monotonic(), sum(num_finished(folder / task.key) for task in tasks)
    for task in tasks:
        print(f"== {task.title}: {estimate(folder, tasks, started, before)}", flush=True)
        call = " ".join(command(arguments.python, task))
        choices = ["--methods", *task_list.METHODS, "--seeds", *task_list.SEEDS]
        run([program, "compare", "--command", call, *choices, "--out", folder / task.key])
        runs = {"": (), **task.fidelity}
        measured = {name: fidelity(program, arguments.python, task, folder, name, changes) for name, changes in runs.items()}
        collect(task, folder, measured)
    print(f"== {estimate(folder, tasks, started, before)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
