"""The roll call: which ranks still answer when an exchange has failed.

Rank 0 listens, notes who calls, and tells every caller who else is there. Plain sockets, because
every wait for them has an end: a call to torch's store never returns if the store's process hangs,
and a thread that waits in one may come back while the interpreter ends, which aborts the process.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import time

# A rank; or the number of ranks, which ends what rank 0 says.
_NUMBER = struct.Struct("!I")
# Callers that wait until rank 0 looks; the system may allow fewer.
_BACKLOG = 4096


def listen(host: str) -> tuple[str, socket.socket]:
    """A socket at a free port of this machine for rank 0, and the address to call it at.

    If `host` is local, all ranks are here, and nobody else can reach the port.
    """
    if host == "localhost" or host.startswith("127."):
        host = host.replace("localhost", "127.0.0.1")
        listener = socket.create_server((host, 0), backlog=_BACKLOG)
    elif socket.has_dualstack_ipv6():
        listener = socket.create_server(
            ("", 0), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
        )
    else:
        listener = socket.create_server(("", 0), backlog=_BACKLOG)
    listener.setblocking(False)
    return host, listener


def answer_roll(listener: socket.socket, size: int, patience: float) -> list[int]:
    """Rank 0: the ranks that do not call within `patience` seconds."""
    deadline = time.monotonic() + patience
    here = {0}
    callers: list[socket.socket] = []
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as calls:
        selector.register(listener, selectors.EVENT_READ)
        while len(here) < size and (left := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                if key.fileobj is listener:
                    with contextlib.suppress(OSError):  # gone again already
                        caller = calls.enter_context(listener.accept()[0])
                        caller.setblocking(False)
                        selector.register(caller, selectors.EVENT_READ, caller)
                    continue
                selector.unregister(key.fileobj)
                rank = _receive_rank(key.data, size)
                if rank is not None:
                    here.add(rank)
                    callers.append(key.data)
                    _tell(callers[-1:], sorted(here))
                    _tell(callers[:-1], [rank])
        _tell(callers, [size])
    return sorted(set(range(size)) - here)


def call_roll(address: tuple[str, int], rank: int, size: int, patience: float) -> list[int] | None:
    """The ranks that do not call within `patience` seconds; None if rank 0 does not answer."""
    deadline = time.monotonic() + patience
    here: set[int] = set()
    received = b""
    try:
        with socket.create_connection(address, timeout=patience) as call:
            call.sendall(_NUMBER.pack(rank))
            while size not in here and (left := deadline - time.monotonic()) > 0:
                call.settimeout(left)
                part = call.recv(4096)
                if not part:
                    return None  # rank 0 died in the middle
                received += part
                whole = len(received) - len(received) % _NUMBER.size
                here.update(number for (number,) in _NUMBER.iter_unpack(received[:whole]))
                received = received[whole:]
    except TimeoutError:
        pass
    except OSError:
        return None
    return sorted(set(range(size)) - here) if 0 in here else None


def _receive_rank(caller: socket.socket, size: int) -> int | None:
    with contextlib.suppress(OSError):
        message = caller.recv(_NUMBER.size)
        if len(message) == _NUMBER.size:
            (rank,) = _NUMBER.unpack(message)
            return int(rank) if rank < size else None
    return None


def _tell(callers: list[socket.socket], numbers: list[int]) -> None:
    message = b"".join(_NUMBER.pack(number) for number in numbers)
    for caller in callers:
        with contextlib.suppress(OSError):  # who has gone needs no answer
            caller.send(message)
