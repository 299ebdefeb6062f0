#!/usr/bin/env python3
"""Kills trainings at random moments, resumes them, and compares all results bit for bit.

chaos.py TAMIS [--rounds 300] [--seed 0] [--processes 1 2] [--keep FOLDER]

For each number of processes one run is made without a kill. Then runs with the same settings are killed with SIGKILL, one process
or all, wherever they are; each is resumed, and killed again, until it is finished. Its scores, weights, optimiser state, metrics
and recording must be those of the run that was left alone; times may differ. Every fourth kill is a full disk instead: files must
not grow beyond a size, which fails a write in the middle. Exit code 1 if anything was lost.
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
TIMES = {"train_seconds", "prune_seconds", "test_seconds", "processor_seconds"}


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
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


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


def disturb(training, out, seconds, generator, kind):
    """Starts the training and hits it; True if it was still running then."""
    if kind == "disk":
        ranks = training.start(out, file_size=generator.randrange(1000, 60_000))
        codes = [end(rank)[0] for rank in ranks]
        return any(code != 0 for code in codes)
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
    counts = dict.fromkeys(["one", "all", "disk"], 0)
    finished = lost = 0
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

        while sum(counts.values()) < args.rounds:
            processes = generator.choice(args.processes)
            whole, seconds = wholes[processes]
            training = trainings[processes]
            out = folder / "run"
            # Hit again and again, so that also a run that was resumed is resumed.
            for _ in range(generator.randrange(1, 6)):
                if sum(counts.values()) >= args.rounds:
                    break
                kind = generator.choice(["one", "all", "all", "disk"])
                if disturb(training, out, 1.1 * seconds, generator, kind):
                    counts[kind] += 1
            error = training.finish(out)
            finished += 1
            wrong = error or difference(whole, facts_of(out))
            if wrong:
                lost += 1
                print(f"chaos: run {finished} with {processes} processes: {wrong}", flush=True)
                if args.keep:
                    shutil.copytree(out, args.keep / f"lost-{finished}")
            shutil.rmtree(out)
            if finished % 10 == 0:
                print(f"{sum(counts.values())} kills, {finished} runs finished, {lost} lost", flush=True)
    print(
        f"{counts['one'] + counts['all']} kills ({counts['one']} of one process of a team), {counts['disk']} full disks, "
        f"{finished} runs finished, {lost} lost"
    )
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
