"""What scripts/chaos.py kills, and what it compares afterwards: trainings, comparisons and sweeps of a tiny data set."""

import json
import os
import random
import resource
import socket
import struct
import subprocess
import zlib

NUM_TRAIN, NUM_TEST, SIDE = 600, 60, 8
# What differs between two runs because clocks do.
TIMES = {
    *("train_seconds", "prune_seconds", "test_seconds", "score_seconds", "processor_seconds", "processor_share"),
    *("train_seconds_mean", "score_seconds_mean", "time_saved", "time_saved_interval", "time_saved_of"),
    *("more_saved_than_pruned", "prune_overhead", "num_disturbed", "crc32c"),
}


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
        port = random.SystemRandom().randrange(12_000, 32_000)  # another one in every process
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Team:
    """The processes of one start. None of them outlives it."""

    def __init__(self, commands, environments, file_size=None):
        def limit():
            if file_size is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))

        self.processes = [
            subprocess.Popen(
                command,
                env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                preexec_fn=limit,
            )
            for command, environment in zip(commands, environments)
        ]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def answer(self, process):
        """Exit code and message; None and why if it does not end."""
        try:
            message = process.communicate(timeout=600)[1]
        except subprocess.TimeoutExpired:
            return None, "still ran after 600 seconds"
        return process.returncode, message.strip()

    def answers(self, but=()):
        return [self.answer(process) for process in self.processes if process not in but]


def faults_of(answers):
    """A process that was not killed ends well, or with one line that says why."""
    faults = []
    for code, message in answers:
        is_one_line = "\n" not in message and message.startswith("tamis: ")
        if code not in (0, 1) or not (is_one_line or (code == 0 and not message)):
            faults.append(f"exit code {code}, message {message!r}")
    return faults


class Training:
    """`tamis train`, as one process or several."""

    def __init__(self, program, data, processes):
        self.program, self.data, self.processes = program, data, processes
        self.name = f"train with {processes} process(es)"
        self.kinds = ["one", "all", "all", "disk"]

    def arguments(self, out, time_limit):
        always = ["train", "--quiet", "--time-limit", str(time_limit)]
        if (out / "config.json").exists():
            return [*always, "--resume", str(out)]
        record = ["--record", "100", "--gallery", "3"] if self.processes == 1 else []
        return [
            *[*always, "--out", str(out), "--data", "folder", "--data-dir", str(self.data), "--width", "0.25"],
            *["--method", "bls-infobatch", "--epochs", "4", "--batch-size", "20", "--threads", "1", *record],
        ]

    def start(self, out, time_limit=20, file_size=None):
        command = [self.program, *self.arguments(out, time_limit)]
        team = {"WORLD_SIZE": str(self.processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        environments = [{**team, "RANK": str(rank)} for rank in range(self.processes)] if self.processes > 1 else [{}]
        return Team([command] * self.processes, environments, file_size)


class Comparison:
    """`tamis compare` or `tamis sweep`: two tiny runs, each of which may be the one that is hit."""

    kinds = ("all",)

    def __init__(self, program, data, command):
        self.program, self.data, self.command = program, data, command
        self.name = command

    def start(self, out, time_limit=None):
        varied = {"compare": ["--methods", "full", "bls-infobatch"], "sweep": ["--vary", "alpha=0.5"]}[self.command]
        arguments = [
            *[*varied, "--seeds", "0", "--out", str(out), "--data", "folder", "--data-dir", str(self.data)],
            *["--width", "0.25", "--epochs", "2", "--batch-size", "20", "--threads", "1"],
        ]
        if (out / f"{self.command}.json").exists():
            arguments = ["--resume", str(out)]
        return Team([[self.program, self.command, "--quiet", *arguments]], [{}])


def finish(work, out):
    """Runs it to the end, with time for those that are late on a crowded machine; the first fault."""
    with work.start(out, time_limit=120) as team:
        answers = team.answers()
    return next((f"exit code {code}: {message}" for code, message in answers if code != 0), None)


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key not in TIMES}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


def facts_of(folder):
    """Everything that is left behind and that must not depend on interruptions."""
    facts = {"names": sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.name == "metrics.jsonl":
            facts[name] = [without_times(json.loads(line)) for line in path.read_text().splitlines()]
        elif path.name == "summary.json":
            facts[name] = without_times(json.loads(path.read_text()))
        elif path.suffix == ".safetensors" or path.name in ("gallery.json", "samples.json"):
            facts[name] = path.read_bytes()
    return facts


def difference(whole, other):
    """What is not the same, or only in one of them; None if nothing."""
    if odd := sorted(set(whole.get("names", whole)) ^ set(other.get("names", other))):
        return ", ".join(odd)
    return next((key for key in whole if whole[key] != other[key]), None)
