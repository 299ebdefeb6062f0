"""Dynamic data pruning from the batch loss.

Three lines in a PyTorch training script:

    handler = tamis.prune(train_set, "bls-infobatch", epochs=200)
    loader = handler.loader(batch_size=128, num_workers=4)
    ...
    loss = handler.update(loss)

`tamis.Pruner` is the core itself, for other frameworks; it does not need torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._core import EpochPlan, LossBook, Pruner, __version__, methods, policies, scores
from ._extras import needed_by
from ._options import Options

if TYPE_CHECKING:
    from ._batches import Batch, indices_of
    from ._methods import BLR, BLS, InfoBatch, SeTa, prune
    from ._check import Check
    from ._stream import Stream
    from ._warnings import LoopWarning, MissedUpdateWarning, TargetWarning
    from .handler import Handler
    from .loader import Loader, Sampler
    from .lr import ProgressLR, lr_by_progress

# Imported when first used: these need torch.
_NEED_TORCH = {
    "BLR": "_methods",
    "BLS": "_methods",
    "Batch": "_batches",
    "Check": "_check",
    "Handler": "handler",
    "InfoBatch": "_methods",
    "Loader": "loader",
    "LoopWarning": "_warnings",
    "MissedUpdateWarning": "_warnings",
    "ProgressLR": "lr",
    "Sampler": "loader",
    "SeTa": "_methods",
    "Stream": "_stream",
    "TargetWarning": "_warnings",
    "indices_of": "_batches",
    "lr_by_progress": "lr",
    "prune": "_methods",
}

__all__ = [
    "BLR",
    "BLS",
    "Batch",
    "Check",
    "EpochPlan",
    "Handler",
    "InfoBatch",
    "Loader",
    "LoopWarning",
    "LossBook",
    "MissedUpdateWarning",
    "Options",
    "ProgressLR",
    "Pruner",
    "Sampler",
    "SeTa",
    "Stream",
    "TargetWarning",
    "__version__",
    "indices_of",
    "lr_by_progress",
    "methods",
    "policies",
    "prune",
    "scores",
]


def __getattr__(name: str) -> Any:
    if name not in _NEED_TORCH:
        raise AttributeError(f"module tamis has no attribute {name}")
    with needed_by(f"tamis.{name}", "torch", "torch"):
        module = importlib.import_module(f".{_NEED_TORCH[name]}", __name__)
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
