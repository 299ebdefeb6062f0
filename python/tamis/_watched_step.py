"""The backward pass of watched outputs: norms out of their gradients, weights onto them."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor
from torch.autograd import Function, Variable

if TYPE_CHECKING:
    from ._core import LossBook

_HALF = (torch.float16, torch.bfloat16)


@dataclass(frozen=True, eq=False)
class Rule:
    """How the gradient of a watched output is read.

    Attributes:
        name: What is watched, for messages.
        batch_dim: The dimension that counts the samples.
        per_token: Adds the norms of the tokens, [batch, tokens, features], not their squares.
        reads, weighs: What is done here. At the input of a module only its norms are read; the
            weights are put on its output, because its own parameters must get them, too.
    """

    name: str
    batch_dim: int = 0
    per_token: bool = False
    reads: bool = True
    weighs: bool = True

    def num_rows(self, tensor: Tensor) -> int:
        return tensor.shape[self.batch_dim] if self.batch_dim < tensor.ndim else 0

    def check(self, tensors: list[Tensor]) -> None:
        for tensor in tensors:
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
        norms: Tensor = torch.linalg.vector_norm(vectors, dim=-1, dtype=kind)
        return norms.flatten(1).sum(1) if self.per_token else norms

    def weigh(self, gradient: Tensor, factors: Tensor) -> Tensor:
        shape = [1] * gradient.ndim
        shape[self.batch_dim] = -1
        # Half precision would round the factors.
        kind = torch.float32 if gradient.dtype in _HALF else gradient.dtype
        rows = factors.to(gradient.device, kind, non_blocking=True).view(shape)
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
        is_spent: A backward pass that gave up the graph came before update().
        is_settled: The norms have been observed, or nobody needs them.
    """

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self.sizes: dict[tuple[Rule, int], tuple[int, ...]] = {}
        self.book: LossBook | None = None
        self.claim: int | None = None
        self.count = 0
        self.loss: Any = None
        self.is_spent = self.is_settled = False
        self._here: list[weakref.ref[Tensor]] = []
        self._factors: Tensor | None = None
        self._divisors: Tensor | None = None
        self._norms: Tensor | None = None
        self._task = -1
        self._keeps_graph = False

    def watch(self, rule: Rule, tensors: list[Tensor]) -> tuple[Tensor, ...]:
        rule.check(tensors)
        for tensor in tensors:
            self.sizes[rule, rule.num_rows(tensor)] = tuple(tensor.shape)
        handed_on: tuple[Tensor, ...] = _Identity.apply(  # type: ignore[no-untyped-call]
            self, rule, *tensors
        )
        return handed_on

    def watch_here(self, rule: Rule, tensor: Tensor) -> None:
        """Watches a tensor without a node: right for the only output of a module."""
        if self.holds(tensor):
            return
        rule.check([tensor])
        self.sizes[rule, rule.num_rows(tensor)] = tuple(tensor.shape)
        self._here.append(weakref.ref(tensor))
        tensor.register_hook(partial(self._receive_here, rule))  # type: ignore[no-untyped-call]

    def holds(self, tensor: Tensor) -> bool:
        """True if the tensor is watched already, as the output of a module inside."""
        is_here = any(found() is tensor for found in self._here)
        return is_here or getattr(tensor.grad_fn, "step", None) is self

    def _receive_here(self, rule: Rule, gradient: Tensor) -> Tensor | None:
        return self.receive(rule, (gradient,))[0]

    def check_rows(self, count: int) -> None:
        """Raises ValueError unless some watched tensor has a row for every sample."""
        for _, num_rows in self.sizes:
            if num_rows == count:
                return
        (rule, _), shape = next(iter(self.sizes.items()))
        raise _wrong_rows(rule, shape, count)

    def bind(
        self, book: LossBook, claim: int, count: int, factors: Tensor | None, divisors: Any
    ) -> None:
        self.book, self.claim, self.count = book, claim, count
        self._factors, self._divisors = factors, divisors

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
        factors = self._factors
        if rule.reads and not self.is_settled:
            norms = rule.norms(gradient.detach())
            if factors is not None and not rule.weighs:  # the module's output has them
                norms = norms / factors.to(norms)
            before = self._norms
            self._norms = norms if before is None else before.hypot(norms.to(before))
        return rule.weigh(gradient, factors) if rule.weighs and factors is not None else gradient

    def finish_later(self, _: Tensor | None = None) -> None:
        """Settles when the running backward pass is over; also the hook on the loss."""
        task = torch._C._current_graph_task_id()
        if not self.is_settled and task != self._task:
            self._task, self._keeps_graph = task, _keeps_graph()
            Variable._execution_engine.queue_callback(self._finish)

    def _finish(self) -> None:
        if self.is_settled:
            return
        if self._norms is None:
            self._receiver.miss(self, is_final=not self._keeps_graph)
            return
        norms = self._norms if self._divisors is None else self._norms / self._divisors
        self._norms = None
        self._receiver.settle(self, norms.to(torch.float32))


def _wrong_rows(rule: Rule, shape: tuple[int, ...], count: int) -> ValueError:
    return ValueError(
        f"watch: dimension {rule.batch_dim} of a watched output must count the samples of its "
        f"batch, which are {count}, but the output of {rule.name} has shape {shape}. If another "
        "dimension does, give batch_dim=; where rows are packed or flattened, watch a layer that "
        "still has one row per sample, such as the last hidden state"
    )


def _keeps_graph() -> bool:
    return bool(torch._C._autograd._get_current_graph_task_keep_graph())


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
