"""The roll call of ranks: it ends, whatever they do, and all who answer hear the same."""

import contextlib
import pathlib
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tamis import _roll_call


def addresses_that_listen(port):
    """As the kernel writes them: "0100007F" is 127.0.0.1."""
    addresses = []
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path("/proc/net", table).read_text().splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            address, number = local.split(":")
            if state == "0A" and int(number, 16) == port:
                addresses.append(address)
    return addresses


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_ranks_of_one_machine_meet_where_nobody_else_can_reach_them(host):
    address, listener = _roll_call.listen(host)
    with listener:
        assert address == "127.0.0.1"
        port = listener.getsockname()[1]
        assert addresses_that_listen(port) == ["0100007F"]
        with socket.create_connection((address, port), timeout=30):
            pass


def test_ranks_of_several_machines_reach_rank_0_at_every_address():
    address, listener = _roll_call.listen("rank-0.example")
    with listener:
        assert address == "rank-0.example"
        (everywhere,) = addresses_that_listen(listener.getsockname()[1])
        assert set(everywhere) == {"0"}


def hold_roll_call(size, callers, patience):
    """What rank 0 says, and what those say who call it."""
    host, listener = _roll_call.listen("localhost")
    address = (host, listener.getsockname()[1])
    with listener, ThreadPoolExecutor(size) as pool:
        calls = [pool.submit(_roll_call.call_roll, address, r, size, patience) for r in callers]
        answer = _roll_call.answer_roll(listener, size, patience)
        return answer, [call.result(timeout=60) for call in calls]


def test_a_roll_call_of_all_ranks_ends_at_once():
    start = time.monotonic()
    assert hold_roll_call(4, [1, 2, 3], patience=60) == ([], [[], [], []])
    assert time.monotonic() - start < 30


def test_a_roll_call_names_the_same_ranks_to_all_who_answer():
    answer, told = hold_roll_call(5, [1, 3], patience=2.0)
    assert answer == [2, 4]
    assert told == [[2, 4], [2, 4]]


def test_a_roll_call_ends_if_rank_0_hangs_or_has_died():
    host, listener = _roll_call.listen("localhost")  # and nobody looks at it
    address = (host, listener.getsockname()[1])
    start = time.monotonic()
    assert _roll_call.call_roll(address, 1, 2, 0.5) is None
    assert time.monotonic() - start < 30
    listener.close()
    assert _roll_call.call_roll(address, 1, 2, 60) is None
    assert time.monotonic() - start < 30


def test_who_is_no_rank_is_not_heard_in_a_roll_call():
    host, listener = _roll_call.listen("localhost")
    address = (host, listener.getsockname()[1])
    with listener, contextlib.ExitStack() as strangers:
        for message in (b"\xff\xff\xff\xff", b"GET", b""):
            stranger = strangers.enter_context(socket.create_connection(address, timeout=30))
            stranger.sendall(message)
        assert _roll_call.answer_roll(listener, 2, 0.5) == [1]
