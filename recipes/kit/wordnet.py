"""WordNet's nouns for things that can be seen, with their glosses."""

from __future__ import annotations

import functools
import pathlib

from . import assets

SEEN_IN = {"05": "animals", "06": "artifacts", "13": "food", "20": "plants"}  # numbers of lexicographers' files
MOST_WORDS = 12  # of a gloss


@functools.cache
def nouns(data: pathlib.Path | None = None) -> dict[str, str]:
    """{noun: gloss} of single words whose first sense is an animal, an artifact, food or a plant and was met in tagged texts."""
    folder = assets.find("wordnet", data)
    senses = {}
    for line in (folder / "data.noun").read_text().splitlines():
        if not line.startswith(" "):  # the licence
            offset, file, _ = line.split(" ", 2)
            if file in SEEN_IN:
                senses[offset] = line.partition(" | ")[2].split(";")[0].strip()
    found = {}
    for line in (folder / "index.noun").read_text().splitlines():
        # lemma, part of speech, number of senses, number of pointers, pointers..., number of senses, of tagged senses, offsets...
        lemma, *rest = line.split()
        if not line.startswith(" ") and lemma.isalpha():
            num_senses = int(rest[1])
            num_tagged, first = int(rest[-num_senses - 1]), rest[-num_senses]
            if num_tagged and first in senses and len(senses[first].split()) <= MOST_WORDS:
                found[lemma] = senses[first]
    return found
