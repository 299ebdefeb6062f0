"""Pictures and short films with captions: composed scenes of two objects, and annotation files in COCO's format.

A scene has two cut-outs, side by side or one above the other, on a photograph: "a pig to the left of a red apple on a dune". In a
film one of them moves. What is said is true by construction. A scene is a function of seed, domain and index.

Domains, as NoCaps has them: the captions of "train" and "in" name objects of SEEN classes only, of "out" none, and of "near" one.
"""

from __future__ import annotations

import copy
import json
import pathlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from . import coco, wordnet
from .pictures import read_picture
from .scenes import CLASSES, PARTS, Scenes, cutout_files, paste, scaled

SEEN = ("mammal", "plant", "food")  # the other classes are never in the domain "train"
DOMAINS = ("train", "in", "near", "out", "all")
PLACES = {
    "Aqua": "on water", "Blinds": "on a green leaf", "Dune": "on a dune", "FreshFlower": "on an orange flower",
    "Garden": "in a garden", "GreenMeadow": "on a green meadow", "RainDrops": "on a wet leaf", "Storm": "under a dark sky",
    "TwoWings": "behind two seeds", "Wood": "on a wooden board", "YellowFlower": "on a yellow flower",
}
# By axis (0: side by side, 1: one above the other): of the first object to the second, and back; where each of them is.
RELATIONS = (("to the left of", "to the right of"), ("above", "below"))
SIDES = (("on the left", "on the right"), ("at the top", "at the bottom"))
# By axis; a mover goes along the other one, or its size changes.
ALONG, SIZES = (("goes up", "goes down"), ("moves to the left", "moves to the right")), ("comes nearer", "goes away")
PICTURE = (
    "{a} {relation} {b} {place}", "{b} {inverse} {a} {place}", "there is {a} {side} and {b} {other}",
    "a picture of {a} and {b} {place}", "{place} there is {a} {relation} {b}",
)
FILM = (
    "{a} {motion} {relation} {b} {place}", "{place} {a} {motion} {relation} {b}", "{a} {motion} {place} and {b} stands still",
    "a film of {a} that {motion} {relation} {b}", "{b} {inverse} {a} that {motion} {place}",
)


@dataclass
class Captioned:
    """N pictures or films, each with captions and with the names of what it shows.

    Attributes:
        pixels: Bytes, [N, frames, 3, size, size].
        captions: Of each, several; lower-case words.
        entities: Of each: "a pig", "a red apple".
        wrong: A caption of each that is not true: its objects have changed places. Or none.
    """

    pixels: Tensor
    captions: list[list[str]]
    entities: list[list[str]]
    wrong: list[str]

    def __len__(self) -> int:
        return len(self.captions)

    def __getitem__(self, part: slice) -> Captioned:
        return self.choose(range(len(self))[part])

    def choose(self, ids: Sequence[int]) -> Captioned:
        captions, entities, wrong = ([rows[k] for k in ids] if rows else [] for rows in (self.captions, self.entities, self.wrong))
        return Captioned(self.pixels[list(ids)], captions, entities, wrong)


def words(text: str) -> str:
    """Lower-case words with a blank between them, and nothing else: what the metrics take."""
    return " ".join(re.findall(r"[a-z0-9]+(?:['-][a-z0-9]+)*", text.lower().replace("’", "'")))


def cutout_name(path: pathlib.Path) -> str | None:
    """"A great blue heron." -> "a great blue heron". None if the line of the cut-out is no name."""
    line = path.with_suffix(".txt").read_text(errors="replace").splitlines()[0]
    found = re.match(r"(an?|some|two) [a-z' -]+", words(line.translate(str.maketrans("(.,!?:", "\n" * 6)).split("\n")[0]))
    return found.group(0) if found and len(found.group(0).split()) <= 4 else None


def tell(axis: int, is_first: bool, motion: int, place: str) -> dict[str, str]:
    """What the templates say besides the names."""
    order = slice(None, None, 1 if is_first else -1)
    (relation, inverse), (side, other) = RELATIONS[axis][order], SIDES[axis][order]
    told = {"relation": relation, "inverse": inverse, "side": side, "other": other}
    return {**told, "motion": (*ALONG[axis], *SIZES)[motion], "place": place}


def named_files(data: pathlib.Path | None = None) -> list[list[pathlib.Path]]:
    """The cut-outs that have a name, by class."""
    parts = [cutout_files(part, data) for part in PARTS]
    return [sorted(path for path in train + val if cutout_name(path)) for train, val in zip(*parts)]


def template_texts(count: int, seed: int = 0, data: pathlib.Path | None = None) -> list[tuple[str, list[str]]]:
    """Captions without pictures, each with its entities: SEEN names and WordNet's nouns, none of the held-out objects."""
    names = [{str(cutout_name(path)) for path in files} for files in named_files(data)]
    seen, held_out = (set().union(*(n for n, c in zip(names, CLASSES) if (c in SEEN) == wanted)) for wanted in (True, False))
    secret = {word for name in held_out - seen for word in name.split()[1:]} - {word for name in seen for word in name.split()}
    nouns = sorted(with_article(noun) for noun in wordnet.nouns(data) if noun not in secret)
    pools, random, texts = (sorted(seen), nouns), np.random.default_rng([seed, len(DOMAINS)]), []
    for _ in range(count):
        a, b = (str(random.choice(pools[random.integers(2)])) for _ in range(2))
        told = tell(int(random.integers(2)), bool(random.integers(2)), 0, str(random.choice(list(PLACES.values()))))
        texts.append((str(random.choice(PICTURE)).format(a=a, b=b, **told), [a, b]))
    return texts


def with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


class CaptionedScenes(Scenes):
    """`scenes[i]` is pixels [frames, size, size, 3], captions, entities and a wrong caption."""

    def __init__(
        self, domain: str, count: int, size: int = 64, seed: int = 0, frames: int = 1, data: pathlib.Path | None = None
    ) -> None:
        super().__init__(_checked(domain), count, size, seed, data)
        self.frames = frames
        self.names = [[cutout_name(path) for path in files] for files in self.files]
        self.seen = [k for k, name in enumerate(CLASSES) if name in SEEN]
        self.held_out = [k for k, name in enumerate(CLASSES) if name not in SEEN]

    def of(self, domain: str, count: int) -> CaptionedScenes:
        """Of another domain, with the same cut-outs in memory."""
        other = copy.copy(self)
        other.part, other.count = _checked(domain), count
        return other

    def _choose_files(self, data: pathlib.Path | None) -> list[list[pathlib.Path]]:
        return named_files(data)

    def __getitem__(self, index: int) -> tuple[np.ndarray, list[str], list[str], str]:
        if not 0 <= index < self.count:
            raise IndexError(f"captions: index must be below {self.count}, got {index}")
        random = np.random.default_rng([self.seed, DOMAINS.index(self.part), self.frames, index])
        place = int(random.integers(len(self.photographs)))
        ground = self._crop(random, self.photographs[place])
        axis = int(random.integers(2))
        motion = int(random.integers(4))
        chosen = self._choose_objects(random)
        a, b = (self.names[label][which] for label, which in chosen)
        mover, other = (self.cutouts[label][which] for label, which in chosen)
        is_first = bool(random.integers(2))  # the mover is left of the other, or above it
        self._show(random, [ground], other, axis, not is_first, motion=None)
        film = [ground.copy() for _ in range(self.frames)]
        self._show(random, film, mover, axis, is_first, motion if self.frames > 1 else None)
        told = tell(axis, is_first, motion, PLACES[self.places[place]])
        templates = PICTURE if self.frames == 1 else FILM
        return np.stack(film), [t.format(a=a, b=b, **told) for t in templates], [a, b], templates[0].format(a=b, b=a, **told)

    def _choose_objects(self, random: np.random.Generator) -> list[tuple[int, int]]:
        """Class and number of two cut-outs with different names."""
        everywhere = self.seen + self.held_out
        pools = {"near": [self.seen, self.held_out], "out": [self.held_out] * 2, "all": [everywhere] * 2}
        first, second = pools.get(self.part, [self.seen] * 2)
        if random.random() < 0.5:
            first, second = second, first
        while True:
            labels = [int(random.choice(pool)) for pool in (first, second)]
            chosen = [(label, int(random.integers(len(self.files[label])))) for label in labels]
            if len({self.names[label][which] for label, which in chosen}) == 2:
                return chosen

    def _show(self, random, film: list[np.ndarray], cutout, axis: int, is_first: bool, motion: int | None) -> None:
        """Puts a cut-out into all pictures, into its half; from picture to picture it goes along the half, or grows, or shrinks."""
        half, side = self.size // 2, random.uniform(0.3, 0.48) * self.size
        is_mirrored = random.random() < 0.5
        across, along, jitter = random.uniform(0, 1), random.uniform(0, 1), random.uniform(0, 0.2)
        for k, image in enumerate(film):
            t = k / max(1, len(film) - 1)
            size = side
            if motion in (0, 1):
                along = jitter + 0.8 * (t if motion == 1 else 1 - t)
            elif motion is not None:
                size = self.size * (0.2 + 0.28 * (t if motion == 2 else 1 - t))
            pixels = scaled(cutout, size)
            pixels = pixels[:, ::-1] if is_mirrored else pixels
            extents = pixels.shape[1], pixels.shape[0]
            start = [0, 0]
            start[axis] = (0 if is_first else half) + round(across * (half - extents[axis]))
            start[1 - axis] = round(along * (self.size - extents[1 - axis]))
            paste(image, pixels, *start)

    def load(self) -> Captioned:
        """All of them in memory."""
        films, captions, entities, wrong = zip(*(self[k] for k in range(len(self))))
        pixels = torch.from_numpy(np.stack(films)).permute(0, 1, 4, 2, 3).contiguous()
        return Captioned(pixels, list(captions), list(entities), list(wrong))


def _checked(domain: str) -> str:
    if domain not in DOMAINS:
        raise ValueError(f"captions: domain must be one of {', '.join(DOMAINS)}, got {domain}")
    return domain


def read(path: pathlib.Path, size: int, images: pathlib.Path | None = None) -> Captioned:
    """A file of captions in COCO's format; its pictures are in `images` (default: the folder "images" beside it).

    An image may have a list "entities" of names. Refused, by file and line: a key or picture that is missing or broken, a caption
    without words, one of no image, an image without captions.
    """
    reader, lists = coco.Reader(path, images or path.parent / "images"), coco.open_file(path, ("images", "annotations"))
    lines, pictures, captions, entities = {}, {}, {}, {}
    for line, element in lists["images"]:
        id_, name = reader.get(line, element, "id", "file_name")
        if not (reader.images / name).exists():
            reader.refuse(line, f"{reader.images / name} is missing")
        try:
            picture = read_picture(reader.images / name).resize((size, size))
        except ValueError as error:
            reader.refuse(line, str(error))
        pictures[id_] = torch.from_numpy(np.array(picture)).permute(2, 0, 1)
        lines[id_], captions[id_] = line, []
        entities[id_] = [words(entity) for entity in element.get("entities", [])]
    for line, element in lists["annotations"]:
        image, caption = reader.get(line, element, "image_id", "caption")
        if image not in pictures:
            reader.refuse(line, f"image_id must be one of the images, got {image}")
        if not isinstance(caption, str) or not words(caption):
            reader.refuse(line, f"caption must have a word at least, got {json.dumps(caption)}")
        captions[image].append(words(caption))
    for id_, found in captions.items():
        if not found:
            reader.refuse(lines[id_], f"image {id_} must have a caption at least, got none")
    pixels = torch.stack(list(pictures.values()))[:, None]
    return Captioned(pixels, list(captions.values()), list(entities.values()), [])
