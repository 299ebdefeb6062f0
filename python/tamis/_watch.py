"""Watched outputs: what the backward pass of a scalar loss says about each sample of its batch.

A watched output is handed on through an identity node. The node's gradient has one row per sample:
its norm is the sample's share of the loss, and the weight of a sample is put on its row.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from . import _losses, _outputs
from ._watched_step import Rule, Step, current_task

if TYPE_CHECKING:
    from ._run import Run

_WHERE = (
    "If the loss is computed inside the model, or the model's output is converted or copied before "
    "it reaches the loss (Accelerate, bf16), watch the layer that makes the output: "
    "handler.watch(model.head); of a language model handler.watch(model.lm_head, at='input'). If "
    "the model is compiled, watch the compiled model, or call watch() before it is compiled. Or "
    "watch the outputs themselves, and go on with what is returned: outputs = "
    "handler.watch(outputs). required=False scores by the batch's mean loss where nothing is seen."
)


class Watcher:
    """Ties watched outputs to updates, and updates to the book of the run.

    Attributes:
        exact_weights: The weights of the samples are put on their rows.
        required: An update without watched outputs is an error.
    """

    def __init__(self, run: Run) -> None:
        self._run_reference = weakref.ref(run)  # a model must not keep the run alive
        self._pending = Step(self)
        # Gone with its graph, without which no backward pass comes.
        self._open: list[weakref.ref[Step]] = []
        self._waiting: deque[tuple[Step, _losses.DelayedLoss]] = deque()
        self._unreached: Step | None = None  # its backward pass came and may come again
        self._skipped: str | None = None  # why the hook of a module did nothing
        self._names: dict[int, str] = {}  # watched modules
        self._is_called = False  # watch(outputs) was used
        self._is_reached = False  # a backward pass reached the only output of a watched module
        self._needs = run.pruner.needs
        self._needs_gradients = self._needs == "output-gradients"
        self.exact_weights = True
        self.required = True
        # Not at import: it loads the compiler. Compiled code breaks here.
        self.watch_outputs = _uncompiled(self._watch_outputs)

    @property
    def _run(self) -> Run:
        run = self._run_reference()
        assert run is not None
        return run

    @property
    def is_active(self) -> bool:
        return bool(self._names) or self._is_called

    @property
    def is_waiting(self) -> bool:
        """True if a backward pass may still come for an update."""
        self._forget_settled()
        return bool(self._open)

    def _forget_settled(self) -> None:
        found = [(reference, reference()) for reference in self._open]
        self._open = [ref for ref, step in found if step is not None and not step.is_settled]

    # The forward pass.

    def watch_module(
        self, module: torch.nn.Module, rule: Rule, at: Literal["output", "input"]
    ) -> WatchHandle:
        handles: list[Any] = []
        if at == "input":
            before = Hook(self, replace(rule, name=f"the input of {rule.name}", weighs=False))
            handles.append(module.register_forward_pre_hook(before.before, with_kwargs=True))
            rule = replace(rule, reads=False)
        handles.append(module.register_forward_hook(Hook(self, rule).after))
        self._names[handles[0].id] = rule.name
        self._is_reached = False
        return WatchHandle(self._names, handles)

    def _watch_outputs(self, rule: Rule, outputs: Any) -> Any:
        self._is_called = True
        if not torch.is_grad_enabled() or current_task() != -1:
            return outputs
        return self._hand_on(rule, outputs)

    def watch_call(self, module: torch.nn.Module, rule: Rule, values: Any) -> Any:
        """What a hook on a module does."""
        if self._run_reference() is None:
            return values
        if not module.training:
            self._skipped = f"{rule.name} was in evaluation mode; call train() on it"
        elif not torch.is_grad_enabled():
            self._skipped = f"{rule.name} ran without gradients"
        elif current_task() != -1:
            self._skipped = (
                f"{rule.name} ran inside the backward pass only, as reentrant activation "
                "checkpointing does; watch a module outside, or use_reentrant=False"
            )
        elif type(values) is Tensor and _outputs.is_watchable(values):
            self._pending.watch_here(rule, values)
        else:
            return self._hand_on(rule, values)
        return values

    def _hand_on(self, rule: Rule, outputs: Any) -> Any:
        tensors = _outputs.watchable(outputs)
        if not tensors:
            raise ValueError(
                f"watch: {rule.name} must give a floating-point tensor that needs a gradient, got "
                f"{_describe(outputs)}. Watch a layer whose parameters are trained, before "
                "detach(), argmax() or the like"
            )
        tensors = [tensor for tensor in tensors if not self._pending.holds(tensor)]
        if not tensors:
            return outputs
        handed_on = self._pending.watch(rule, tensors)
        by_id = {id(old): new for old, new in zip(tensors, handed_on, strict=True)}
        return _outputs.replace(outputs, lambda tensor: by_id.get(id(tensor), tensor))

    # Updates.

    def takes(self, loss: Any) -> bool:
        """False if the score is made of one loss per sample, whose weights are exact anyway."""
        if self._needs_gradients:
            return True
        return self.is_active and (self._needs == "mean-loss" or np.ndim(loss) == 0)

    def claim(self, loss: Any, ids: Any, is_traced: bool) -> Any:
        """The update of a batch; returns its mean weight, or one weight per sample."""
        if self._waiting:
            self.settle_waiting(wait=False)
        step, self._pending = self._pending, Step(self)
        skipped, self._skipped = self._skipped, None
        run = self._run
        book = run.book
        if self._unreached is not None:
            self._raise_if_unreached()
        self._check(step, loss, skipped, is_traced)
        count = len(ids) if ids is not None else book.next_batch()[1]
        if step.sizes:
            step.check_rows(count)
        is_mean = loss.ndim == 0
        if not is_mean and len(loss) != count:
            raise ValueError(
                f"update: the batch has {count} samples, so there must be as many losses, got "
                f"{len(loss)}"
            )
        number, mean_weight, weights = book.claim(ids, not is_mean)
        step.book, step.claim, step.count = book, number, count
        if not is_mean:
            # update() puts the weights on the losses, so the gradients have them.
            step.divisors = torch.from_numpy(weights.copy()).to(loss.device, non_blocking=True)
        elif self.exact_weights and step.sizes:
            step.factors = weights
        value = loss if is_mean else loss.detach().mean()
        is_late = run.is_delayed or not loss.is_cpu
        step.loss = _losses.DelayedLoss(value) if is_late else value.item()
        if not step.sizes:
            self.settle(step, torch.ones(count, device=loss.device))
        else:
            self._note_open(step)
            self._expect(step, loss)
        return mean_weight if is_mean else weights

    def claim_quick(self, loss: Tensor) -> float:
        """claim() of a mean loss on the CPU, by delivery or in order.

        Where a backward pass has reached the only output of a watched module before, it takes no
        hook on the loss: one that does not is found when the pass over the data ends, as missed.
        """
        step, run = self._pending, self._run
        is_quick = self._is_reached and self._unreached is None and not self._waiting
        rows = step.rows if is_quick and not step.is_spent and loss.is_cpu else None
        if rows is not None and not run.is_delayed:
            weight = rows.claim(run.book, loss.item(), self.exact_weights)
            if weight is not None:
                self._pending, self._skipped = Step(self), None
                self._note_open(step)
                return weight
        claimed: float = self.claim(loss, None, is_traced=False)
        return claimed

    def _note_open(self, step: Step) -> None:
        if len(self._open) > 16:
            self._forget_settled()
        self._open.append(weakref.ref(step))

    def _expect(self, step: Step, loss: Tensor) -> None:
        """The end of a backward pass through the loss says whether it reached the outputs."""
        if loss.grad_fn is not None:
            loss.grad_fn.register_prehook(step.finish_later)
        elif loss.requires_grad:
            loss.register_hook(step.finish_later)  # type: ignore[no-untyped-call]

    def _check(self, step: Step, loss: Any, skipped: str | None, is_traced: bool) -> None:
        if not step.sizes and self.required and not self.is_active:
            raise RuntimeError(
                "update: the score output-gradient needs watched outputs: call handler.watch(model) "
                "once before the loop, or outputs = handler.watch(outputs) in every step; a method "
                "of bls or blr works with the mean loss alone"
            )
        if not isinstance(loss, Tensor) or not (loss.requires_grad or is_traced):
            what = "a tensor that needs no gradient" if isinstance(loss, Tensor) else type(loss)
            raise TypeError(
                "update: outputs are watched, so the loss must be the tensor that backward() will "
                f"run through, got {what}; give it before detach() or item()"
            )
        if step.is_spent:
            raise RuntimeError(
                "update: backward() has already run through the watched outputs of this batch; "
                "call it on what update() returns: handler.update(loss).backward()"
            )
        if step.sizes or not self.required:
            return
        names = ", ".join(sorted(set(self._names.values()))) or "watch(outputs)"
        why = skipped or (
            f"{names} was not called through its module, or not between the last update and this "
            "one (one update for each batch, each after its forward pass)"
        )
        raise RuntimeError(
            f"update: no output was watched since the last update: {why}. {_WHERE}"
        )

    # The backward pass.

    def settle(self, step: Step, norms: Tensor) -> None:
        """One norm per sample: observed now, or once they have arrived from the device."""
        step.is_settled = True
        self._is_reached = self._is_reached or (self.required and step.rows is not None)
        if self._unreached is step:
            self._unreached = None
        if isinstance(step.loss, _losses.DelayedLoss):
            self._waiting.append((step, _losses.DelayedLoss(norms)))
        else:
            self._observe(step, step.loss, norms.cpu().numpy())

    def settle_waiting(self, wait: bool) -> None:
        waiting = self._waiting
        while waiting and (
            wait or (waiting[0][0].loss.has_arrived() and waiting[0][1].has_arrived())
        ):
            step, norms = waiting.popleft()
            self._observe(step, step.loss.get(), norms.get())

    def _observe(self, step: Step, loss: float, norms: Any) -> None:
        if step.book is not None and step.claim is not None:
            step.book.settle(step.claim, loss, norms)

    def miss(self, step: Step, is_final: bool) -> None:
        """A backward pass through the loss that reached no watched output is over."""
        if not self.required:
            self.settle(step, torch.ones(step.count))
            return
        self._unreached = step
        if is_final:
            self._raise_if_unreached()

    def _raise_if_unreached(self) -> None:
        step, self._unreached = self._unreached, None
        if step is None or step.is_settled:
            return
        step.is_settled = True  # its claim stays open in the book: missed
        names = ", ".join(sorted({rule.name for rule, _ in step.sizes}))
        raise RuntimeError(
            "watch: the backward pass of this loss did not reach the watched outputs of "
            f"{names}, so the samples have neither score nor weight. {_WHERE}"
        )


class Hook:
    """The hooks of a watched module. Copies of the module, and saved ones, are not watched."""

    def __init__(self, watcher: Watcher | None, rule: Rule) -> None:
        self._watcher, self._rule = watcher, rule
        # Compiled code breaks here.
        self._uncompiled = None if watcher is None else _uncompiled(watcher.watch_call)

    def __reduce__(self) -> Any:
        return Hook, (None, self._rule)

    def after(self, module: torch.nn.Module, args: Any, output: Any) -> Any:
        if self._watcher is None or self._uncompiled is None:
            return output
        call = self._uncompiled if torch.compiler.is_compiling() else self._watcher.watch_call
        return call(module, self._rule, output)

    def before(self, module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
        return self.after(module, None, (args, kwargs))


class WatchHandle:
    """Ends the watch of a module: remove(), or leaving its with block."""

    def __init__(self, names: dict[int, str], handles: list[Any]) -> None:
        self._names, self._handles = names, handles

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._names.pop(self._handles[0].id, None)

    def __enter__(self) -> WatchHandle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()


def _uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    made: Callable[..., Any] = torch.compiler.disable(function)  # type: ignore[no-untyped-call]
    return made


def _describe(outputs: Any) -> str:
    found: list[str] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}")
        return tensor

    _outputs.replace(outputs, note)
    return f"{type(outputs).__name__} with {', '.join(found) or 'no tensor'}"
