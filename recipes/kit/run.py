"""The command line of a recipe, and the folder that its run is written to (docs/run_folder.md).

    args = run.arguments(__doc__, PRESETS)
    folder = run.Folder(args, handler, data="cifar10", model="resnet18", metrics=METRICS)
    for _ in folder.epochs(model=model, optimizer=optimizer):      # goes on where an interrupted run stopped
        ...                                                        # one epoch of training
        folder.end_epoch(lambda: {"accuracy": evaluate(model)})    # not timed; writes the line and a checkpoint

A run that prunes several data sets has a handler for each. The first one leads: an epoch of the run is one of its epochs, and
one pass or more over each of the others, named in `others`. Lines and num_train count the samples of all passes.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tamis
import torch

FEWER_EPOCHS = "fewer-epochs"
METHODS = ("full", FEWER_EPOCHS, "random-dynamic", "bls-infobatch", "bls-seta", "ogs-infobatch", "ogs-seta")
CHECKPOINT = "checkpoint.pt"


def arguments(doc: str, presets: dict[str, dict[str, Any]], argv: list[str] | None = None) -> argparse.Namespace:
    """The options that every recipe has, and the settings of its preset as members.

    The budget: every preset has `prune`, the share of the run's samples that is left out. Pruning methods get it as
    target_prune; fewer-epochs trains on everything, for a shorter run; full ignores it.

    Adds: `policy`, for tamis.prune; `options`, its tamis.Options; `score`, its further options; `watches`, whether the
    outputs are to be watched.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="full", help=f"one of {', '.join(METHODS)}, or another method of tamis")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the run; an interrupted run goes on")
    parser.add_argument("--preset", choices=list(presets), default="quick")
    parser.add_argument("--data", type=pathlib.Path, help="folder of scripts/fetch_data.sh (default: data)")
    parser.add_argument("--record", action="store_true", help="record the run for tamis analyze; with --method full")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="change a setting of the preset")
    args = parser.parse_args(argv)
    settings = dict(presets[args.preset])
    for change in args.set:
        name, _, value = change.partition("=")
        if name not in settings:
            parser.error(f"--set {change}: the settings are {', '.join(settings)}")
        kind = type(settings[name])
        try:
            settings[name] = kind(value)
        except ValueError:
            parser.error(f"--set {change}: {name} must be {kind.__name__}")
    if args.record and args.method != "full":
        parser.error(f"--record: fidelity is measured without pruning: --method must be full, got {args.method}")
    _choose_method(parser, args, settings)
    args.settings = settings
    for name, value in settings.items():
        setattr(args, name, value)
    return args


def _choose_method(parser: argparse.ArgumentParser, args: argparse.Namespace, settings: dict[str, Any]) -> None:
    is_whole = args.method in ("full", FEWER_EPOCHS)
    args.policy = "full" if is_whole else args.method
    if args.policy not in tamis.methods():
        parser.error(f"--method must be one of {', '.join([*METHODS, *tamis.methods()])}, got {args.method}")
    if tamis.methods()[args.policy]["score"] == "sample-loss":
        parser.error(f"--method {args.method} needs the loss of each sample; recipes see the mean loss: bls-..., blr-..., ogs-...")
    args.method_settings = {}
    if args.method == FEWER_EPOCHS:
        args.method_settings = {"full_epochs": settings["epochs"]}
        settings["epochs"] = max(1, int(settings["epochs"] * (1 - settings["prune"]) + 0.5))
    target = None if is_whole or settings["prune"] == 0 else settings["prune"]
    if target is not None:
        args.method_settings = {"target_prune": target}
    args.options = tamis.Options(seed=args.seed, target_prune=target)
    args.watches = args.record or tamis.methods()[args.policy]["score"] == "output-gradient"
    args.score = {"score": "output-gradient"} if args.record else {}


class Folder:
    """config.json, metrics.jsonl and the checkpoint of a run."""

    def __init__(
        self,
        args: argparse.Namespace,
        handler: tamis.Handler,
        *,
        data: str,
        model: str,
        metrics: list[dict[str, Any]],
        others: dict[str, tamis.Handler] | None = None,
    ) -> None:
        self.path: pathlib.Path = args.out
        self.handler = handler
        self._handlers = {"handler": handler, **(others or {})}
        self._num_samples = sum(len(one) * _num_passes(name, one, handler) for name, one in self._handlers.items())
        self._num_used = 0  # of the others, in the epochs that are done
        self._lines: list[dict[str, Any]] = []
        self._parts: dict[str, Any] = {}
        self._start = self._processor = 0.0
        self._is_recorded: bool = args.record
        self._config = {
            "format": "tamis-run",
            "format_version": 2,
            "method": {"name": args.method, **args.method_settings},
            "seed": args.seed,
            "epochs": handler.epochs,
            "data": {"name": data, "num_train": self._num_samples},
            "model": {"name": model},
            "metrics": metrics,
            "training": {**args.settings, "preset": args.preset, "threads": torch.get_num_threads()},
        }
        self.path.mkdir(parents=True, exist_ok=True)
        self._check_config()

    @property
    def is_new(self) -> bool:
        return not (self.path / CHECKPOINT).exists()

    def _check_config(self) -> None:
        """A folder holds one run: other settings are refused, not mixed."""
        path = self.path / "config.json"
        if path.exists() and not self.is_new:
            old = json.loads(path.read_text())
            for key, value in self._config.items():
                if old.get(key) != json.loads(json.dumps(value)):
                    raise SystemExit(
                        f"{self.path} holds a run with another {key} ({old.get(key)}, now {value}); remove it, or choose "
                        "another --out"
                    )
            return
        environment = {
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "cpu": _cpu(), "cores": os.cpu_count(), "python": platform.python_version(), "torch": torch.__version__,
        }
        path.write_text(json.dumps({**self._config, "environment": environment}, indent=1) + "\n")

    def epochs(self, **parts: Any) -> Iterator[int]:
        """The epochs that are left. `parts` have state_dict and load_state_dict; the handlers are among them by themselves."""
        self.resume(**parts)
        while len(self._lines) < self.handler.epochs:
            self.start_epoch()
            yield len(self._lines)

    def resume(self, **parts: Any) -> None:
        """What epochs() does first; for a framework that counts epochs itself, as are the next two."""
        self._parts = {**self._handlers, **parts}
        if not self.is_new:
            self._load()
        self._begin()

    def follow(self, num_done: int) -> None:
        """Instead of resume(), for a framework that has loaded a state of its own after `num_done` epochs."""
        if not self.is_new:
            self._lines = json.loads(torch.load(self.path / CHECKPOINT, weights_only=True)["lines"])[:num_done]
        if len(self._lines) < num_done:
            raise SystemExit(f"{self.path}: {num_done} epochs are done, but lines are missing; remove the folder to start again")
        self._begin()

    def _begin(self) -> None:
        self._num_used = self._count_used()
        (self.path / "metrics.jsonl").write_text("".join(map(_text, self._lines)))
        if self._is_recorded:
            # Of a resumed run after its state is loaded, as record() wants it.
            self.handler.record(self.path / "record", num_recorded=len(self.handler))

    def start_epoch(self) -> None:
        self._start, self._processor = time.monotonic(), time.process_time()

    def end_epoch(self, evaluate: Callable[[], dict[str, float]]) -> None:
        """Writes the line of the epoch that was trained, with what evaluate() measures, and the checkpoint."""
        seconds = time.monotonic() - self._start
        processor = time.process_time() - self._processor
        share = processor / (seconds * torch.get_num_threads())
        plan, before, self._num_used = self.handler.plan, self._num_used, self._count_used()
        used = (len(self.handler) if plan is None else plan.num_selected) + self._num_used - before
        start = time.monotonic()
        values = evaluate()
        line = {
            "epoch": len(self._lines), "samples": used, "pruned": self._num_samples - used,
            "train_seconds": round(seconds, 3), "test_seconds": round(time.monotonic() - start, 3),
            # What else runs on the machine hardly changes it, and is seen in the share.
            "processor_seconds": round(processor, 3),
            "processor_share": round(min(1.0, share), 3), "values": values,
        }
        self._lines.append(line)
        # The checkpoint first: a line without one would be written twice after a crash.
        self._save()
        with open(self.path / "metrics.jsonl", "a") as file:
            file.write(_text(line))
        shown = ", ".join(f"{name} {value:.4g}" for name, value in values.items())
        print(f"epoch {line['epoch']}: {used:,} samples, {seconds:.1f} s, {shown}", flush=True)

    def _count_used(self) -> int:
        """Samples of all passes that were begun over the others."""
        begun = [one for one in self._handlers.values() if one is not self.handler and one.plan is not None]
        return sum(round((1 - one.pruned_share) * (one.epoch + 1) * len(one)) for one in begun)

    def record_true_losses(self, losses: Any) -> None:
        """Of every sample, for `tamis analyze`, if the run is recorded."""
        if self._is_recorded:
            self.handler.record_true_losses(losses)
            self.handler.flush_recording()

    def _save(self) -> None:
        kind, keys, *rest = np.random.get_state()
        state = {
            "lines": json.dumps(self._lines),
            "torch_random": torch.get_rng_state(),
            "python_random": random.getstate(),
            "numpy_random": (kind, torch.from_numpy(keys.astype(np.int64)), *rest),
            **{name: part.state_dict() for name, part in self._parts.items()},
        }
        temporary = self.path / f"{CHECKPOINT}.tmp"
        torch.save(state, temporary)
        temporary.replace(self.path / CHECKPOINT)

    def _load(self) -> None:
        state = torch.load(self.path / CHECKPOINT, weights_only=True)
        for name, part in self._parts.items():
            part.load_state_dict(state[name])
        kind, keys, *rest = state["numpy_random"]
        np.random.set_state((kind, keys.numpy().astype(np.uint32), *rest))
        random.setstate(state["python_random"])
        torch.set_rng_state(state["torch_random"])
        self._lines = json.loads(state["lines"])


def _num_passes(name: str, handler: tamis.Handler, leader: tamis.Handler) -> int:
    """Over the samples of a handler in one epoch of the run."""
    passes, rest = divmod(handler.epochs, leader.epochs)
    if rest:
        raise ValueError(f"Folder: {name} must have a multiple of the run's {leader.epochs} epochs, got {handler.epochs}")
    return passes


def is_finished(path: pathlib.Path) -> bool:
    """Whether the folder holds a run with all of its lines."""
    if not (path / "metrics.jsonl").exists():
        return False
    return len((path / "metrics.jsonl").read_text().splitlines()) == json.loads((path / "config.json").read_text())["epochs"]


def _text(line: dict[str, Any]) -> str:
    return json.dumps(line) + "\n"


def _cpu() -> str:
    """The processor's name, as Linux has it."""
    path = pathlib.Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
