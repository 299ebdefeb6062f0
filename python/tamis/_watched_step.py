"""The backward pass of watched outputs: norms out of their gradients, weights onto them."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function, Variable

from ._core import WatchedRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._core import LossBook

_HALF = (torch.float16, torch.bfloat16)
_keeps_graph = torch._C._autograd._get_current_graph_task_keep_graph
current_task = torch._C._current_graph_task_id  # -1 outside of backward passes


@dataclass(frozen=True, eq=False)
class Rule:
    """How the gradient of a watched output is read.

    Attributes:
        name: What is watched, for messages.
        batch_dim: The dimension that counts the samples.
        per_token: Adds the norms of the tokens, [batch, tokens, features], not their squares.
        norm_order: 2, or 1, the sum of magnitudes, for a cross-entropy's logits.
        reads, weighs: What is done here. At the input of a module only its norms are read; the
            weights are put on its output, because its own parameters must get them, too.
    """

    name: str
    batch_dim: int = 0
    per_token: bool = False
    norm_order: int = 2
    reads: bool = True
    weighs: bool = True

    @cached_property
    def is_plain(self) -> bool:
        """The norms of the first dimension's rows are read here, and the weights put on them."""
        return self.batch_dim == 0 and not self.per_token and self.reads and self.weighs

    def num_rows(self, tensor: Tensor) -> int:
        return tensor.shape[self.batch_dim] if self.batch_dim < tensor.ndim else 0

    @cached_property
    def has_checks(self) -> bool:
        """The shape of what is watched matters."""
        return self.per_token or self.norm_order == 1

    def check(self, tensors: list[Tensor]) -> None:
        for tensor in tensors:
            if self.norm_order == 1 and (tensor.ndim != 2 or self.per_token or not self.reads):
                raise ValueError(
                    "watch: with cross_entropy=1 what is watched must be the logits, one row per "
                    f"sample, at their output and without per_token, got {tuple(tensor.shape)} "
                    f"from {self.name}; watch the layer that makes the logits, or leave "
                    "cross_entropy out"
                )
            if self.reads and self.per_token and tensor.ndim < 3:
                raise ValueError(
                    "watch: per_token must get outputs of shape [batch, tokens, features], got "
                    f"{tuple(tensor.shape)} from {self.name}; leave per_token out"
                )

    def norms(self, gradient: Tensor) -> Tensor:
        """One per sample, in float32 at least."""
        rows = gradient.movedim(self.batch_dim, 0) if self.batch_dim else gradient
        kind = torch.float32 if rows.dtype in _HALF else None
        if rows.ndim == 1:
            return rows.to(kind or rows.dtype).abs()
        vectors = rows if self.per_token else rows.flatten(1)
        norms: Tensor = torch.linalg.vector_norm(vectors, self.norm_order, dim=-1, dtype=kind)
        return norms.flatten(1).sum(1) if self.per_token else norms

    def join(self, before: Tensor, norms: Tensor) -> Tensor:
        """The norms over what both are of."""
        return before + norms if self.norm_order == 1 else before.hypot(norms)

    def weigh(self, gradient: Tensor, factors: NDArray[np.float64]) -> Tensor:
        shape = [1] * gradient.ndim
        shape[self.batch_dim] = -1
        # Half precision would round the factors.
        kind = torch.float32 if gradient.dtype in _HALF else gradient.dtype
        rows = torch.from_numpy(factors).to(gradient.device, kind, non_blocking=True).view(shape)
        return (gradient * rows).to(gradient.dtype)


class Receiver(Protocol):
    """Who is told how the backward pass of a step went."""

    def settle(self, step: Step, norms: Tensor) -> None: ...
    def miss(self, step: Step, is_final: bool) -> None: ...


class Step:
    """The outputs watched since the last update, until the backward pass of the next one is over.

    Attributes:
        sizes: Of the watched tensors, which rule and how many rows.
        book, claim: Where the update stands, from update() on.
        count: Samples of its batch.
        loss: Its mean loss, or a DelayedLoss on its way from the device.
        factors: What the weights put on the rows; None: nothing.
        divisors: Weights that the losses, and so the gradients, have already.
        is_spent: A backward pass that gave up the graph came before update().
        is_settled: The norms have been observed, or nobody needs them.
    """

    # What a step begins with stands here: a batch makes one.
    book: LossBook | None = None
    claim: int | None = None
    count = 0
    loss: Any = None
    is_spent = is_settled = False
    _num_watched = 0
    _rows: weakref.ref[WatchedRows] | None = None
    factors: NDArray[np.float64] | None = None
    divisors: Tensor | None = None
    _norms: Tensor | None = None
    _task = -1
    _keeps_graph = False

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self.sizes: dict[tuple[Rule, int], tuple[int, ...]] = {}
        self._here: list[weakref.ref[Tensor]] = []

    def watch(self, rule: Rule, tensors: list[Tensor]) -> tuple[Tensor, ...]:
        rule.check(tensors)
        for tensor in tensors:
            self.sizes[rule, rule.num_rows(tensor)] = tensor.shape
        self._num_watched += len(tensors)
        handed_on: tuple[Tensor, ...] = _Identity.apply(  # type: ignore[no-untyped-call]
            self, rule, *tensors
        )
        return handed_on

    def watch_here(self, rule: Rule, tensor: Tensor) -> None:
        """Watches a tensor without a node: right for the only output of a module."""
        if self.holds(tensor):
            return
        if rule.has_checks:
            rule.check([tensor])
        num_rows = rule.num_rows(tensor)
        self.sizes[rule, num_rows] = tensor.shape
        self._num_watched += 1
        self._here.append(weakref.ref(tensor))
        node = tensor.grad_fn
        if node is None:  # a parameter
            tensor.register_hook(partial(self._receive_one, rule))  # type: ignore[no-untyped-call]
            return
        place = tensor.output_nr
        hook: Any = partial(self._receive_here, rule, place)
        if rule.is_plain:
            hook = WatchedRows(self, hook, place, num_rows, rule.norm_order)
            self._rows = weakref.ref(hook)  # it has the step, and lives as long as the graph
        node.register_prehook(hook)

    def holds(self, tensor: Tensor) -> bool:
        """True if the tensor is watched already, as the output of a module inside."""
        for found in self._here:
            if found() is tensor:
                return True
        return getattr(tensor.grad_fn, "step", None) is self

    @property
    def rows(self) -> WatchedRows | None:
        """If nothing is watched but the only output of a module."""
        return self._rows() if self._rows is not None and self._num_watched == 1 else None

    def _receive_here(self, rule: Rule, place: int, gradients: tuple[Any, ...]) -> Any:
        """Of the outputs of a node, the one that is watched."""
        gradient = gradients[place]
        if gradient is None:
            return None
        return (*gradients[:place], self._receive_one(rule, gradient), *gradients[place + 1 :])

    def _receive_one(self, rule: Rule, gradient: Tensor) -> Tensor | None:
        return self.receive(rule, (gradient,))[0]

    def check_rows(self, count: int) -> None:
        """Raises ValueError unless some watched tensor has a row for every sample."""
        for _, num_rows in self.sizes:
            if num_rows == count:
                return
        (rule, _), shape = next(iter(self.sizes.items()))
        raise _wrong_rows(rule, tuple(shape), count)

    def receive(self, rule: Rule, gradients: tuple[Tensor | None, ...]) -> list[Tensor | None]:
        """The gradients of one forward pass; returns those to go on with."""
        if self.claim is None:
            self.is_spent = self.is_spent or not _keeps_graph()
            return list(gradients)
        self.finish_later()
        return [None if one is None else self._receive(rule, one) for one in gradients]

    def _receive(self, rule: Rule, gradient: Tensor) -> Tensor:
        if rule.num_rows(gradient) != self.count:
            raise _wrong_rows(rule, tuple(gradient.shape), self.count)
        factors = self.factors
        if rule.reads and not self.is_settled:
            norms = rule.norms(gradient.detach())
            if factors is not None and not rule.weighs:  # the module's output has them
                norms = norms / torch.from_numpy(factors).to(norms)
            before = self._norms
            self._norms = norms if before is None else rule.join(before, norms.to(before))
        return rule.weigh(gradient, factors) if rule.weighs and factors is not None else gradient

    def finish_later(self, _: Any = None) -> None:
        """Settles when the running backward pass is over; also the hook on the loss."""
        task = current_task()
        if not self.is_settled and task != self._task:
            self._task, self._keeps_graph = task, _keeps_graph()
            Variable._execution_engine.queue_callback(self._finish)

    def _finish(self) -> None:
        if self.is_settled:
            return
        if self._norms is None:
            self._receiver.miss(self, is_final=not self._keeps_graph)
            return
        norms = self._norms if self.divisors is None else self._norms / self.divisors
        self._norms = None
        self._receiver.settle(self, norms.to(torch.float32))


def _wrong_rows(rule: Rule, shape: tuple[int, ...], count: int) -> ValueError:
    return ValueError(
        f"watch: dimension {rule.batch_dim} of a watched output must count the samples of its "
        f"batch, which are {count}, but the output of {rule.name} has shape {shape}. If another "
        "dimension does, give batch_dim=; where rows are packed or flattened, watch a layer that "
        "still has one row per sample, such as the last hidden state"
    )


class _Identity(Function):
    """Hands tensors on; what the loss uses of them gets one gradient, however they were made."""

    @staticmethod
    def forward(ctx: Any, step: Step, rule: Rule, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.step, ctx.rule = step, rule
        ctx.set_materialize_grads(False)
        return tuple(tensor.detach() for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        return (None, None, *ctx.step.receive(ctx.rule, gradients))
