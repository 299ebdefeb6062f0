"""Labelled sounds as log-mel spectrograms: spoken syllables of gcin-voice, and ESC-50's folders.

A syllable's class is its final, the part behind the initial consonant. Finals with few clips are left out.
"""

from __future__ import annotations

import csv
import functools
import pathlib
from dataclasses import dataclass

import numpy as np
import soundfile
import torch
from torch import Tensor

from . import assets

INITIALS = "ㄅㄆㄇㄈㄉㄊㄋㄌㄍㄎㄏㄐㄑㄒㄓㄔㄕㄖㄗㄘㄙ"
LEAST_CLIPS = 15  # of a final
HELD_OUT = 5  # every fifth clip of a final is in the test part
BANDS, HOP, WINDOW = 40, 0.0125, 0.032  # seconds
VERSION = 1


@dataclass
class Sounds(torch.utils.data.Dataset):
    """Spectrograms [N, 1, BANDS, frames], each with mean 0 and deviation 1, and a class for each."""

    spectrograms: Tensor
    labels: Tensor
    classes: list[str]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.spectrograms[index], self.labels[index]


def log_mel(wave: np.ndarray, rate: int, seconds: float) -> np.ndarray:
    """[BANDS, frames] of the first `seconds`, with silence behind the end."""
    wave = np.pad(wave[: int(seconds * rate)], (0, max(0, int(seconds * rate) - len(wave))))
    hop, size = int(HOP * rate), int(WINDOW * rate)
    frames = np.lib.stride_tricks.sliding_window_view(wave, size)[::hop]
    power = np.abs(np.fft.rfft(frames * np.hanning(size), axis=1)) ** 2
    return np.log(_filters(rate, size) @ power.T + 1e-6)


@functools.cache
def _filters(rate: int, size: int) -> np.ndarray:
    """Triangles, evenly spread on the mel scale between 50 Hz and 8 kHz."""
    def mel(f: float) -> float:
        return 2595 * np.log10(1 + f / 700)

    edges = 700 * (10 ** (np.linspace(mel(50), mel(min(8000, rate / 2)), BANDS + 2) / 2595) - 1)
    frequencies = np.fft.rfftfreq(size, 1 / rate)
    rising = (frequencies - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - frequencies) / np.diff(edges)[1:, None]
    return np.clip(np.minimum(rising, falling), 0, None)


def _read(path: pathlib.Path, seconds: float) -> np.ndarray:
    try:
        wave, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise ValueError(f"{path}: not a whole sound ({error}); remove it, or copy it again") from error
    return log_mel(wave.mean(1), rate, seconds)


def _sounds(spectrograms: np.ndarray, labels: np.ndarray, classes: list[str]) -> Sounds:
    values = torch.from_numpy(spectrograms.astype(np.float32))[:, None]
    values = (values - values.mean((2, 3), keepdim=True)) / (values.std((2, 3), keepdim=True) + 1e-3)
    return Sounds(values, torch.from_numpy(labels), classes)


def syllables(part: str, data: pathlib.Path | None = None) -> Sounds:
    """Spoken Mandarin syllables by two speakers, both in both parts. `part`: train or test."""
    folder = assets.find("syllables", data)
    files = sorted(folder.glob("*/*.ogg"))
    finals = [path.parent.name.rstrip("0123456789").lstrip(INITIALS) for path in files]
    classes = sorted(name for name in set(finals) if name and finals.count(name) >= LEAST_CLIPS)
    kept = folder.with_name(f"syllables-{VERSION}.npy")
    if not kept.exists():
        with assets.written(kept) as file:
            np.save(file, np.stack([_read(path, 0.5) for path in files]).astype(np.float16))
    everything, rank, chosen = np.load(kept), dict.fromkeys(classes, -1), []
    for k, name in enumerate(finals):
        if name in rank:
            rank[name] += 1
            if (rank[name] % HELD_OUT == 0) == (part == "test"):
                chosen.append(k)
    # In the order of the files a batch would hear one syllable.
    chosen = np.random.default_rng(0).permutation(chosen)
    return _sounds(everything[chosen], np.array([classes.index(finals[k]) for k in chosen]), classes)


def esc50(folder: pathlib.Path, part: str) -> Sounds:
    """ESC-50 as users have it: meta/esc50.csv and audio/*.wav; its fifth fold is the test part. Refused by file and line."""
    table = folder / "meta" / "esc50.csv"
    names: dict[int, str] = {}
    found: list[tuple[np.ndarray, int]] = []
    with open(table, newline="") as file:
        rows = csv.DictReader(file)
        missing = {"filename", "fold", "target", "category"} - set(rows.fieldnames or [])
        if missing:
            raise ValueError(f"{table}:1: must have the columns filename, fold, target, category; no {', '.join(sorted(missing))}")
        for row in rows:
            where = f"{table}:{rows.line_num}"
            if not (row["target"] or "").isdecimal() or row["fold"] not in list("12345"):
                raise ValueError(f"{where}: target must be a number and fold one of 1 to 5, got {row['target']} and {row['fold']}")
            label = int(row["target"])
            if names.setdefault(label, row["category"]) != row["category"]:
                raise ValueError(f"{where}: target {label} must be {names[label]} as before, got {row['category']}")
            if (row["fold"] == "5") == (part == "test"):
                path = folder / "audio" / row["filename"]
                if not path.exists():
                    raise ValueError(f"{where}: {path} is missing")
                try:
                    found.append((_read(path, 5.0), label))
                except ValueError as error:
                    raise ValueError(f"{where}: {error}") from error
    if sorted(names) != list(range(len(names))) or not found:
        raise ValueError(f"{table}: targets must count from 0, with clips in every fold, got {sorted(names)[:5]}...")
    return _sounds(np.stack([one for one, _ in found]), np.array([label for _, label in found]), [names[k] for k in sorted(names)])
