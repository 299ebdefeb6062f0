#!/usr/bin/env python3
"""Kills trainings at random moments, resumes them, and compares all results bit for bit.

chaos.py TAMIS [--rounds 300] [--jobs 1] [--seed 0] [--processes 1 2] [--keep FOLDER]

A training as one process and as several, a comparison and a sweep are made once without a kill. Then the same are killed with
SIGKILL, one process or all, wherever they are; each is resumed, and killed again, until it is finished. Scores, weights, optimiser
state, metrics, recording and summary must be those of what was left alone; times may differ. A process that was not killed, but
lost another, must end by itself, with one line that says why.

Besides the kills that are counted, disks fill up: files must not grow beyond a size, which fails a write in the middle, or, where
this process may mount one, the run is on a file system that is too small for it. Then every process must say so in one line and
leave no temporary file. Exit code 1 if anything was lost.

Which run is hit how often follows from --seed and the run's number; in which moment, from the clock. Runs are independent of each
other: with --jobs, several go on beside each other, and hit each other's timing.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import multiprocessing
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from chaos_parts import Comparison, Training, difference, facts_of, faults_of, finish, write_images


def temporaries(folder):
    return {path.name for path in folder.rglob("*.tmp-*")}


def size_of(folder):
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*"))


class FullDisk:
    """Trainings without enough space, which must fail decently."""

    def __init__(self, folder, generator):
        self.mounted, self.generator = folder / "small", generator
        self.mounted.mkdir()
        self.can_mount = self.mount(1 << 20)
        if self.can_mount:
            self.unmount()

    def mount(self, size):
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tamis-chaos", str(self.mounted)]
        return os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0

    def unmount(self):
        subprocess.run(["umount", str(self.mounted)], check=True)

    def hit(self, training, out, whole):
        """True if the training failed, and its faults, if it did so in a wrong way. `whole` is a run with enough space."""
        if self.can_mount and self.generator.random() < 0.5:
            return self.hit_small_file_system(training, out, size_of(whole))
        size = self.generator.choice([path.stat().st_size for path in whole.rglob("*.*")])
        return self.hit_file_size(training, out, self.generator.randrange(size))

    def hit_file_size(self, training, out, size):
        return self.judge(training, out, file_size=size)

    def hit_small_file_system(self, training, out, size):
        used = size_of(out) if out.exists() else 0
        if not self.mount(used + self.generator.randrange(4096, size)):
            raise RuntimeError("chaos: cannot mount any more")
        try:
            small = self.mounted / "run"
            if out.exists():
                shutil.copytree(out, small)
            verdict = self.judge(training, small)
            shutil.rmtree(out, ignore_errors=True)
            if small.exists():
                shutil.copytree(small, out)
            return verdict
        finally:
            self.unmount()

    def judge(self, training, out, **limit):
        before = temporaries(out)
        with training.start(out, **limit) as team:
            answers = team.answers()
        faults = faults_of(answers)
        failed = [message for code, message in answers if code != 0]
        if failed and not any("File too large" in message or "No space left" in message for message in failed):
            faults.append(f"nobody named the cause: {failed}")
        return bool(failed), faults + [f"left behind: {name}" for name in sorted(temporaries(out) - before)]


def disturb(work, out, seconds, generator, kind):
    """Starts the work and kills processes. True if one was still running then, and the faults of those that were not killed."""
    with work.start(out) as team:
        time.sleep(generator.uniform(0, seconds))
        running = [process for process in team.processes if process.poll() is None]
        victims = running if kind == "all" or len(running) < 2 else [generator.choice(running)]
        for process in victims:
            process.send_signal(signal.SIGKILL)
        # What is left of the team must end by itself, and say why.
        return bool(victims), faults_of(team.answers(but=victims))


@dataclasses.dataclass
class Chaos:
    """What every run needs. `wholes`: by name of the work, what it ends with and how long it takes."""

    folder: pathlib.Path
    works: list
    turns: list  # of the works
    seed: int
    keep: pathlib.Path | None
    wholes: dict = dataclasses.field(default_factory=dict)

    def whole_folder(self, work):
        return self.folder / f"whole-{self.works.index(work)}"

    def make_whole(self, number):
        work = self.works[number]
        start = time.monotonic()
        error = finish(work, self.whole_folder(work))
        return work.name, error, (error or facts_of(self.whole_folder(work)), time.monotonic() - start)

    def play(self, number):
        """One run that is hit until it is finished: kills and full disks by kind and work, and what was lost."""
        generator = random.Random(f"{self.seed}-{number}")
        work = self.turns[number % len(self.turns)]
        whole, seconds = self.wholes[work.name]
        folder = self.folder / f"run-{number}"
        folder.mkdir()
        out, counts, faults = folder / "run", collections.Counter(), []
        full_disk = FullDisk(folder, generator) if "disk" in work.kinds else None
        # Hit again and again, so that also a run that was resumed is resumed.
        for _ in range(generator.randrange(1, 6)):
            kind = generator.choice(work.kinds)
            if kind == "disk":
                hit, found = full_disk.hit(work, out, self.whole_folder(work))
            else:
                hit, found = disturb(work, out, 1.1 * seconds, generator, kind)
            counts[kind, work.name] += hit
            faults += found
        wrong = finish(work, out)
        if wrong is None and (key := difference(whole, facts_of(out))):
            wrong = f"{key} differs"
        faults += [wrong] if wrong else []
        if faults and self.keep:
            shutil.copytree(out, self.keep / f"lost-{number}", dirs_exist_ok=True)
        shutil.rmtree(folder)
        return counts, [f"run {number} ({work.name}): {fault}" for fault in faults]


def num_kills(counts):
    return sum(count for (kind, _), count in counts.items() if kind != "disk")


def play_all(chaos, jobs, rounds):
    """Runs until so many kills have been made: counts, how many runs were finished, and how much was lost."""
    counts, finished, lost = collections.Counter(), 0, 0
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(jobs, context) as pool:
        for name, error, whole in pool.map(chaos.make_whole, range(len(chaos.works))):
            if error is not None:
                sys.exit(f"chaos: {name} failed undisturbed: {error}")
            chaos.wholes[name] = whole
    with concurrent.futures.ProcessPoolExecutor(jobs, context) as pool:
        playing, started = set(), 0
        while playing or num_kills(counts) < rounds:
            while len(playing) < jobs and num_kills(counts) < rounds:
                playing.add(pool.submit(chaos.play, started))
                started += 1
            done, playing = concurrent.futures.wait(playing, return_when=concurrent.futures.FIRST_COMPLETED)
            for run in done:
                hits, faults = run.result()
                counts += hits
                lost += len(faults)
                finished += 1
                for fault in faults:
                    print(f"chaos: {fault}", flush=True)
                print(f"{num_kills(counts)} of {rounds} kills, {finished} runs finished, {lost} lost", flush=True)
    return counts, finished, lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tamis", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--keep", type=pathlib.Path, help="copy the folder of a run that differs here")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="tamis-chaos-") as name:
        folder, program = pathlib.Path(name), args.tamis.resolve()
        write_images(folder / "data")
        trainings = [Training(program, folder / "data", processes) for processes in args.processes]
        compare, sweep = (Comparison(program, folder / "data", command) for command in ("compare", "sweep"))
        works, turns = [*trainings, compare, sweep], [*trainings, compare, *trainings, sweep]
        chaos = Chaos(folder, works, turns, args.seed, args.keep)
        counts, finished, lost = play_all(chaos, args.jobs, args.rounds)
    for work in works:
        one, all_, disk = (counts[kind, work.name] for kind in ("one", "all", "disk"))
        print(f"{work.name}: {one + all_} kills ({one} of one process), {disk} full disks")
    print(f"{num_kills(counts)} kills in all, {finished} runs finished, {lost} lost")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
