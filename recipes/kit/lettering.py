"""Words rendered in hundreds of fonts (aenigma's), to be read; and IIIT5K's folders, as users have them.

A picture is a function of seed, part and index. Neither the words nor the families of fonts of the part "test" are in "train".
"""

from __future__ import annotations

import functools
import hashlib
import json
import pathlib
import string
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from scipy.io import loadmat
from torch import Tensor

from . import assets
from .pictures import read_picture

HEIGHT, WIDTH, LONGEST = 32, 96, 12
ALPHABET = string.ascii_lowercase + string.digits
END = 0  # class of the end of a word; characters count from 1
IGNORED = -100  # target behind the end
HELD_OUT = 5  # every fifth family of fonts, every fifth word
PARTS = ("train", "test")
VERSION = 2
# By the names of their files: letters as codes, cubes, rings or smiles, in pieces, or all the same.
ILLEGIBLE = {
    "bin01st", "binx01s", "bitbttf", "graze", "hdmaker", "nucleus", "qbicle1", "qbicle2", "qbicle3", "qbicle4", "tetri"
}


@dataclass
class Words(torch.utils.data.Dataset):
    """Pictures of words in memory: [N, 1, HEIGHT, WIDTH] of bytes. A sample is (picture in [-1, 1], characters and END)."""

    pixels: Tensor
    texts: list[str]

    def __post_init__(self) -> None:
        self.targets = torch.full((len(self.texts), LONGEST + 1), IGNORED)
        for row, text in zip(self.targets, self.texts):
            codes = [ALPHABET.index(letter) + 1 for letter in text[:LONGEST]]
            row[: len(codes) + 1] = torch.tensor([*codes, END])

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.pixels[index].float() / 127.5 - 1, self.targets[index]


def decode(classes: Tensor) -> list[str]:
    """[N, T] of classes as words: what stands before the first END."""
    found = []
    for row in classes.tolist():
        row = row[: row.index(END)] if END in row else row
        found.append("".join(ALPHABET[code - 1] for code in row))
    return found


def vocabulary(part: str, longest: int = LONGEST, data: pathlib.Path | None = None) -> list[str]:
    """Words of two to `longest` letters."""
    if not 2 <= longest <= LONGEST:
        raise ValueError(f"lettering: longest must be in [2, {LONGEST}], got {longest}")
    text = (assets.find("words", data) / "american-english").read_text()
    words = sorted({w for w in text.split() if 2 <= len(w) <= longest and set(w) <= set(string.ascii_lowercase)})
    return [word for k, word in enumerate(words) if (k % HELD_OUT == 0) == (part == "test")]


@functools.cache
def fonts(part: str, data: pathlib.Path | None = None) -> list[pathlib.Path]:
    """Fonts that have all letters, so that one can tell them; a family is what shares its first five letters."""
    if part not in PARTS:
        raise ValueError(f"lettering: part must be one of {', '.join(PARTS)}, got {part}")
    files = sorted(path for path in assets.find("fonts", data).glob("*.ttf") if _is_readable(path))
    families = sorted({path.stem[:5].lower() for path in files})
    chosen = {name for k, name in enumerate(families) if (k % HELD_OUT == 0) == (part == "test")}
    return [path for path in files if path.stem[:5].lower() in chosen]


def _is_readable(path: pathlib.Path) -> bool:
    if path.stem in ILLEGIBLE:
        return False
    glyphs = [_ink(letter, path) for letter in string.ascii_letters]
    return None not in glyphs and len({(glyph.size, glyph.tobytes()) for glyph in glyphs if glyph is not None}) >= 24


@functools.cache
def _font(path: pathlib.Path) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(path), 32)


def _ink(text: str, path: pathlib.Path) -> Image.Image | None:
    """The text in white on black, without a margin; None if nothing of it is seen."""
    left, top, right, bottom = map(int, _font(path).getbbox(text))
    ink = Image.new("L", (max(1, right - left + 2), max(1, bottom - top + 2)))
    ImageDraw.Draw(ink).text((1 - left, 1 - top), text, 255, _font(path))
    return ink.crop(ink.getbbox()) if ink.getbbox() else None


def draw(word: str, font: pathlib.Path, random: np.random.Generator) -> np.ndarray:
    """[HEIGHT, WIDTH] of bytes: the word in some case, slanted, on a background, blurred and noisy."""
    shown = [word, word.capitalize(), word.upper()][random.integers(3)]
    ink = _ink(shown, font)
    assert ink is not None, font
    # A tight box around the word, brought to one size, as readers of words get them.
    width, height = random.uniform(0.85, 0.98) * WIDTH, random.uniform(0.7, 0.95) * HEIGHT
    left, top = random.uniform(0, WIDTH - width), random.uniform(0, HEIGHT - height)
    # Where the corners of the picture lie in the ink, each a little off: a view from the side.
    x = (np.array([0, 0, WIDTH, WIDTH]) - left) / width * ink.width + random.normal(0, 0.03 * ink.width, 4)
    y = (np.array([0, HEIGHT, HEIGHT, 0]) - top) / height * ink.height + random.normal(0, 0.06 * ink.height, 4)
    quad = [float(v) for corner in zip(x, y) for v in corner]
    placed = ink.transform((WIDTH, HEIGHT), Image.Transform.QUAD, quad, Image.Resampling.BILINEAR)
    mask = np.asarray(placed.filter(ImageFilter.GaussianBlur(random.uniform(0, 0.8))), np.float32) / 255
    paper, contrast = random.uniform(0, 1), random.uniform(0.35, 0.8)
    letters = paper - contrast if paper > 0.5 else paper + contrast
    slope = random.uniform(-0.15, 0.15, 2)
    shade = slope[0] * np.linspace(-1, 1, WIDTH) + slope[1] * np.linspace(-1, 1, HEIGHT)[:, None]
    noise = random.normal(0, random.uniform(0, 0.08), (HEIGHT, WIDTH))
    picture = paper + (letters - paper) * mask + shade + noise
    return (picture.clip(0, 1) * 255).round().astype(np.uint8)


def sample(index: int, part: str, seed: int, words: list[str], files: list[pathlib.Path]) -> tuple[np.ndarray, str]:
    random = np.random.default_rng([seed, PARTS.index(part), index])
    word = words[random.integers(len(words))]
    return draw(word, files[random.integers(len(files))], random), word


def rendered(part: str, count: int, longest: int = LONGEST, seed: int = 0, data: pathlib.Path | None = None) -> Words:
    """`count` words of at most `longest` letters; kept beside the data, by a sum of what they depend on."""
    facts = [VERSION, part, count, longest, seed, HEIGHT, WIDTH, assets.ASSETS["fonts"].digest, assets.ASSETS["words"].digest]
    folder = assets.find("fonts", data).parent
    kept = folder / f"lettering-{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]}.npz"
    if not kept.exists():
        words, files = vocabulary(part, longest, data), fonts(part, data)
        made = [sample(k, part, seed, words, files) for k in range(count)]
        with assets.written(kept) as file:
            np.savez(file, pixels=np.stack([pixels for pixels, _ in made]), texts=np.array([text for _, text in made]))
    found = np.load(kept)
    return Words(torch.from_numpy(found["pixels"])[:, None], found["texts"].tolist())


def iiit5k(folder: pathlib.Path, part: str = "test") -> Words:
    """IIIT5K: PARTdata.mat as it comes, or PART.txt with a picture and its word in each line. Refused by file and line.

    As is usual, case and characters that are neither letter nor digit do not count.
    """
    table, listed = folder / f"{part}data.mat", folder / f"{part}.txt"
    if table.exists():
        rows = loadmat(table, squeeze_me=True)[f"{part}data"]
        path, pairs = table, [(k + 1, [str(row["ImgName"]), str(row["GroundTruth"])]) for k, row in enumerate(np.atleast_1d(rows))]
    elif listed.exists():
        path, pairs = listed, [(k + 1, line.split()) for k, line in enumerate(listed.read_text().splitlines()) if line.strip()]
    else:
        raise FileNotFoundError(f"{folder}: must hold {table.name} or {listed.name}")
    pixels, texts = [], []
    for line, row in pairs:
        where = f"{path}:{line}"
        text = "".join(letter for letter in row[-1].lower() if letter in ALPHABET)
        if len(row) != 2 or not text:
            raise ValueError(f"{where}: must be a picture and its word, got {' '.join(row)[:60]!r}")
        if not (folder / row[0]).exists():
            raise ValueError(f"{where}: {folder / row[0]} is missing")
        try:
            picture = read_picture(folder / row[0]).convert("L").resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
        pixels.append(np.array(picture))
        texts.append(text)
    if not texts:
        raise ValueError(f"{path}:1: must have a picture and its word, got an empty file")
    return Words(torch.from_numpy(np.stack(pixels))[:, None], texts)
