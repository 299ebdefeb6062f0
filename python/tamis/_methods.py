"""Pruning methods by name and by class: prune, InfoBatch, SeTa, BLS and BLR."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NoReturn

from . import _core
from ._options import Options, check_number
from .handler import Handler

# Options that are words: the core knows numbers only.
_WORDS = {"initial_score": {"first-batch-loss": math.nan, "zero": 0.0}}


def prune(
    dataset: Any,
    method: str,
    *,
    epochs: int,
    score: str | None = None,
    options: Options | None = None,
    **method_options: Any,
) -> Handler:
    """A handler by the name of its method.

    Args:
        dataset: A map-style data set: `len(dataset)` and `dataset[i]`.
        method: One of methods(): a policy ("infobatch", "seta", ...), or one with the score of BLS
            or BLR in front ("bls-infobatch", "blr-trim").
        epochs: Length of the whole run.
        score: One of scores(), in the place of the method's own.
        options: The seed and what few runs need to say.
        **method_options: Options of the policy and of the score by name (prune_ratio, alpha, ...).

    Returns:
        The handler.

    Example:
        >>> handler = tamis.prune(train_set, "bls-infobatch", epochs=200, prune_ratio=0.3)
    """
    known = _core.methods()
    name = str(method).lower().replace("_", "-")
    if name not in known:
        raise ValueError(f"prune: method must be one of {', '.join(known)}, got {method!r}")
    policy = known[name]["policy"]
    if policy == "subset" and score is None:
        raise ValueError(
            f"prune: method must be one that scores while it trains, got {name!r}, which is static: score with tamis.scoring and "
            "train on a torch.utils.data.Subset, or use tamis train"
        )
    chosen_score = known[name]["score"] if score is None else score
    policy_options, score_options = _split_options(policy, chosen_score, method_options)
    return Handler(
        dataset,
        epochs,
        policy=policy,
        policy_options=policy_options,
        score=chosen_score,
        score_options=score_options,
        options=options,
    )


class InfoBatch(Handler):
    """Prunes samples that score below the mean and rescales those of them that stay.

    Takes one loss per sample; with BLS or BLR around it, the mean loss of the batch.

    Args:
        dataset: A map-style data set.
        epochs: Length of the whole run.
        prune_ratio: Fraction of the samples below the mean that is removed, in [0, 0.9].
        options: The seed and what few runs need to say.
    """

    def __init__(
        self,
        dataset: Any,
        epochs: int,
        *more: Any,
        prune_ratio: float = 0.5,
        options: Options | None = None,
    ) -> None:
        _check_positional("InfoBatch", ("prune_ratio", "delta"), more)
        numbers = {"prune_ratio": _number("InfoBatch", "infobatch", "prune_ratio", prune_ratio)}
        super().__init__(
            dataset, epochs, policy="infobatch", policy_options=numbers, options=options
        )


class SeTa(Handler):
    """A window of difficulty that slides from easy to hard over a random subset.

    Takes one loss per sample; with BLS or BLR around it, the mean loss of the batch.

    Args:
        dataset: A map-style data set.
        epochs: Length of the whole run.
        prune_ratio: Fraction that is removed at random first, in [0, 1).
        groups: Number of difficulty groups.
        window_scale: Window as a share of the groups, in (0, 1].
        options: The seed and what few runs need to say.
    """

    def __init__(
        self,
        dataset: Any,
        epochs: int,
        *more: Any,
        prune_ratio: float = 0.1,
        groups: int = 5,
        window_scale: float = 0.9,
        options: Options | None = None,
    ) -> None:
        _check_positional("SeTa", ("prune_ratio", "groups", "window_scale"), more)
        numbers = {
            "prune_ratio": _number("SeTa", "seta", "prune_ratio", prune_ratio),
            "groups": _number("SeTa", "seta", "groups", groups),
            "window_scale": _number("SeTa", "seta", "window_scale", window_scale),
        }
        super().__init__(dataset, epochs, policy="seta", policy_options=numbers, options=options)


class Proxy:
    """Puts another score in the place of a handler's own."""

    def __init__(self, handler: Handler, score: str, options: Mapping[str, float]) -> None:
        name = type(self).__name__
        if not isinstance(handler, Handler):
            raise TypeError(f"{name}: takes a handler, as in BLS(InfoBatch(...)), got {handler!r}")
        if handler.plan is not None:
            raise ValueError(f"{name}: the handler must not have started its run")
        if handler._run.watcher is not None:
            raise ValueError(f"{name}: the handler must not watch anything; call watch after proxy()")
        self._settings = dict(handler._settings, score=score, score_options=dict(options))
        self._handler = handler
        self._run = handler._make_run(**self._settings)

    def __getattr__(self, name: str) -> NoReturn:
        kind = type(self).__name__
        raise AttributeError(
            f"{kind} has no attribute {name}; the handler is what {kind}(...).proxy() returns"
        )

    def proxy(self) -> Handler:
        """The handler, with the new score."""
        self._handler._settings, self._handler._run = self._settings, self._run
        return self._handler


class BLS(Proxy):
    """Batch Loss Score: a moving average of the mean losses of the sample's batches.

    Args:
        handler: A handler that has not started its run.
        alpha: Share of the old score in the new one, in [0, 1).
        initial_score: Score before a sample's first observation: "first-batch-loss", "zero" or a
            number.

    Example:
        >>> handler = tamis.BLS(tamis.InfoBatch(train_set, epochs=200), alpha=0.7).proxy()
    """

    def __init__(
        self,
        handler: Handler,
        alpha: float = 0.7,
        *,
        initial_score: str | float = "first-batch-loss",
    ) -> None:
        options = {
            "alpha": _number("BLS", "batch-loss", "alpha", alpha),
            "initial_score": _number("BLS", "batch-loss", "initial_score", initial_score),
        }
        super().__init__(handler, "batch-loss", options)


class BLR(Proxy):
    """Batch Loss Reconstruction: per-sample losses reconstructed from the means of many batches.

    For losses that are positive.

    Args:
        handler: A handler that has not started its run.
        step: How far one batch moves its samples, in (0, 1].
    """

    def __init__(self, handler: Handler, step: float = 0.2) -> None:
        number = _number("BLR", "reconstruction", "step", step)
        super().__init__(handler, "reconstruction", {"step": number})


def _split_options(
    policy: str, score: str, options: Mapping[str, Any]
) -> tuple[dict[str, float], dict[str, float]]:
    scores = _core.scores()
    if score not in scores:
        raise ValueError(f"prune: score must be one of {', '.join(scores)}, got {score!r}")
    known = {
        policy: [option["name"] for option in _core.policies()[policy]["options"]],
        score: [option["name"] for option in scores[score]["options"]],
    }
    split: dict[str, dict[str, float]] = {policy: {}, score: {}}
    for name, value in options.items():
        owners = [owner for owner, names in known.items() if name in names]
        if not owners:
            raise TypeError(f"prune: unknown option {name}: {_advice(name, known)}")
        for owner in owners:
            split[owner][name] = _number("prune", owner, name, value)
    return split[policy], split[score]


def _advice(name: str, known: Mapping[str, list[str]]) -> str:
    if name in (field.name for field in fields(Options)):
        return f"pass options=tamis.Options({name}=...)"
    return "; ".join(f"{owner} has {', '.join(names) or 'none'}" for owner, names in known.items())


def _number(owner: str, kind: str, name: str, value: Any) -> float:
    """An option of a score or policy as a number; TypeError, with its rule, if it is none."""
    words = _WORDS.get(name, {})
    if isinstance(value, str) and value in words:
        return words[value]
    info = _core.policies().get(kind) or _core.scores()[kind]
    rule = next((o["rule"] for o in info["options"] if o["name"] == name), "")
    either = "".join(f" or {word!r}" for word in words)
    if isinstance(value, bool) and rule == "0 or 1":
        return float(value)
    return check_number(owner, name, value, f"{rule}{either}; leave it out for the default")


def _check_positional(owner: str, names: tuple[str, ...], given: tuple[Any, ...]) -> None:
    """The authors' classes take these by position; here they have names."""
    if given:
        said = ", ".join(f"{name}={value!r}" for name, value in zip(names, given, strict=False))
        cure = said.replace("delta=", "options=tamis.Options(delta=") + (")" * ("delta" in said))
        raise TypeError(
            f"{owner}: options must be given by name, got {', '.join(map(repr, given))} after "
            f"epochs; write {owner}(train_set, epochs=..., {cure or '...'})"
        )
