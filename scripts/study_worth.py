#!/usr/bin/env python3
"""Makes the comparisons behind docs/worth.md, one after the other; stopped and started again it goes on where it stopped.

Usage: scripts/study_worth.py PROGRAM [--out FOLDER] [--parts NAME...] [--jobs N] [--list] [FLAG...]; further flags go to every
comparison. The runs of a part train beside each other, as many as there are cores, each on one thread: two threads of one run wait
for each other. All parts together take about 15 hours on two cores: --list says how many samples each one trains on.

What a finished run is judged by, its config.json and metrics.jsonl, is kept in benchmarks/results/worth-runs, in the repository, so
that another machine of the same kind goes on with what is missing. After each part, and when it is stopped, the rows whose seeds
are all trained go to benchmarks/results/worth-NAME.json.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import render_study
import worth_parts

RESULTS = pathlib.Path(__file__).resolve().parent.parent / "benchmarks" / "results"
JUDGED_BY = ["config.json", "metrics.jsonl"]


def is_finished(run):
    config, metrics = run / "config.json", run / "metrics.jsonl"
    if not config.exists() or not metrics.exists():
        return False
    return len(metrics.read_text().splitlines()) == json.loads(config.read_text())["epochs"]


def samples_of(run):
    """Samples that a finished run trained on, with those that a static method scored them on."""
    epochs = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return sum(epoch["samples"] for epoch in epochs)


def add_run(run, comparison):
    """Copies what a run is judged by, whole or not at all, and the comparison that it is in where there is none yet."""
    comparison.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=comparison) as folder:
        copy = pathlib.Path(folder) / run.name
        copy.mkdir()
        for name in JUDGED_BY:
            shutil.copy(run / name, copy)
        if not (comparison / "compare.json").exists():
            shutil.copy(run.parent / "compare.json", folder)
            (pathlib.Path(folder) / "compare.json").rename(comparison / "compare.json")
        copy.rename(comparison / run.name)


class RunFailed(Exception):
    pass


class PartOfStudy:
    """The runs of one part. Each is a comparison of its own until it is finished, for a comparison belongs to one process; then all
    move into the comparison of the part, which finds nothing left to train and makes the table. `kept` is that comparison without
    the weights."""

    def __init__(self, part, program, out, results, flags):
        self.part, self.program, self.flags = part, program, flags
        self.whole = out / part.name
        self.single = out / f"{part.name}-runs"
        self.kept = results / "worth-runs" / part.name
        self.result = results / f"worth-{part.name}.json"
        self.runs = [(method, seed) for method in part.rows() for seed in range(part.seeds)]
        self.children = []
        if self.kept.exists():
            self.bring_back()

    def bring_back(self):
        """Adds the runs that are kept and not here."""
        for method, seed in self.runs:
            run = self.kept / f"{method}-seed{seed}"
            if run.exists() and not self.place(method, seed).exists():
                add_run(run, self.whole)

    def keep(self):
        """Adds the finished runs to those that are kept."""
        for run in [self.place(*run) for run in self.runs]:
            if is_finished(run) and not (self.kept / run.name).exists():
                add_run(run, self.kept)

    def place(self, method, seed):
        """Where the run is or will be."""
        name = f"{method}-seed{seed}"
        return self.whole / name if (self.whole / name).exists() else self.single / name / name

    def num_finished(self):
        return sum(is_finished(self.place(*run)) for run in self.runs)

    def missing(self):
        """What begins on its own: a run that a comparison of the whole part has begun is left to it."""
        return [run for run in self.runs if self.place(*run).parent != self.whole and not is_finished(self.place(*run))]

    def samples_left(self):
        return sum(self.part.samples_of(method) for method, seed in self.runs if not is_finished(self.place(method, seed)))

    def train(self, method, seed):
        folder = self.place(method, seed).parent
        folder.parent.mkdir(parents=True, exist_ok=True)
        command = [self.program, "compare", "--out", folder, *self.part.flags_of(method, seed), *self.flags]
        with (folder.parent / f"{folder.name}.log").open("a") as log:
            child = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
            self.children.append(child)
            code = child.wait()
        if code != 0:
            raise RunFailed(f"{method} seed {seed}: ended with {code}, see {log.name}")
        return self.place(method, seed)

    def train_all(self, jobs):
        """Trains what is missing, with a line for each run that ends. At the first failure the others are told to stop; they keep
        their checkpoints."""
        missing, start, made = self.missing(), time.monotonic(), 0
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            tasks = {pool.submit(self.train, method, seed): (method, seed) for method, seed in missing}
            try:
                for task in concurrent.futures.as_completed(tasks):
                    made += samples_of(task.result())
                    self.keep()
                    method, seed = tasks[task]
                    left = self.samples_left() / made * (time.monotonic() - start)
                    print(f"[{self.num_finished()}/{len(self.runs)}] {method} seed {seed}; {describe_time(left)}", flush=True)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for child in self.children:
                    if child.poll() is None:
                        child.send_signal(signal.SIGTERM)
                raise

    def finished_rows(self):
        return [row for row in self.part.rows() if all(is_finished(self.place(row, seed)) for seed in range(self.part.seeds))]

    def assemble(self):
        """Moves the finished runs to the comparison of the part, which begins as that of one of them."""
        for method, seed in self.runs:
            run = self.place(method, seed)
            if run.parent == self.whole or not is_finished(run):
                continue
            if not self.whole.exists():
                run.parent.rename(self.whole)
            else:
                run.rename(self.whole / run.name)
                shutil.rmtree(run.parent)
        if self.num_finished() == len(self.runs) and self.single.exists():
            shutil.rmtree(self.single)

    def publish(self):
        """Makes the result of the rows that are finished, once there is one besides those that the others are compared with."""
        self.keep()
        self.assemble()
        rows = self.finished_rows()
        if not set(self.part.baselines()) < set(rows):
            return
        command = [self.program, "compare", "--out", self.whole, *self.part.flags(rows), *self.flags]
        code = subprocess.run(command).returncode
        if code != 0:
            raise RunFailed(f"{self.part.name}: the comparison ended with {code}")
        render_study.collect_one(self.whole, self.result, f"scripts/study_worth.py --parts {self.part.name}")


def describe_time(seconds):
    return f"about {seconds / 3600:.1f} hours left" if seconds > 5400 else f"about {seconds / 60:.0f} minutes left"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the program tamis")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/worth"), help="where the comparisons go")
    parser.add_argument("--parts", nargs="+", choices=list(worth_parts.PARTS), default=list(worth_parts.PARTS), metavar="NAME")
    parser.add_argument(
        "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="runs beside each other (default: one per core)"
    )
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="where the result files go")
    parser.add_argument("--list", action="store_true", help="only list the parts")
    arguments, flags = parser.parse_known_args()
    if arguments.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {arguments.jobs}")
    parts = [worth_parts.PARTS[name] for name in arguments.parts]
    if arguments.list:
        for part in parts:
            millions = part.num_samples() / 1e6
            print(f"{part.name:<12} {part.num_rows() * part.seeds:>4} runs  {millions:>7.1f} million samples  {part.title}")
        return
    for number, part in enumerate(parts, 1):
        study = PartOfStudy(part, arguments.program, arguments.out, arguments.results, flags)
        print(f"== [{number}/{len(parts)}] {part.name}: {study.num_finished()} of {len(study.runs)} runs done", flush=True)
        stopped = False
        try:
            try:
                study.train_all(arguments.jobs)
            except KeyboardInterrupt:
                stopped = True
            study.publish()
        except RunFailed as error:
            sys.exit(f"study: {error}")
        if stopped:
            sys.exit("study: stopped; the same command goes on")
    print("study: render the page with scripts/render_worth.py")


if __name__ == "__main__":
    main()
