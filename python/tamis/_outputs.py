"""Tensors in the nested outputs of a model: found, and replaced without touching the original."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from torch import Tensor


def watchable(outputs: Any) -> list[Tensor]:
    """The tensors with a gradient and at least one dimension, in order, each once."""
    found: dict[int, Tensor] = {}

    def note(tensor: Tensor) -> Tensor:
        if is_watchable(tensor):
            found[id(tensor)] = tensor
        return tensor

    replace(outputs, note)
    return list(found.values())


def is_watchable(tensor: Tensor) -> bool:
    return tensor.requires_grad and tensor.is_floating_point() and tensor.ndim > 0


def replace(value: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """The same structure with function(tensor) in the place of every tensor.

    Goes into tuples, lists, dicts and dataclasses; what holds no tensor that changes stays as it
    is.
    """
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, tuple):
        items = [replace(item, function) for item in value]
        if _are_same(items, value):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, list):
        items = [replace(item, function) for item in value]
        return value if _are_same(items, value) else _refilled(value, dict(enumerate(items)))
    if isinstance(value, Mapping):
        return _replace_in_mapping(value, function)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _replace_in_dataclass(value, function)
    return value


def _replace_in_mapping(value: Mapping[Any, Any], function: Callable[[Tensor], Tensor]) -> Any:
    items = {key: replace(item, function) for key, item in value.items()}
    changed = {key: item for key, item in items.items() if item is not value[key]}
    if not changed:
        return value
    # Also Hugging Face's ModelOutput, which keeps its attributes in step with its items.
    return _refilled(value, changed) if isinstance(value, MutableMapping) else items


def _replace_in_dataclass(value: Any, function: Callable[[Tensor], Tensor]) -> Any:
    changed = {}
    for field in dataclasses.fields(value):
        before = getattr(value, field.name)
        after = replace(before, function)
        if after is not before:
            changed[field.name] = after
    if not changed:
        return value
    made = copy.copy(value)
    for name, item in changed.items():
        object.__setattr__(made, name, item)  # frozen ones, too
    return made


def _refilled(value: Any, changed: Mapping[Any, Any]) -> Any:
    made = copy.copy(value)
    for key, item in changed.items():
        made[key] = item
    return made


def _are_same(items: list[Any], value: Any) -> bool:
    return all(one is other for one, other in zip(items, value, strict=True))
