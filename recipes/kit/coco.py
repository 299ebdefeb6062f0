"""Annotations in COCO's format: read and checked, with file and line of what is wrong, and measured by pycocotools."""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pycocotools import mask as rle
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from .pictures import read_picture

WHITE = " \t\r\n,:"


def encode_mask(mask: np.ndarray) -> dict[str, Any]:
    """[H, W] of bool as COCO's run lengths."""
    encoded = rle.encode(np.asfortranarray(mask.astype(np.uint8)))
    return {"size": encoded["size"], "counts": encoded["counts"].decode()}


@dataclass(frozen=True)
class Annotation:
    """An object: number of its class, box (x, y, width, height) and mask [H, W], if there is one."""

    label: int
    box: tuple[float, float, float, float]
    segmentation: Any
    size: tuple[int, int]  # height, width

    @property
    def mask(self) -> np.ndarray | None:
        return None if self.segmentation is None else decode_mask(self.segmentation, self.size)


@dataclass(frozen=True)
class Picture:
    path: pathlib.Path
    id: int
    width: int
    height: int
    annotations: list[Annotation] = field(default_factory=list)


@dataclass(frozen=True)
class Annotations:
    """A checked file. Classes are numbered from 0 in the order of their ids."""

    path: pathlib.Path
    classes: list[str]
    category_ids: list[int]
    pictures: list[Picture]


def decode_mask(segmentation: Any, size: tuple[int, int]) -> np.ndarray:
    """[H, W] of bool, from polygons or run lengths."""
    if isinstance(segmentation, list):
        merged = rle.merge(rle.frPyObjects(segmentation, *size))
    elif isinstance(segmentation["counts"], list):
        merged = rle.frPyObjects(segmentation, *size)
    else:
        merged = segmentation
    return rle.decode(merged).astype(bool)


def _elements(text: str) -> dict[str, list[tuple[int, Any]]]:
    """The lists of the outermost object, each element with its line."""
    decoder = json.JSONDecoder()
    lists: dict[str, list[tuple[int, Any]]] = {}

    def skip(at: int) -> int:
        while text[at] in WHITE:
            at += 1
        return at

    at, line, counted = skip(text.index("{") + 1), 1, 0
    while text[at] != "}":
        key, at = decoder.raw_decode(text, at)
        at = skip(at)
        if text[at] != "[":
            _, at = decoder.raw_decode(text, at)
        else:
            lists[key], at = [], skip(at + 1)
            while text[at] != "]":
                line, counted = line + text.count("\n", counted, at), at
                element, at = decoder.raw_decode(text, at)
                lists[key].append((line, element))
                at = skip(at)
            at += 1
        at = skip(at)
    return lists


def read(
    path: pathlib.Path, images: pathlib.Path | None = None, *, check_pictures: bool = True, masks: bool = False
) -> Annotations:
    """Reads an annotation file; its pictures are in `images` (default: the folder "images" beside it).

    Refused, by file and line: a class, picture or key that is missing, a box that is empty or leaves its picture, with `masks` a
    mask that is missing or empty, and with `check_pictures` a file that is no whole picture of its size.
    """
    lists = open_file(path, ("images", "categories", "annotations"))
    return Reader(path, images or path.parent / "images", check_pictures, masks).read(lists)


def open_file(path: pathlib.Path, names: tuple[str, ...]) -> dict[str, list[tuple[int, Any]]]:
    """The lists of a file by name, each element with its line."""
    text = path.read_text()
    try:
        whole = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: not JSON: {error.msg}") from error
    if not isinstance(whole, dict):
        raise ValueError(f"{path}:1: must be an object with {', '.join(names)}")
    lists = _elements(text)
    for name in names:
        if name not in lists:
            raise ValueError(f'{path}:1: must have a list "{name}"')
    return lists


class Reader:
    """Refuses by file and line."""

    def __init__(self, path: pathlib.Path, images: pathlib.Path, check_pictures: bool = True, masks: bool = False) -> None:
        self.path, self.images, self.check_pictures, self.masks = path, images, check_pictures, masks

    def refuse(self, line: int, problem: str) -> None:
        raise ValueError(f"{self.path}:{line}: {problem}")

    def get(self, line: int, element: Any, *keys: str) -> list[Any]:
        for key in keys:
            if not isinstance(element, dict) or key not in element:
                self.refuse(line, f'must have "{key}", got {json.dumps(element)[:80]}')
        return [element[key] for key in keys]

    def read(self, lists: dict[str, list[tuple[int, Any]]]) -> Annotations:
        named = sorted(tuple(self.get(line, element, "id", "name")) for line, element in lists["categories"])
        numbers = {id_: k for k, (id_, _) in enumerate(named)}
        pictures = {}
        for line, element in lists["images"]:
            id_, name, width, height = self.get(line, element, "id", "file_name", "width", "height")
            pictures[id_] = self.picture(line, id_, name, width, height)
        for line, element in lists["annotations"]:
            image, category, box = self.get(line, element, "image_id", "category_id", "bbox")
            if element.get("iscrowd"):
                continue  # Regions of many objects are for evaluation only.
            if image not in pictures:
                self.refuse(line, f"image_id must be one of the images, got {image}")
            if category not in numbers:
                self.refuse(line, f"category_id must be one of {sorted(numbers)}, got {category}")
            picture = pictures[image]
            self.check_box(line, box, picture)
            segmentation = self.segmentation(line, element, picture) if self.masks else None
            annotation = Annotation(numbers[category], tuple(box), segmentation, (picture.height, picture.width))
            picture.annotations.append(annotation)
        return Annotations(self.path, [name for _, name in named], [id_ for id_, _ in named], list(pictures.values()))

    def picture(self, line: int, id_: int, name: str, width: int, height: int) -> Picture:
        path = self.images / name
        if not path.exists():
            self.refuse(line, f"{path} is missing")
        if self.check_pictures:
            try:
                size = read_picture(path).size
            except ValueError as error:
                self.refuse(line, str(error))
            if size != (width, height):
                self.refuse(line, f"{path} must have {width} x {height} pixels, got {size[0]} x {size[1]}")
        return Picture(path, id_, width, height)

    def check_box(self, line: int, box: Any, picture: Picture) -> None:
        is_box = isinstance(box, list) and len(box) == 4 and all(isinstance(v, (int, float)) for v in box)
        if not is_box or not (box[2] > 0 and box[3] > 0):
            self.refuse(line, f"bbox must be x, y, width, height with positive sizes, got {box}")
        x, y, width, height = box
        # COCO's own boxes are rounded to hundredths.
        if x < -0.01 or y < -0.01 or x + width > picture.width + 0.01 or y + height > picture.height + 0.01:
            self.refuse(line, f"bbox must lie inside its picture of {picture.width} x {picture.height}, got {box}")

    def segmentation(self, line: int, element: Any, picture: Picture) -> Any:
        (segmentation,) = self.get(line, element, "segmentation")
        size = [picture.height, picture.width]
        if isinstance(segmentation, list):
            if not segmentation or any(not isinstance(p, list) or len(p) < 6 or len(p) % 2 for p in segmentation):
                self.refuse(line, "segmentation must hold polygons of three points or more, got an empty or broken one")
        else:
            _, counts = self.get(line, segmentation, "size", "counts")
            if segmentation["size"] != size or (isinstance(counts, list) and sum(counts) != size[0] * size[1]):
                self.refuse(line, f"segmentation must be run lengths for {size[0]} x {size[1]} pixels, got {segmentation['size']}")
        if not decode_mask(segmentation, (picture.height, picture.width)).any():
            self.refuse(line, "segmentation must have a pixel at least, got an empty mask")
        return segmentation


def mean_average_precision(path: pathlib.Path, detections: list[dict[str, Any]], kind: str) -> dict[str, float]:
    """mAP.5 and mAP.5:.95 by pycocotools. `kind`: bbox or segm; detections as in COCO's result files."""
    if not detections:
        return {"mAP.5": 0.0, "mAP.5:.95": 0.0}
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(path))
        evaluation = COCOeval(truth, truth.loadRes(detections), kind)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    # -1 stands for no objects at all.
    return {"mAP.5": float(evaluation.stats[1]), "mAP.5:.95": float(evaluation.stats[0])}
