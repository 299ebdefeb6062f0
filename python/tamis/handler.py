"""Handler: a data set whose samples are pruned while it is trained on. Start here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import get_ident
from typing import Any, Literal, NoReturn

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import BatchSampler, default_collate

from . import _compile, _losses, _messages
from ._batches import Collate, DatasetView, ids_of, strip_ids
from ._carry import Carried
from ._check import Check, check
from ._core import INDEX_BITS, Pruner
from ._options import Options, check_count
from ._pass import Source, Way
from ._ranks import Ranks, num_ranks
from ._record import RecordedRun
from ._run import Run
from ._stream import Keeps, Stream
from ._watched_step import Rule
from .loader import Loader, Sampler

STATE_VERSION = 1
_MAX_EPOCHS = (1 << (62 - INDEX_BITS)) - 1  # an id holds epoch and index


class Handler(RecordedRun):
    """A data set, its pruning method and the state of the run.

        handler = tamis.prune(train_set, "bls-infobatch", epochs=200)
        loader = handler.loader(batch_size=128, num_workers=4)
        for epoch in range(200):
            for images, labels in loader:
                loss = handler.update(criterion(model(images), labels))
                loss.backward()

    A loss is attributed to its batch in one of three ways, and in no other:

    - by delivery: `update(loss)` in a plain loop over `handler.loader(...)` is for the batch that
      the loader handed out last. If something fetches ahead, it is refused.
    - by ids: `update(loss, batch)` or `update(loss, ids=...)`; the ids travel with the batch, also
      where a framework makes its own DataLoader of ours. Right in every loop.
    - in order: over a DataLoader of your own that draws from `handler.sampler`, the k-th update of
      a pass is for its k-th batch. The losses count when the pass ends, if there were as many
      updates as batches.

    To be used from one thread. If torch.distributed is initialised with several ranks when the
    handler is made, every rank makes one and trains on its share of each epoch. These calls are
    then for all ranks: making the handler, starting an epoch or set_epoch, record, state_dict and
    load_state_dict.

    Attributes:
        number: Tells it from the other handlers of the process.
    """

    def __init__(
        self,
        dataset: Any,
        epochs: int,
        *,
        policy: str,
        policy_options: Mapping[str, float] | None = None,
        score: str | None = None,
        score_options: Mapping[str, float] | None = None,
        options: Options | None = None,
    ) -> None:
        name = type(self).__name__
        chosen = Options() if options is None else options
        if not isinstance(chosen, Options):
            raise TypeError(f"{name}: options must be tamis.Options(...), got {chosen!r}")
        is_stream = isinstance(dataset, Stream)
        if not is_stream:
            _messages.check_dataset(name, dataset)
            self._data = DatasetView(dataset)
        self._num_samples = len(dataset)
        size = num_ranks()
        is_external = size > 1 and (chosen.sharding == "external" or is_stream)
        self._settings: dict[str, Any] = {
            "num_samples": self._num_samples,
            "num_epochs": check_count(name, "epochs", epochs, 1, _MAX_EPOCHS),
            "policy": policy,
            "policy_options": dict(policy_options or {}),
            "score": score,
            "score_options": dict(score_options or {}),
            "delta": chosen.delta,
            "seed": chosen.seed,
            # The batches of all ranks in a step are cut from one stretch of the plan.
            "homogeneous_batch_size": (chosen.batch_size or 0) * (1 if is_external else size)
            if chosen.homogeneous
            else 0,
            "min_per_class": chosen.min_per_class,
            "labels": chosen.labels,
            "target_prune": chosen.target_prune,
            "layout": "external" if is_external else chosen.layout,
            "remainder": chosen.remainder,
            "threads": chosen.threads,
        }
        self._source = None
        if chosen.batch_size is not None:
            self._source = Source(chosen.batch_size, chosen.drop_last)
        self._ranks = Ranks(chosen.time_limit) if size > 1 else None
        self._kind: dict[str, Any] = {
            "ranks": size,
            "is_external": is_external,
            "is_stream": is_stream,
        }
        self._run = self._make_run(**self._settings)
        self.number = _compile.register(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.number = _compile.register(self)

    def _make_run(self, **settings: Any) -> Run:
        pruner = Pruner(**settings, communicator=self._ranks)
        return Run(pruner, self._source, **self._kind)

    @property
    def data(self) -> DatasetView:
        """The data set as loaders see it; holds no state of the run."""
        if "_data" not in self.__dict__:
            raise RuntimeError(
                "this handler was made for a stream of samples and has no data set: filter the "
                "stream with handler.keeps(ids) and call update(loss, ids=...)"
            )
        return self._data

    # The training loop.

    def loader(
        self,
        batch_size: int,
        *,
        drop_last: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        carry: Literal["batch", "labels"] = "batch",
        delayed: bool = False,
        **options: Any,
    ) -> Loader:
        """A DataLoader over the samples of each epoch, whose batches know their ids.

        Args:
            batch_size: Samples per batch, of each rank.
            drop_last: Leaves out an incomplete last batch.
            collate_fn: As of DataLoader. Batches that it returns as dicts get a key "tamis_ids",
                tuples and lists become a list that knows its `ids`.
            carry: "labels" lets the ids ride on the labels, and so on the loss computed from them:
                update(loss) is then right behind any look-ahead, and refused for other losses.
            delayed: Observes a loss at a later update, once it has arrived from the GPU, so that
                update() never waits for the device.
            **options: num_workers, pin_memory and the others of DataLoader.
        """
        for name in ("shuffle", "sampler", "batch_sampler"):
            if options.get(name):
                raise ValueError(f"loader: the handler decides the order; leave out {name}=")
        parts = self.loader_options(
            batch_size, drop_last=drop_last, collate_fn=collate_fn, carry=carry, delayed=delayed
        )
        if not options.get("in_order", True):
            parts["sampler"] = self._ids_only(parts["sampler"])
        return Loader(**parts, **options)

    def loader_options(
        self,
        batch_size: int,
        *,
        drop_last: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        carry: Literal["batch", "labels"] = "batch",
        delayed: bool = False,
    ) -> dict[str, Any]:
        """What loader() is made of, for another class: `StatefulDataLoader(**...)`; by ids only."""
        if carry not in ("batch", "labels"):
            raise ValueError(f"loader: carry must be 'batch' or 'labels', got {carry!r}")
        on_labels = carry == "labels"
        way = Way.LABELS if on_labels else Way.DELIVERY
        size = check_count("loader", "batch_size", batch_size, 1)
        source = Source(size, drop_last, way, is_delayed=delayed)
        self._run.source = source
        return {
            "dataset": self.data,
            "batch_size": size,
            "sampler": Sampler(self._run, source),
            "drop_last": drop_last,
            "collate_fn": Collate(collate_fn or default_collate, on_labels),
        }

    def _ids_only(self, sampler: Sampler) -> Sampler:
        """Batches that come out of order are known by their ids alone."""
        if sampler.source.way is Way.LABELS:
            return sampler
        return Sampler(self._run, replace(sampler.source, way=Way.IDS))

    @property
    def sampler(self) -> Sampler:
        """For `DataLoader(handler.data, sampler=handler.sampler, batch_size=B)` of your own.

        B must be that of `Options(batch_size=B)`, so that updates can be counted.
        """
        return Sampler(self._run, self._source or Source(None))

    def batch_sampler(self, batch_size: int, drop_last: bool = False) -> BatchSampler:
        """For `DataLoader(handler.data, batch_sampler=...)` of your own."""
        source = Source(check_count("batch_sampler", "batch_size", batch_size, 1), drop_last)
        self._run.source = source
        return BatchSampler(Sampler(self._run, source), batch_size, drop_last)

    @property
    def keeps(self) -> Keeps:
        """`keeps(ids)`: which samples of a stream the running epoch uses.

        A stream is read in its own order and filtered; its batches bring their ids to update().
        Call set_epoch() before each epoch: worker processes see the new selection, too.
        """
        return self._run.keeps

    def check(self, loader: Any) -> Check:
        """Whether and how the losses of a loop over this loader find their batch; print it."""
        return check(self._run, loader)

    @staticmethod
    def strip_ids(module: torch.nn.Module) -> Any:
        """Lets a model be called with a whole dict batch: takes the key "tamis_ids" out before.

        Some models swallow an unknown key without a word, others refuse it. Returns the handle of
        a forward pre-hook, to remove it.
        """
        return strip_ids(module)

    def set_epoch(self, epoch: int) -> None:
        """The next iteration gives this epoch, from its start, or from where a state was saved."""
        self._run.set_epoch(epoch)

    def end_pass(self) -> None:
        """Ends the running pass: what was counted in order becomes part of the scores.

        The next iteration and set_epoch do so too; needed only to read the scores of a loop that
        was left early.
        """
        self._run.end_pass()

    def update(self, loss: Any, batch: Any = None, *, ids: Any = None) -> Any:
        """Takes the loss of a batch and returns the loss to call backward() on.

        Args:
            loss: Mean loss of the batch, or one loss per sample: a tensor on any device, an array
                or a number. It is not changed.
            batch: The batch as the loader gave it, which knows its ids.
            ids: Instead: the ids of its samples, or their indices in the data set.

        Returns:
            The mean loss times the mean weight of the batch (the loss itself if that is 1), or the
            mean of the weighted losses.
        """
        if _compile.is_compiling():
            return _compile.update(self, loss, batch, ids)
        run = self._run
        is_plain = batch is None and ids is None
        if is_plain and type(loss) is Tensor and get_ident() == run.thread:
            if run.watcher is not None:
                if loss.ndim == 0 and loss.requires_grad and run.watcher.takes(loss):
                    weight = run.watcher.claim_quick(loss)
                    return loss if weight == 1.0 else loss * weight
            elif loss.ndim == 0:
                if type(value := loss.item()) is float:
                    weight = run.update_batch(value)
                    return loss if weight == 1.0 else loss * weight
            elif _losses.is_plain_memory(loss):
                weights = torch.empty_like(loss)
                run.update_memory(loss.data_ptr(), weights.data_ptr(), loss.numel())
                return torch.dot(loss, weights)
        loss, ids = _find_ids(loss, batch, ids)
        return _losses.apply_weights(loss, run.weigh(loss, ids))

    def factor(self, loss: Any, batch: Any = None, *, ids: Any = None) -> Any:
        """Observes as update() does, but returns the weight alone: for a loop that scales the loss.

        A number for a mean loss; one weight per sample, on the device of the loss, for per-sample
        losses. `loss` is the plain mean, before any division by accumulation steps or tokens.
        """
        loss, ids = _find_ids(loss, batch, ids)
        weights = self._run.weigh(loss, ids)
        if isinstance(weights, float) or not isinstance(loss, Tensor):
            return weights
        return torch.from_numpy(weights).to(loss.device, loss.dtype)

    def watch(
        self,
        target: Any,
        *,
        at: Literal["output", "input"] = "output",
        batch_dim: int = 0,
        per_token: bool = False,
        exact_weights: bool = True,
        required: bool = True,
    ) -> Any:
        """Watches a model's outputs: the gradient that backward() gives them has a row per sample.

            handler.watch(model)                    # once, before the loop
            outputs = handler.watch(model(images))  # or in every step

        The rows give the score output-gradient a norm for every sample, and take the samples'
        weights, so that the parameters get the gradient of mean(w_i * l_i) from a scalar loss. The
        loss is observed in the backward pass.

        Args:
            target: A module, watched in training mode with gradients only; or outputs: a tensor, or
                tuples, lists, dicts and dataclasses of them.
            at: "input" watches what the module is given, such as the last hidden state that a
                language model's head gets.
            batch_dim: The dimension of every watched tensor that counts the samples.
            per_token: Adds up the norms of the tokens of [batch, tokens, features], instead of
                their squares.
            exact_weights: False puts the mean weight of the batch on the loss, and nothing on the
                rows. For all that the handler watches.
            required: False scores a batch by its mean loss where no watched output has a gradient,
                instead of raising RuntimeError. For all that the handler watches.

        Returns:
            Of a module, a handle with remove(). Of outputs, the outputs to go on with.
        """
        if at not in ("output", "input"):
            raise ValueError(f"watch: at must be 'output' or 'input', got {at!r}")
        batch_dim = check_count("watch", "batch_dim", batch_dim, 0)
        watcher = self._run.watch()
        watcher.exact_weights, watcher.required = exact_weights, required
        order = self._run.pruner.norm_order
        if isinstance(target, torch.nn.Module):
            rule = Rule(type(target).__name__, batch_dim, per_token, order)
            return watcher.watch_module(target, rule, at)
        if at == "input":
            raise TypeError(f"watch: at='input' must get a module, got {type(target)}")
        return watcher.watch_outputs(Rule("watch(outputs)", batch_dim, per_token, order), target)

    def __getitem__(self, index: Any) -> NoReturn:
        raise TypeError(
            "a handler is not a data set: use handler.loader(B), or handler.data in a DataLoader "
            "of your own"
        )

    # State.

    def state_dict(self) -> dict[str, Tensor]:
        """The state of the run, for torch.save; exact also in the middle of an epoch.

        It stands after the last batch whose update was called, whatever workers have prefetched.
        With ranks, all of them call it, and all get the state of the whole run.
        """
        self._run.before_save()
        pruner = np.frombuffer(self._run.pruner.serialize(), dtype=np.uint8)
        return {
            "version": torch.tensor(STATE_VERSION),
            "pruner": torch.from_numpy(pruner.copy()),
            "num_missed_updates": torch.tensor(self._run.num_missed),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Goes on where a state was saved: the next iteration gives the rest of its epoch.

        Raises RuntimeError, and changes nothing, if the state is damaged or of another run.
        """
        missing = {"version", "pruner", "num_missed_updates"} - set(state)
        if missing:
            raise RuntimeError(f"load_state_dict: not a handler's state: no {sorted(missing)}")
        version = int(state["version"])
        if version > STATE_VERSION:
            raise RuntimeError(
                f"load_state_dict: written by a newer tamis (format {version}); this one reads up "
                f"to {STATE_VERSION}"
            )
        self._run.load(state["pruner"].cpu().contiguous().numpy())
        self._run.num_missed = int(state["num_missed_updates"])


def _find_ids(loss: Any, batch: Any, ids: Any) -> tuple[Any, Any]:
    """The loss as a plain one, and its ids if it, or its batch, has any."""
    if isinstance(loss, Carried):
        if ids is None and batch is None:
            if loss.ids is None:
                raise RuntimeError(
                    "update: this loss was computed from the labels of several batches; call "
                    "update(loss, ids=...) for each"
                )
            ids = loss.ids
        loss = loss.plain()
    if batch is not None and ids is None:
        ids = ids_of(batch)
    return loss, ids
