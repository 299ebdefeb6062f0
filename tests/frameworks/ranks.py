"""Two processes as torchrun starts them: environment variables, no process group yet."""

from __future__ import annotations

import multiprocessing
import os
import queue
import random
import socket
import traceback

TIME_LIMIT = 240  # seconds, for all ranks to answer


def run_ranks(task, *arguments, size=2):
    """What task(rank, *arguments) returns on each rank; fails if one of them does."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    port = _free_port()
    ranks = [
        context.Process(target=_be_rank, args=(rank, size, port, task, arguments, results))
        for rank in range(size)
    ]
    for rank in ranks:
        rank.start()
    answers = {}
    try:
        for _ in range(size):
            rank, result, error = results.get(timeout=TIME_LIMIT)
            assert error is None, f"rank {rank}: {error}"
            answers[rank] = result
    except queue.Empty:
        raise AssertionError(f"only ranks {sorted(answers)} answered") from None
    finally:
        for rank in ranks:
            rank.kill()
            rank.join()
    return [answers[rank] for rank in range(size)]


def _be_rank(rank, size, port, task, arguments, results):
    os.environ.update(
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(size),
        LOCAL_WORLD_SIZE=str(size),
        GLOO_SOCKET_IFNAME="lo",
        OMP_NUM_THREADS="1",
    )
    try:
        results.put((rank, task(rank, *arguments), None))
    except BaseException:
        results.put((rank, None, traceback.format_exc()))
    results.close()
    results.join_thread()
    os._exit(0)  # a group of which a rank is gone may not want to end


def _free_port():
    # Not one that the system hands out by itself (from 32768 on): others might get it meanwhile. The
    # seed of the tests must not choose it: it would be that of the test before, which may still close.
    while True:
        port = random.SystemRandom().randrange(12_000, 32_000)
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def in_turn(rank_steps):
    """The steps of all ranks in the order in which the core applies them: step by step."""
    assert len({len(steps) for steps in rank_steps}) == 1, "ranks differ in their number of batches"
    return [step for together in zip(*rank_steps) for step in together]
