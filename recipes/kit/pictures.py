"""Readers of labelled pictures: CIFAR-10, CIFAR-100, MNIST, QuickDraw and folders of pictures."""

from __future__ import annotations

import gzip
import json
import pathlib
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from . import assets

SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp"}


@dataclass
class Pictures(torch.utils.data.Dataset):
    """Pictures in memory: [N, C, H, W] of bytes and a class for each. A sample is (picture in [-1, 1], class)."""

    pixels: Tensor
    labels: Tensor
    classes: list[str]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.pixels[index].float() / 127.5 - 1, self.labels[index]

    def first(self, count: int) -> Pictures:
        """The first `count`; all if count is 0."""
        return self if count == 0 else Pictures(self.pixels[:count], self.labels[:count], self.classes)


def _pictures(pixels: np.ndarray, labels: np.ndarray, classes: list[str]) -> Pictures:
    return Pictures(torch.from_numpy(np.ascontiguousarray(pixels)), torch.from_numpy(labels.astype(np.int64)), classes)


CIFAR10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def cifar10(part: str, limit: int = 0, data: pathlib.Path | None = None) -> Pictures:
    """`part`: train (50,000) or test (10,000). A row of a sheet is a picture."""
    folder = assets.find("cifar10", data)
    sheets = [f"data_batch_{k}.png" for k in range(1, 6)] if part == "train" else ["test_batch.png"]
    sheets = sheets[: -(-limit // 10_000) or None]
    rows = [np.asarray(Image.open(folder / sheet).convert("RGB")) for sheet in sheets]
    pixels = np.concatenate(rows).reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2)
    labels = np.array(json.loads((folder / f"{part}_lables.json").read_text()))[: len(pixels)]
    return _pictures(pixels, labels, CIFAR10).first(limit)


def cifar100(folder: pathlib.Path, part: str, limit: int = 0) -> Pictures:
    """The binary version that users have: train.bin or test.bin and fine_label_names.txt."""
    names = (folder / "fine_label_names.txt").read_text().split()
    raw = np.fromfile(folder / f"{part}.bin", np.uint8)
    if len(names) != 100 or raw.size == 0 or raw.size % 3074:
        raise ValueError(
            f"{folder / part}.bin: must hold records of 3074 bytes (two labels and 32 x 32 x 3 values), and "
            f"fine_label_names.txt 100 names; got {raw.size} bytes and {len(names)} names"
        )
    records = raw.reshape(-1, 3074)
    return _pictures(records[:, 2:].reshape(-1, 3, 32, 32), records[:, 1], names).first(limit)


def mnist(part: str, limit: int = 0, data: pathlib.Path | None = None) -> Pictures:
    """Digits, 1 x 28 x 28. `part`: train (60,000) or test (10,000)."""
    folder, name = assets.find("mnist", data), "train" if part == "train" else "t10k"
    pixels = np.fromfile(folder / f"{name}-images-idx3-ubyte", np.uint8, offset=16).reshape(-1, 1, 28, 28)
    labels = np.fromfile(folder / f"{name}-labels-idx1-ubyte", np.uint8, offset=8)
    return _pictures(pixels, labels, [str(k) for k in range(10)]).first(limit)


def quickdraw(part: str, limit: int = 0, data: pathlib.Path | None = None) -> Pictures:
    """Drawings of 345 things, 1 x 28 x 28. Of the 100 of each the first 80 are for training, in turn over the classes."""
    files = sorted(assets.find("quickdraw", data).glob("*.ndjson.gz"))
    pixels = _quickdraw_pixels(files)
    chosen = pixels[:, :80] if part == "train" else pixels[:, 80:]
    labels = np.tile(np.arange(len(files)), chosen.shape[1])
    names = [file.name.removesuffix(".ndjson.gz") for file in files]
    return _pictures(chosen.swapaxes(0, 1).reshape(-1, 1, 28, 28), labels, names).first(limit)


def _quickdraw_pixels(files: list[pathlib.Path]) -> np.ndarray:
    """[classes, 100, 784] of bytes; kept beside the folder, because 27 million numbers in text take their time."""
    kept = files[0].parent.with_suffix(".npy")
    if not kept.exists():
        rows = []
        for file in files:
            with gzip.open(file, "rt") as lines:
                rows.append([np.fromstring(line.strip().strip("[]"), np.float32, sep=",") for line in lines])
        with assets.written(kept) as file:
            np.save(file, (np.array(rows) * 255).round().astype(np.uint8))
    return np.load(kept)


class ImageFolder(torch.utils.data.Dataset):
    """Pictures on disk as ImageNet has them: FOLDER/CLASS/*.jpg. Read when asked for, resized and cropped to size x size."""

    def __init__(self, folder: pathlib.Path, size: int) -> None:
        self.size = size
        self.classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
        if not self.classes:
            raise FileNotFoundError(f"{folder}: must hold a folder of pictures for each class, got none")
        self.files: list[pathlib.Path] = []
        labels = []
        for label, name in enumerate(self.classes):
            found = sorted(path for path in (folder / name).rglob("*") if path.suffix.lower() in SUFFIXES)
            if not found:
                raise FileNotFoundError(f"{folder / name}: must hold pictures ({', '.join(sorted(SUFFIXES))}), got none")
            self.files += found
            labels += [label] * len(found)
        self.labels = torch.tensor(labels)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        picture = read_picture(self.files[index])
        scale = self.size / min(picture.size)
        width, height = (max(self.size, round(side * scale)) for side in picture.size)
        picture = picture.resize((width, height), Image.Resampling.BILINEAR)
        left, top = (width - self.size) // 2, (height - self.size) // 2
        pixels = np.array(picture.crop((left, top, left + self.size, top + self.size)))
        return torch.from_numpy(pixels).permute(2, 0, 1).float() / 127.5 - 1, self.labels[index]


def read_picture(path: pathlib.Path) -> Image.Image:
    """As RGB. A truncated or foreign file is refused by its name."""
    try:
        with Image.open(path) as picture:
            return picture.convert("RGB")
    except (OSError, UnidentifiedImageError, SyntaxError, ImportError) as error:  # ultralytics tries a plugin that may be missing
        raise ValueError(f"{path}: not a whole picture ({error}); remove it, or copy it again") from error
