"""Pruning methods by name and by class: prune, InfoBatch, SeTa, BLS and BLR."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple, Union

from . import _core
from ._ranks import DEFAULT_TIME_LIMIT
from .handler import Handler

if TYPE_CHECKING:
    from ._core import PolicyInfo, ScoreInfo

# Prefix of a method -> the score that it puts in the place of the policy's own.
PROXIES = {"bls": "batch-loss", "blr": "reconstruction"}

# Options that are words: the core knows numbers only.
_WORDS = {"initial_score": {"first-batch-loss": math.nan, "zero": 0.0}}


def methods() -> List[str]:
    """Every name that prune() takes: each policy, alone and with the score of BLS or BLR."""
    names = list(_core.policies())
    return names + [f"{proxy}-{name}" for proxy in PROXIES for name in names]


def prune(
    dataset: Any,
    method: Optional[str] = None,
    *,
    epochs: int,
    policy: Optional[str] = None,
    score: Optional[str] = None,
    delta: Optional[float] = None,
    seed: int = 0,
    batch_size: Optional[int] = None,
    drop_last: bool = False,
    lookahead: Optional[int] = None,
    delayed: bool = False,
    homogeneous: bool = False,
    min_per_class: float = 0.0,
    labels: Any = None,
    target_prune: Optional[float] = None,
    layout: str = "automatic",
    remainder: str = "pad",
    time_limit: float = DEFAULT_TIME_LIMIT,
    **options: Any,
) -> Handler:
    """A handler by the name of its method.

    Args:
        dataset: A map-style data set.
        method: A policy ("infobatch", "seta", ...), or one with the score of BLS or BLR in front
            ("bls-infobatch", "blr-trim"); methods() lists them.
        epochs: Length of the whole run.
        policy: Instead of `method`: the name of a policy.
        score: With `policy` or a `method` that is a policy: the name of a score.
        delta, seed, batch_size, drop_last, lookahead, delayed, homogeneous, min_per_class, labels,
            target_prune, layout, remainder, time_limit: See Handler.
        **options: Options of the policy and of the score by name (prune_ratio, alpha, ...).

    Returns:
        The handler.

    Example:
        >>> handler = tamis.prune(train_set, "bls-infobatch", epochs=200, prune_ratio=0.3)
    """
    chosen_policy, chosen_score = _split_method(method, policy, score)
    if chosen_score is None:
        chosen_score = _policy_info(chosen_policy)["default_score"]
    policy_options, score_options = _split_options(chosen_policy, chosen_score, options)
    return Handler(
        dataset,
        epochs,
        policy=chosen_policy,
        policy_options=policy_options,
        score=chosen_score,
        score_options=score_options,
        delta=delta,
        seed=seed,
        batch_size=batch_size,
        drop_last=drop_last,
        lookahead=lookahead,
        delayed=delayed,
        homogeneous=homogeneous,
        min_per_class=min_per_class,
        labels=labels,
        target_prune=target_prune,
        layout=layout,
        remainder=remainder,
        time_limit=time_limit,
    )


class InfoBatch(Handler):
    """Prunes samples that score below the mean and rescales those of them that stay.

    Takes one loss per sample; with BLS or BLR around it, the mean loss of the batch.

    Args:
        dataset: A map-style data set.
        epochs: Length of the whole run.
        prune_ratio: Fraction of the samples below the mean that is removed, in [0, 0.9].
        delta: Share of the epochs that are pruned; the rest use everything.
        **options: seed, batch_size, homogeneous, min_per_class, labels, target_prune and the others
            of Handler.
    """

    def __init__(
        self,
        dataset: Any,
        epochs: int,
        *,
        prune_ratio: float = 0.5,
        delta: float = 0.875,
        **options: Any,
    ) -> None:
        super().__init__(
            dataset,
            epochs,
            policy="infobatch",
            policy_options={"prune_ratio": _number("prune_ratio", prune_ratio)},
            delta=delta,
            **options,
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
        delta: Share of the epochs that use the window; the rest use the random subset.
        **options: seed, batch_size, homogeneous, min_per_class, labels, target_prune and the others
            of Handler.
    """

    def __init__(
        self,
        dataset: Any,
        epochs: int,
        *,
        prune_ratio: float = 0.1,
        groups: int = 5,
        window_scale: float = 0.9,
        delta: float = 0.875,
        **options: Any,
    ) -> None:
        super().__init__(
            dataset,
            epochs,
            policy="seta",
            policy_options={
                "prune_ratio": _number("prune_ratio", prune_ratio),
                "groups": _number("groups", groups),
                "window_scale": _number("window_scale", window_scale),
            },
            delta=delta,
            **options,
        )


class Proxy:
    """Puts another score in the place of a handler's own."""

    def __init__(self, handler: Handler, score: str, options: Mapping[str, float]) -> None:
        if not isinstance(handler, Handler):
            raise TypeError(f"{type(self).__name__}: takes a handler, got {type(handler)}")
        if handler.plan is not None:
            raise ValueError(f"{type(self).__name__}: the handler must not have started its run")
        settings = dict(handler.options, score=score, score_options=dict(options))
        self._handler = handler
        self._pruner = handler._run.make_pruner(settings)

    def proxy(self) -> Handler:
        """The handler, with the new score."""
        self._handler._run.set_pruner(self._pruner)
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
        initial_score: Union[str, float] = "first-batch-loss",
    ) -> None:
        options = {
            "alpha": _number("alpha", alpha),
            "initial_score": _number("initial_score", initial_score),
        }
        super().__init__(handler, PROXIES["bls"], options)


class BLR(Proxy):
    """Batch Loss Reconstruction: per-sample losses reconstructed from the means of many batches.

    For losses that are positive.

    Args:
        handler: A handler that has not started its run.
        step: How far one batch moves its samples, in (0, 1].
    """

    def __init__(self, handler: Handler, step: float = 0.2) -> None:
        super().__init__(handler, PROXIES["blr"], {"step": _number("step", step)})


def _policy_info(name: str) -> PolicyInfo:
    policies = _core.policies()
    if name not in policies:
        raise ValueError(f"prune: policy must be one of {', '.join(policies)}, got {name!r}")
    return policies[name]


def _score_info(name: str) -> ScoreInfo:
    scores = _core.scores()
    if name not in scores:
        raise ValueError(f"prune: score must be one of {', '.join(scores)}, got {name!r}")
    return scores[name]


def _split_method(
    method: Optional[str], policy: Optional[str], score: Optional[str]
) -> Tuple[str, Optional[str]]:
    if (method is None) == (policy is None):
        raise ValueError("prune: give either method or policy")
    if method is None:
        assert policy is not None
        return policy, score
    name = method.lower().replace("_", "-")
    if name not in methods():
        raise ValueError(f"prune: method must be one of {', '.join(methods())}, got {method!r}")
    prefix, _, rest = name.partition("-")
    if prefix not in PROXIES:
        return name, score
    if score is not None:
        raise ValueError(f"prune: method {method!r} has its own score, got score={score!r} as well")
    return rest, PROXIES[prefix]


def _split_options(
    policy: str, score: str, options: Mapping[str, Any]
) -> Tuple[Dict[str, float], Dict[str, float]]:
    known: Dict[str, List[str]] = {
        policy: [option["name"] for option in _policy_info(policy)["options"]],
        score: [option["name"] for option in _score_info(score)["options"]],
    }
    split: Dict[str, Dict[str, float]] = {policy: {}, score: {}}
    for name, value in options.items():
        owners = [owner for owner, names in known.items() if name in names]
        if not owners:
            listed = [f"{owner} has {', '.join(names) or 'none'}" for owner, names in known.items()]
            raise TypeError(f"prune: unknown option {name}: {'; '.join(listed)}")
        for owner in owners:
            split[owner][name] = _number(name, value)
    return split[policy], split[score]


def _number(name: str, value: Any) -> float:
    if isinstance(value, str) and value in _WORDS.get(name, {}):
        return _WORDS[name][value]
    if isinstance(value, (str, bool)):
        words = "".join(f" or {word!r}" for word in _WORDS.get(name, {}))
        raise TypeError(f"{name} must be a number{words}, got {value!r}")
    return float(value)
