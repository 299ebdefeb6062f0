"""Scenes composed of real cut-outs (Tux Paint's stamps) on real photographs (MATE's), with exact boxes and masks.

A scene is a function of seed, part and index. Cut-outs of the part "val" are never seen in "train".
"""

from __future__ import annotations

import functools
import json
import pathlib
from dataclasses import dataclass

import numpy as np
from PIL import Image

from . import assets
from .coco import encode_mask

# Folders of the package; the others hold drawings, signs and letters, or too few cut-outs to hold some out.
CLASSES = {
    "mammal": ["animals/mammals"],
    "bird": ["animals/birds"],
    "plant": ["plants"],
    "food": ["food"],
    "household": ["household"],
}
HIDDEN = "LadyBird.jpg"  # a photograph of an insect, which would have no label
MIN_SIDE = 60  # pixels
HELD_OUT = 5  # every fifth cut-out of a class
MIN_VISIBLE = 0.5  # of every object, whatever is put in front of it
PARTS = ("train", "val")


@dataclass(frozen=True)
class Instance:
    """An object: its class (a number), its visible pixels [H, W] and the cut-out it is."""

    label: int
    mask: np.ndarray
    name: str

    @property
    def box(self) -> tuple[int, int, int, int]:
        """x, y, width, height of the visible pixels."""
        rows, columns = np.flatnonzero(self.mask.any(1)), np.flatnonzero(self.mask.any(0))
        return (int(columns[0]), int(rows[0]), int(columns[-1] - columns[0]) + 1, int(rows[-1] - rows[0]) + 1)


@dataclass(frozen=True)
class Scene:
    image: np.ndarray
    instances: list[Instance]


def cutout_files(part: str, data: pathlib.Path | None = None) -> list[list[pathlib.Path]]:
    """The cut-outs of a part, by class."""
    if part not in PARTS:
        raise ValueError(f"scenes: part must be one of {', '.join(PARTS)}, got {part}")
    folder = assets.find("cutouts", data)
    found = []
    for folders in CLASSES.values():
        files = sorted(path for name in folders for path in (folder / name).rglob("*.png") if _is_usable(path))
        found.append([path for k, path in enumerate(files) if (k % HELD_OUT == 0) == (part == "val")])
    return found


def _is_usable(path: pathlib.Path) -> bool:
    with Image.open(path) as picture:
        return path.with_suffix(".txt").exists() and min(picture.size) >= MIN_SIDE and picture.mode in ("RGBA", "LA")


class Scenes:
    """`scenes[i]` is a Scene of size x size pixels with one to four objects."""

    def __init__(self, part: str, count: int, size: int = 128, seed: int = 0, data: pathlib.Path | None = None) -> None:
        self.part, self.count, self.size, self.seed = part, count, size, seed
        self.files = self._choose_files(data)
        self.cutouts = [[_open(path, "RGBA", size) for path in files] for files in self.files]
        names = sorted(path for path in assets.find("photographs", data).glob("*.jpg") if path.name != HIDDEN)
        self.places = [path.stem for path in names]
        self.photographs = [_open(path, "RGB", 3 * size) for path in names]

    def _choose_files(self, data: pathlib.Path | None) -> list[list[pathlib.Path]]:
        return cutout_files(self.part, data)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Scene:
        if not 0 <= index < self.count:
            raise IndexError(f"scenes: index must be below {self.count}, got {index}")
        random = np.random.default_rng([self.seed, PARTS.index(self.part), index])
        image = self._background(random)
        owner = np.full((self.size, self.size), -1, np.int16)  # which object a pixel shows
        placed: list[tuple[int, str, int]] = []  # class, name, pixels when nothing was in front
        for _ in range(random.integers(1, 5)):
            self._place(random, image, owner, placed)
        masks = [owner == k for k in range(len(placed))]
        return Scene(image, [Instance(label, mask, name) for (label, name, _), mask in zip(placed, masks)])

    def _background(self, random: np.random.Generator) -> np.ndarray:
        return self._crop(random, self.photographs[random.integers(len(self.photographs))])

    def _crop(self, random: np.random.Generator, photograph: Image.Image) -> np.ndarray:
        side = int(random.integers(self.size, min(photograph.size) + 1))
        left, top = (int(random.integers(0, extent - side + 1)) for extent in photograph.size)
        return np.array(photograph.resize((self.size, self.size), box=(left, top, left + side, top + side)))

    def _place(self, random: np.random.Generator, image: np.ndarray, owner: np.ndarray, placed: list[tuple[int, str, int]]) -> None:
        """Puts one more object in front of the others, where it leaves enough of them to be seen; or nowhere."""
        label = int(random.integers(len(self.cutouts)))
        which = int(random.integers(len(self.cutouts[label])))
        pixels = scaled(self.cutouts[label][which], random.uniform(0.3, 0.65) * self.size)
        if random.random() < 0.5:
            pixels = pixels[:, ::-1]
        height, width = pixels.shape[:2]
        solid = pixels[..., 3] > 127
        if solid.sum() < 30:
            return
        for _ in range(10):
            left, top = (int(random.integers(0, self.size - side + 1)) for side in (width, height))
            window = (slice(top, top + height), slice(left, left + width))
            trial = owner.copy()
            trial[window][solid] = len(placed)
            visible = np.bincount(trial[trial >= 0], minlength=len(placed))
            if all(visible[k] >= MIN_VISIBLE * whole for k, (_, _, whole) in enumerate(placed)):
                paste(image, pixels, left, top)
                owner[:] = trial
                placed.append((label, self.files[label][which].stem, int(solid.sum())))
                return


def scaled(cutout: Image.Image, side: float) -> np.ndarray:
    """[H, W, 4], the longer side as given."""
    scale = side / max(cutout.size)
    width, height = (max(2, round(extent * scale)) for extent in cutout.size)
    return np.asarray(cutout.resize((width, height)))


def paste(image: np.ndarray, pixels: np.ndarray, left: int, top: int) -> None:
    """Puts [H, W, 4] in front of what is there."""
    window = (slice(top, top + pixels.shape[0]), slice(left, left + pixels.shape[1]))
    alpha = pixels[..., 3:] / 255.0
    image[window] = (pixels[..., :3] * alpha + image[window] * (1 - alpha)).round().astype(np.uint8)


@functools.cache
def _open(path: pathlib.Path, mode: str, side: int) -> Image.Image:
    """Halved until it is easy to scale: they are up to 2000 pixels wide, and a scene needs a few dozen."""
    with Image.open(path) as file:
        picture = file.convert(mode)
    while min(picture.size) >= 4 * side:
        picture = picture.reduce(2)
    return picture


def write(scenes: Scenes, folder: pathlib.Path) -> pathlib.Path:
    """Writes pictures and annotations.json in COCO's format. Returns the latter's path; complete files are kept."""
    path = folder / "annotations.json"
    info = {"seed": scenes.seed, "part": scenes.part, "count": scenes.count, "size": scenes.size, "version": 1}
    if path.exists() and json.loads(path.read_text())["info"] == info:
        return path
    (folder / "images").mkdir(parents=True, exist_ok=True)
    images, annotations = [], []
    for k in range(len(scenes)):
        scene, name = scenes[k], f"{k:06}.png"
        Image.fromarray(scene.image).save(folder / "images" / name, compress_level=1)
        images.append({"id": k, "file_name": name, "width": scenes.size, "height": scenes.size})
        for instance in scene.instances:
            annotations.append(
                {
                    "id": len(annotations) + 1, "image_id": k, "category_id": instance.label, "bbox": instance.box,
                    "area": int(instance.mask.sum()), "iscrowd": 0, "segmentation": encode_mask(instance.mask),
                    "cutout": instance.name,
                }
            )
    categories = [{"id": k, "name": name} for k, name in enumerate(CLASSES)]
    # One element per line, so that a complaint about one of them can name its line.
    lists = {"images": images, "categories": categories, "annotations": annotations}
    parts = [f'"{name}": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]" for name, rows in lists.items()]
    path.write_text('{\n"info": ' + json.dumps(info) + ",\n" + ",\n".join(parts) + "\n}\n")
    return path
