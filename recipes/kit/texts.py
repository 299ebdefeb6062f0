"""Labelled texts as rows of word numbers: IMDB's reviews, and CSV files of label and text as Yelp's are."""

from __future__ import annotations

import collections
import csv
import json
import pathlib
import re

import numpy as np
import torch
from torch import Tensor

from . import assets

EMPTY, UNKNOWN = 0, 1  # what stands behind the end of a text, and for a word that is not in the vocabulary
WORD = re.compile(r"[a-z0-9']+")
HELD_OUT = 5  # every fifth review is in the test part

Labelled = list[tuple[str, int]]


def reviews(part: str, limit: int = 0, data: pathlib.Path | None = None) -> Labelled:
    """(text, 0 bad or 1 good) of IMDB's reviews. Texts that are there twice are taken once, before they are split."""
    rows = json.loads((assets.find("reviews", data) / "reviews.json").read_text())
    distinct = list({row["t"]: row["s"] for row in rows}.items())
    # The file has all bad ones first.
    texts = [distinct[k] for k in np.random.default_rng(0).permutation(len(distinct))]
    chosen = [text for k, text in enumerate(texts) if (k % HELD_OUT == 0) == (part == "test")]
    return chosen[: limit or None]


def read_csv(path: pathlib.Path, limit: int = 0) -> Labelled:
    """Rows of label and text, the label a whole number from 1 as Yelp has it. Refused by file and line."""
    found: Labelled = []
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.reader(file, strict=True)
        try:
            for row in rows:
                if len(row) != 2 or not row[0].isdecimal() or int(row[0]) < 1 or not row[1].strip():
                    raise ValueError(f"{path}:{rows.line_num}: must be a label from 1 and a text, got {','.join(row)[:60]!r}")
                found.append((row[1], int(row[0]) - 1))
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{path}:{rows.line_num}: not CSV in UTF-8: {error}") from error
    if not found:
        raise ValueError(f"{path}:1: must have a row of label and text, got an empty file")
    return found[: limit or None]


def words(text: str) -> list[str]:
    return WORD.findall(text.lower().replace("<br />", " "))


def vocabulary(texts: Labelled, size: int) -> dict[str, int]:
    """The `size` most frequent words, numbered behind EMPTY and UNKNOWN; ties by the alphabet."""
    counts = collections.Counter(word for text, _ in texts for word in words(text))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:size]
    return {word: UNKNOWN + 1 + k for k, (word, _) in enumerate(ranked)}


class Texts(torch.utils.data.Dataset):
    """A sample is (its first `length` words as numbers, label)."""

    def __init__(self, texts: Labelled, numbers: dict[str, int], length: int) -> None:
        self.labels = torch.tensor([label for _, label in texts])
        self.tokens = torch.full((len(texts), length), EMPTY)
        for row, (text, _) in zip(self.tokens, texts):
            found = [numbers.get(word, UNKNOWN) for word in words(text)[:length]]
            row[: len(found)] = torch.tensor(found, dtype=torch.long)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.tokens[index], self.labels[index]
