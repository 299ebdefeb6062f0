"""Dynamic data pruning from the batch loss.

Three lines in a PyTorch training script:

    handler = tamis.BLS(tamis.InfoBatch(train_set, epochs=200), alpha=0.7).proxy()
    loader = DataLoader(handler, sampler=handler.sampler, batch_size=128, num_workers=4)
    ...
    loss = handler.update(loss)

`tamis.Pruner` is the core itself, for other frameworks; it does not need torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, List

from ._core import EpochPlan, Pruner, __version__, policies, scores

if TYPE_CHECKING:
    from ._missed import MissedUpdateWarning
    from .handler import Handler
    from .lr import ProgressLR, lr_by_progress
    from ._methods import BLR, BLS, InfoBatch, SeTa, methods, prune
    from ._target import TargetWarning
    from .samplers import BatchSampler, Sampler

# Imported when first asked for: these need torch.
_LAZY = {
    "BLR": "_methods",
    "BLS": "_methods",
    "BatchSampler": "samplers",
    "Handler": "handler",
    "InfoBatch": "_methods",
    "MissedUpdateWarning": "_missed",
    "ProgressLR": "lr",
    "Sampler": "samplers",
    "SeTa": "_methods",
    "TargetWarning": "_target",
    "lr_by_progress": "lr",
    "methods": "_methods",
    "prune": "_methods",
}

__all__ = [
    "BLR",
    "BLS",
    "BatchSampler",
    "EpochPlan",
    "Handler",
    "InfoBatch",
    "MissedUpdateWarning",
    "ProgressLR",
    "Pruner",
    "Sampler",
    "SeTa",
    "TargetWarning",
    "__version__",
    "lr_by_progress",
    "methods",
    "policies",
    "prune",
    "scores",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module tamis has no attribute {name}")
    value = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted(__all__)
