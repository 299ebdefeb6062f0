"""Emoji with their names: real pairs of pictures and texts, drawn, not photographed.

Captions of an emoji are its label and the names that programs give it; entities are three of its keywords (all by emojibase).
Skin tones and flags are left out.
"""

from __future__ import annotations

import json
import pathlib

import numpy as np
import torch
from PIL import Image

from . import assets, wordnet
from .captions import Captioned, with_article, words

STYLES = {"flat": "emoji", "3d": "emoji-3d", "film": "emoji-films"}  # of each the asset
LEFT_OUT = (None, 2, 9)  # groups: letters of regions, components, flags
NAMES = ("cldr", "emojibase", "github", "iamcal", "joypixels")
MOST_CAPTIONS, MOST_KEYWORDS = 5, 3


def labels(data: pathlib.Path | None = None) -> dict[str, tuple[list[str], list[str]]]:
    """{code: (captions, keywords)}, in an order that mixes the groups."""
    folder = assets.find("emoji-labels", data)
    names = [json.loads((folder / "shortcodes" / f"{name}.json").read_text()) for name in NAMES]
    found = {}
    for one in json.loads((folder / "data.json").read_text()):
        if one.get("group") in LEFT_OUT:
            continue
        told = [one["label"]]
        for more in names:
            more = more.get(one["hexcode"], [])
            told += [more] if isinstance(more, str) else more
        captions = list(dict.fromkeys(words(text.replace("_", " ").replace("-", " ")) for text in told))
        keywords = [words(tag) for tag in one.get("tags", []) if words(tag) != captions[0]][:MOST_KEYWORDS]
        found[_code(one["hexcode"])] = [text for text in captions if text][:MOST_CAPTIONS], keywords
    order = np.random.default_rng(0).permutation(len(found))
    codes = sorted(found)
    return {codes[k]: found[codes[k]] for k in order}


def _code(name: str) -> str:
    return name.lower().replace("-fe0f", "")


def read(style: str, size: int, limit: int = 0, frames: int = 1, data: pathlib.Path | None = None) -> Captioned:
    """Pictures of a style, on white; of films evenly spaced frames. The first `limit`; all if it is 0."""
    if style not in STYLES:
        raise ValueError(f"emoji: style must be one of {', '.join(STYLES)}, got {style}")
    folder, texts = assets.find(STYLES[style], data), labels(data)
    files = {_code(path.stem): path for path in sorted(folder.iterdir())}
    kept = folder.parent / f"{folder.name}-{frames}-{size}.npz"  # decoding films takes its time
    if not kept.exists():
        shown = {code: _frames(files[code], size, frames) for code in texts if code in files}
        shown = {code: pixels for code, pixels in shown.items() if pixels is not None}
        with assets.written(kept) as out:
            np.savez(out, codes=list(shown), pixels=np.stack(list(shown.values())))
    with np.load(kept) as file:
        codes, pixels = file["codes"].tolist()[: limit or None], torch.from_numpy(file["pixels"][: limit or None])
    return Captioned(pixels, [texts[code][0] for code in codes], [texts[code][1] for code in codes], [])


def _frames(path: pathlib.Path, size: int, count: int) -> np.ndarray | None:
    """[count, 3, size, size]; None if a film has too few."""
    with Image.open(path) as picture:
        total = getattr(picture, "n_frames", 1)
        if total < count:
            return None
        shown = []
        for k in range(count):
            picture.seek(k * total // count)
            frame = picture.convert("RGBA").resize((size, size), Image.Resampling.BOX)
            white = Image.new("RGBA", frame.size, "white")
            shown.append(np.asarray(Image.alpha_composite(white, frame).convert("RGB")).transpose(2, 0, 1))
    return np.stack(shown)


def texts(count: int, seed: int = 0, data: pathlib.Path | None = None) -> list[tuple[str, list[str]]]:
    """Captions without pictures, each with its entities: labels, pairs of labels, WordNet's glosses of labels that are nouns."""
    random, told, glosses = np.random.default_rng([seed, 1]), list(labels(data).values()), wordnet.nouns(data)
    nouns = [(noun, glosses[noun]) for (noun, *_), _ in told if noun in glosses]
    found = []
    while len(found) < count:
        (captions, keywords), (others, _) = (told[random.integers(len(told))] for _ in range(2))
        noun, gloss = nouns[random.integers(len(nouns))]
        pair = [with_article(captions[0]), with_article(others[0])]
        found += [
            (str(random.choice(captions)), keywords), (f"a picture of {pair[0]} and {pair[1]}", pair),
            (f"there is {pair[0]} next to {pair[1]}", pair), (words(f"{with_article(noun)} is {gloss}"), [with_article(noun)]),
        ]
    return found[:count]
