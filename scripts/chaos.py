#!/usr/bin/env python3
"""Kills trainings at random moments, resumes them, and compares all results bit for bit.

chaos.py TAMIS [--rounds 300] [--seed 0] [--processes 1 2] [--keep FOLDER]

For each number of processes one run is made without a kill. Then runs with the same settings are killed with SIGKILL, one process
or all, wherever they are; each is resumed, and killed again, until it is finished. Its scores, weights, optimiser state, metrics
and recording must be those of the run that was left alone; times may differ.

Besides the kills that are counted, disks fill up: files must not grow beyond a size, which fails a write in the middle, or, where
this process may mount one, the run is on a file system that is too small for it. Then every process must say so in one line and
leave no temporary file. Exit code 1 if anything was lost.
"""

import argparse
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib

EPOCHS = 4
NUM_TRAIN, NUM_TEST, SIDE = 600, 60, 8
TIMES = {"train_seconds", "prune_seconds", "test_seconds", "score_seconds", "processor_seconds", "processor_share"}


def write_images(folder):
    """A small data set of PNG images, by split and class, that can be learned."""
    generator = random.Random(1)

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    for split, count in (("train", NUM_TRAIN), ("test", NUM_TEST)):
        for k in range(count):
            label = k % 3
            rows = [bytes(min(255, 60 * label + generator.randrange(100)) for _ in range(SIDE)) for _ in range(SIDE)]
            header = chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0))
            pixels = chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows)))
            png = b"\x89PNG\r\n\x1a\n" + header + pixels + chunk(b"IEND", b"")
            path = folder / split / f"class{label}" / f"{k:04}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png)


def free_port():
    """Nobody listens there. Not one that the system hands out by itself (from 32768 on): others might get it meanwhile."""
    while True:
        port = random.randrange(12_000, 32_000)
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Training:
    """The command line of one training, as one process or several."""

    def __init__(self, program, data, processes):
        self.program, self.data, self.processes = program, data, processes

    def arguments(self, out):
        always = ["train", "--quiet", "--time-limit", "20"]
        if (out / "config.json").exists():
            return [*always, "--resume", str(out)]
        record = ["--record", "100", "--gallery", "3"] if self.processes == 1 else []
        return [
            *[*always, "--out", str(out), "--data", "folder", "--data-dir", str(self.data), "--width", "0.25"],
            *["--method", "bls-infobatch", "--epochs", str(EPOCHS), "--batch-size", "20", "--threads", "1", *record],
        ]

    def start(self, out, file_size=None):
        port = str(free_port())
        team = {"WORLD_SIZE": str(self.processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}

        def limit():
            if file_size is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))

        return [
            subprocess.Popen(
                [self.program, *self.arguments(out)],
                env={**os.environ, "OMP_NUM_THREADS": "1", **({**team, "RANK": str(rank)} if self.processes > 1 else {})},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=limit,
            )
            for rank in range(self.processes)
        ]

    def finish(self, out):
        """Runs to the end; the error of the first process that failed."""
        errors = [(rank, *end(rank)) for rank in self.start(out)]
        return next((message for _, code, message in errors if code != 0), None)


def end(process):
    message = process.communicate(timeout=600)[1]
    return process.returncode, message.strip()


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key not in TIMES and key != "crc32c"}
    return value


def facts_of(folder):
    """Everything that a run leaves behind and that must not depend on interruptions."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    facts = {"metrics": [without_times(json.loads(line)) for line in lines]}
    for path in sorted([*folder.rglob("*.safetensors"), *folder.glob("gallery.json"), *folder.glob("samples.json")]):
        facts[str(path.relative_to(folder))] = path.read_bytes()
    facts["names"] = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    return facts


def difference(whole, other):
    return next((key for key in whole if whole[key] != other.get(key)), None)


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
        before = temporaries(out)
        ranks = training.start(out, file_size=size)
        return self.judge([end(rank) for rank in ranks], temporaries(out) - before)

    def hit_small_file_system(self, training, out, size):
        used = size_of(out) if out.exists() else 0
        if not self.mount(used + self.generator.randrange(4096, size)):
            sys.exit("chaos: cannot mount any more")
        try:
            small = self.mounted / "run"
            if out.exists():
                shutil.copytree(out, small)
            before = temporaries(small)
            verdict = self.judge([end(rank) for rank in training.start(small)], temporaries(small) - before)
            shutil.rmtree(out, ignore_errors=True)
            if small.exists():
                shutil.copytree(small, out)
            return verdict
        finally:
            self.unmount()

    def judge(self, answers, left):
        failed = [message for code, message in answers if code != 0]
        faults = [message for message in failed if "\n" in message or not message.startswith("tamis: ")]
        if any(code not in (0, 1) for code, _ in answers):
            faults.append(f"exit codes {[code for code, _ in answers]}")
        if failed and not any("File too large" in message or "No space left" in message for message in failed):
            faults.append(f"nobody named the cause: {failed}")
        return bool(failed), faults + [f"left behind: {name}" for name in sorted(left)]


def disturb(training, out, seconds, generator, kind):
    """Starts the training and kills processes; True if one was still running then."""
    ranks = training.start(out)
    time.sleep(generator.uniform(0, seconds))
    running = [rank for rank in ranks if rank.poll() is None]
    victims = running if kind == "all" or len(running) < 2 else [generator.choice(running)]
    for rank in victims:
        rank.send_signal(signal.SIGKILL)
    # What is left of the team must end by itself, and say why.
    for rank in ranks:
        end(rank)
    return bool(victims)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tamis", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--keep", type=pathlib.Path, help="copy the folder of a run that differs here")
    args = parser.parse_args()

    generator = random.Random(args.seed)
    counts = {(kind, processes): 0 for kind in ("one", "all", "disk") for processes in args.processes}
    finished = lost = 0

    def num_kills():
        return sum(count for (kind, _), count in counts.items() if kind != "disk")

    def lose(what):
        nonlocal lost
        lost += 1
        print(f"chaos: run {finished + 1} with {processes} processes: {what}", flush=True)
        if args.keep:
            shutil.copytree(out, args.keep / f"lost-{lost}", dirs_exist_ok=True)

    with tempfile.TemporaryDirectory(prefix="tamis-chaos-") as name:
        folder = pathlib.Path(name)
        write_images(folder / "data")
        wholes = {}
        trainings = {n: Training(args.tamis.resolve(), folder / "data", n) for n in args.processes}
        for processes, training in trainings.items():
            start = time.monotonic()
            error = training.finish(folder / f"whole-{processes}")
            if error is not None:
                sys.exit(f"chaos: the undisturbed run failed: {error}")
            wholes[processes] = (facts_of(folder / f"whole-{processes}"), time.monotonic() - start)

        full_disk = FullDisk(folder, generator)
        out = folder / "run"
        while num_kills() < args.rounds:
            processes = generator.choice(args.processes)
            whole, seconds = wholes[processes]
            training = trainings[processes]
            # Hit again and again, so that also a run that was resumed is resumed.
            for _ in range(generator.randrange(1, 6)):
                kind = generator.choice(["one", "all", "all", "disk"])
                hit = False
                if kind == "disk":
                    hit, faults = full_disk.hit(training, out, folder / f"whole-{processes}")
                    for fault in faults:
                        lose(fault)
                elif num_kills() < args.rounds:
                    hit = disturb(training, out, 1.1 * seconds, generator, kind)
                counts[kind, processes] += hit
            wrong = training.finish(out) or difference(whole, facts_of(out))
            if wrong:
                lose(wrong)
            finished += 1
            shutil.rmtree(out)
            if finished % 10 == 0:
                print(f"{num_kills()} kills, {finished} runs finished, {lost} lost", flush=True)
    for processes in args.processes:
        one, all_, disk = (counts[kind, processes] for kind in ("one", "all", "disk"))
        print(f"{processes} process(es): {one + all_} kills ({one} of one process), {disk} full disks")
    print(f"{num_kills()} kills in all, {finished} runs finished, {lost} lost")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
