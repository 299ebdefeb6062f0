"""Several ranks on torch.distributed, as real processes with Gloo on the loopback interface."""

import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import tamis
import torch
import torch.distributed as dist
from support import EXAMPLES, IndexDataset, batch_loss, make_loader

SIZE = 103


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def be_rank(rank, size, port, task, arguments, results):
    """One process: joins the group, does the task, sends back its result or its error."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    try:
        dist.init_process_group("gloo", rank=rank, world_size=size)
        results.put((rank, task(rank, *arguments), None))
    except Exception as error:
        results.put((rank, None, f"{type(error).__name__}: {error}"))
    results.close()
    results.join_thread()
    os._exit(0)  # a group of which a rank is gone may not want to end


def run_ranks(size, task, *arguments, expect=None):
    """Results of all ranks, or with `expect` (ranks that answer) their results and errors."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    port = free_port()
    ranks = [
        context.Process(target=be_rank, args=(rank, size, port, task, arguments, results))
        for rank in range(size)
    ]
    for rank in ranks:
        rank.start()
    try:
        answers = {}
        for _ in range(size if expect is None else len(expect)):
            rank, result, error = results.get(timeout=120)
            answers[rank] = (result, error)
    finally:
        for rank in ranks:
            rank.kill()
            rank.join()
    if expect is None:
        errors = [error for _, error in answers.values() if error]
        assert not errors, errors
        return [answers[rank][0] for rank in range(size)]
    return answers


def train_epoch(handler, loader, trained=None):
    for indices, _ in loader:
        handler.update(batch_loss(indices))
        if trained is not None:
            trained.extend(int(i) for i in indices)


def make(epochs=4, mode="loader", **options):
    options = tamis.Options(batch_size=8, **options)
    handler = tamis.prune(IndexDataset(SIZE), "bls-infobatch", epochs=epochs, options=options)
    return handler, make_loader(handler, mode)


def train(rank, layout, epochs, mode="loader"):
    """What a rank trained on in every epoch, and the state at the end."""
    handler, loader = make(layout=layout, mode=mode)
    seen = []
    for epoch in range(epochs):
        handler.set_epoch(epoch)
        trained = []
        size = len(handler.sampler)
        train_epoch(handler, loader, trained)
        seen.append(trained)
        assert handler.num_missed_updates == 0
        assert len(trained) == size
    state = handler.state_dict()
    return seen, state["pruner"].numpy().tobytes(), handler.scores


@pytest.mark.parametrize("layout", ["replicated", "sharded"])
def test_ranks_share_every_epoch_equally(layout):
    results = run_ranks(2, train, layout, 3)
    for epoch in range(3):
        shares = [seen[epoch] for seen, _, _ in results]
        assert len(shares[0]) == len(shares[1])
        trained = shares[0] + shares[1]
        if epoch == 0:
            assert set(trained) == set(range(SIZE))
            assert len(trained) <= SIZE + 1
    assert len(results[0][0][2]) < (SIZE + 1) // 2 + 1


def test_replicated_ranks_have_the_same_state():
    (_, first_state, first), (_, second_state, second) = run_ranks(2, train, "replicated", 3)
    assert first_state == second_state
    np.testing.assert_array_equal(first, second)
    assert not np.isnan(first).any()


@pytest.mark.parametrize("layout", ["replicated", "sharded"])
def test_the_three_ways_give_the_same_state(layout):
    first, second = (run_ranks(2, train, layout, 3, mode)[0] for mode in ("loader", "sampler"))
    assert first[:2] == second[:2]


def record(rank, folder):
    handler, loader = make()
    handler.record(folder, num_recorded=SIZE)
    handler.set_epoch(0)
    train_epoch(handler, loader)
    handler.state_dict()
    if rank == 0:
        handler.flush_recording()
    return handler.recorded_samples is not None


def test_rank_0_records_what_all_ranks_observed(tmp_path):
    assert run_ranks(2, record, tmp_path / "r") == [True, False]
    assert (tmp_path / "r" / "steps-00000.safetensors").exists()


def resume(rank, state, layout):
    handler, loader = make(layout=layout)
    tensors = {
        "version": torch.tensor(1),
        "pruner": torch.from_numpy(np.frombuffer(state, dtype=np.uint8).copy()),
        "num_missed_updates": torch.tensor(0),
    }
    handler.load_state_dict(tensors)
    handler.set_epoch(3)
    trained = []
    train_epoch(handler, loader, trained)
    return trained


def test_another_number_of_ranks_goes_on_with_the_same_samples():
    state = run_ranks(2, train, "replicated", 3)[0][1]
    selected = [set().union(*run_ranks(size, resume, state, "replicated")) for size in (2, 3)]
    single = tamis.Pruner(SIZE, 4, score="batch-loss", seed=0)
    single.deserialize(state)
    single.start_epoch(3)
    assert selected[0] == selected[1] == {int(i) for i in single.plan.order}


def with_another_seed(rank):
    make(seed=rank)


def test_other_settings_are_refused_on_every_rank():
    answers = run_ranks(2, with_another_seed, expect=[0, 1])
    for _, error in answers.values():
        assert "rank 1 has seed 1 and rank 0 has seed 0" in error


def lose_a_rank(rank, fate):
    handler, loader = make(time_limit=6.0)
    handler.set_epoch(0)
    train_epoch(handler, loader)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL if fate == "dies" else signal.SIGSTOP)
    start = time.monotonic()
    try:
        handler.set_epoch(1)
    except RuntimeError as error:
        return str(error), time.monotonic() - start
    return "", 0.0


@pytest.mark.parametrize("fate", ["dies", "hangs"])
def test_every_other_rank_names_one_that_is_lost(fate):
    answers = run_ranks(3, lose_a_rank, fate, expect=[0, 2])
    for rank, (result, error) in answers.items():
        assert error is None, error
        message, seconds = result
        assert f"rank {rank}: rank 1 of 3 has died, hangs or did not take part" in message
        assert seconds < 7.5


def ask_for_length(rank):
    handler, loader = make()
    try:
        len(loader)
    except TypeError as error:
        return str(error)
    return ""


def test_the_length_of_an_epoch_is_known_once_it_has_started():
    for message in run_ranks(2, ask_for_length):
        assert "set_epoch on every rank" in message


def test_the_example_trains_on_two_processes(tmp_path):
    """Started as torchrun does it."""
    state = tmp_path / "state.pt"
    command = [sys.executable, str(EXAMPLES / "distributed_training.py")]
    command += ["--epochs", "4", "--size", "3000", "--save", str(state)]
    environment = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", WORLD_SIZE="2")
    environment.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    environment.update(PYTHONPATH=os.pathsep.join(sys.path))
    ranks = [
        subprocess.Popen(
            command,
            env=dict(environment, RANK=str(rank)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [rank.communicate(timeout=300)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], outputs
    assert outputs[0].count("epoch ") == 4
    assert "epoch " not in outputs[1]
    assert float(re.findall(r"([\d.]+)%", outputs[0])[-1]) > 3.0
    assert float(re.findall(r"accuracy ([\d.]+)", outputs[0])[-1]) > 0.9
    assert set(torch.load(state, weights_only=True)) == {"version", "pruner", "num_missed_updates"}
