"""BLEU-4, CIDEr and METEOR of captions, by pycocoevalcap.

Captions and references are words with blanks between them (captions.words), so its tokenizer, a Java program, is not needed.
METEOR is a Java program, too. CIDEr is times 100, as papers print it.
"""

from __future__ import annotations

import contextlib
import io
import shutil

from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider


def has_meteor() -> bool:
    return shutil.which("java") is not None


def measure(captions: list[str], references: list[list[str]], meteor: bool = False) -> dict[str, float]:
    """Of one caption for each list of references."""
    if len(captions) != len(references) or len(captions) < 2:
        raise ValueError(
            f"caption_scores: needs two captions at least, each with references, got {len(captions)} captions and "
            f"{len(references)} lists of references"
        )
    found = {k: [caption] for k, caption in enumerate(captions)}
    truth = dict(enumerate(references))
    with contextlib.redirect_stdout(io.StringIO()):
        bleu, _ = Bleu(4).compute_score(truth, found, verbose=0)
        cider, _ = Cider().compute_score(truth, found)
    values = {"BLEU-4": float(bleu[3]), "CIDEr": 100 * float(cider)}
    if meteor:
        from pycocoevalcap.meteor.meteor import Meteor

        values["METEOR"] = float(Meteor().compute_score(truth, found)[0])
    return values
