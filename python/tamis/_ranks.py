"""The ranks of a run on torch.distributed, as the core's Pruner talks to them."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import weakref
from datetime import timedelta
from functools import partial
from typing import Any, NoReturn

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from tamis import _roll_call

# Shares of the time limit: for a call to end, and to find out afterwards who is missing.
_CALL_SHARE = 0.65
_ROLL_CALL_SHARE = 0.25

_OPERATIONS: dict[str, Any] = {}


def num_ranks() -> int:
    """Processes of torch.distributed's default group; 1 if there is none."""
    if not dist.is_available() or not dist.is_initialized():
        return 1
    return int(dist.get_world_size())


# All that are open. A thread of a group may still be about to drop a tensor, for which it needs the
# interpreter's lock; if it asks for that while the interpreter ends, the process aborts. So every
# group ends before.
_open_ranks: weakref.WeakSet[Ranks] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for ranks in list(_open_ranks):
        ranks.close()


class Ranks:
    """All ranks of the default process group, over a Gloo group of their own.

    Gloo, whatever the backend that trains: what is exchanged is small and lies in host memory. If a
    rank dies, hangs, or does not take part, every other one gets a RuntimeError that names it,
    within the time limit.
    """

    def __init__(self, time_limit: float) -> None:
        self.rank = int(dist.get_rank())
        self.size = int(dist.get_world_size())
        self.time_limit = time_limit
        self._group: Any | None = dist.new_group(
            backend="gloo", timeout=timedelta(seconds=_CALL_SHARE * time_limit)
        )
        self._listener: socket.socket | None = None  # of rank 0
        self._roll_address: tuple[str, int] | None = None
        self._agree_on_roll_call()
        _open_ranks.add(self)

    def close(self) -> None:
        """Ends the threads of the group, which waits for them. Does nothing the second time."""
        group, self._group = self._group, None
        if group is not None and dist.is_initialized():
            # Gone already if the caller has ended all groups and begun others.
            with contextlib.suppress(ValueError):
                dist.destroy_process_group(group)
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def reduce(self, numbers: NDArray[np.int64], operation: str) -> NDArray[np.int64]:
        """The sum, min or max over all ranks."""
        tensor = torch.from_numpy(numbers.copy())
        self._run(partial(dist.all_reduce, tensor, op=_operation(operation), group=self._group))
        return tensor.numpy()

    def gather(self, own: bytes) -> list[bytes]:
        """The bytes of every rank; Gloo gathers equal lengths, so first the lengths."""
        lengths = [int(row) for row in self._gather_rows(torch.tensor([len(own)]))]
        longest = max(lengths)
        if longest == 0:
            return [b""] * self.size
        padded = torch.zeros(longest, dtype=torch.uint8)
        padded[: len(own)] = torch.from_numpy(np.frombuffer(own, dtype=np.uint8).copy())
        rows = self._gather_rows(padded)
        return [row.numpy()[:n].tobytes() for row, n in zip(rows, lengths, strict=True)]

    def _gather_rows(self, own: torch.Tensor) -> list[torch.Tensor]:
        rows = [torch.empty_like(own) for _ in range(self.size)]
        self._run(partial(dist.all_gather, rows, own, group=self._group))
        return rows

    def _run(self, call: Any) -> None:
        if self._group is None:
            raise RuntimeError(f"rank {self.rank}: the exchange with other ranks has failed before")
        try:
            call()
        except RuntimeError as error:
            self._fail(str(error).split("\n", 1)[0])

    def _fail(self, reason: str) -> NoReturn:
        # Closes the connections, so that ranks that wait for this one learn of it at once.
        group, self._group = self._group, None
        dist.destroy_process_group(group)
        missing = self._find_missing()
        if missing is None:
            who = "rank 0"
        elif missing:
            who = "rank " + ", ".join(str(rank) for rank in missing)
        else:
            raise RuntimeError(
                f"rank {self.rank}: all ranks answer, but the exchange failed: {reason}"
            )
        raise RuntimeError(
            f"rank {self.rank}: {who} of {self.size} has died, hangs or did not take part; "
            "constructing a handler, starting an epoch, set_epoch, state_dict and "
            f"load_state_dict are for all ranks ({reason})"
        )

    def _find_missing(self) -> list[int] | None:
        """The ranks that do not answer; None if rank 0 is one of them."""
        patience = _ROLL_CALL_SHARE * self.time_limit
        if self._listener is not None:
            return _roll_call.answer_roll(self._listener, self.size, patience)
        if self._roll_address is not None:
            return _roll_call.call_roll(self._roll_address, self.rank, self.size, patience)
        return None

    def _agree_on_roll_call(self) -> None:
        """Rank 0 listens, and all know where."""
        place = b""
        listener = None
        if self.rank == 0:
            host = os.environ.get("MASTER_ADDR", socket.gethostname())
            host, listener = _roll_call.listen(host)
            weakref.finalize(self, listener.close)
            place = f"{host} {listener.getsockname()[1]}".encode()
        host, port = self.gather(place)[0].decode().split()
        self._listener, self._roll_address = listener, (host, int(port))


def _operation(name: str) -> Any:
    if not _OPERATIONS:
        kinds = dist.ReduceOp
        _OPERATIONS.update(sum=kinds.SUM, min=kinds.MIN, max=kinds.MAX)
    return _OPERATIONS[name]
