"""Several ranks on torch.distributed, as real processes with Gloo on the loopback interface."""

import multiprocessing
import os
import random
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
from torch.utils.data import DataLoader

SIZE = 103


def free_port():
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
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # imports torch once, not in every rank
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


class Cut:
    """What Accelerate makes of a batch sampler: every rank gets each W-th batch of the whole.

    All have equally many: the first batches come again at the end, or the last are left out.
    """

    def __init__(self, batches, rank, size, pads):
        self.batches, self.rank, self.size, self.pads = batches, rank, size, pads

    def __iter__(self):
        whole = list(self.batches)
        end = len(whole) if self.pads else len(whole) // self.size * self.size
        for number in range(0, end, self.size):
            yield whole[(number + self.rank) % len(whole)]


def make_external(rank, pads=True):
    handler, loader = make(epochs=3, sharding="external")
    sampler = Cut(loader.batch_sampler, rank, 2, pads)
    cut = DataLoader(loader.dataset, batch_sampler=sampler, collate_fn=loader.collate_fn)
    return handler, loader, cut


def train_external(rank):
    """What a rank trained on, the scores of the run, and the lengths that it saw."""
    handler, whole, cut = make_external(rank)
    seen, lengths = [], [len(whole)]
    for epoch in range(3):
        handler.set_epoch(epoch)
        lengths.append(len(whole))
        trained = []
        for batch in cut:
            try:
                handler.update(batch_loss(batch[0]))
            except RuntimeError as error:
                assert "update(loss, batch)" in str(error)
            handler.update(batch_loss(batch[0]), batch)
            trained.append(batch[0].tolist())
        seen.append((trained, handler.progress))
    order = handler.plan.order.tolist()
    handler.state_dict()
    return seen, handler.scores, lengths, order, handler.num_missed_updates


def test_external_every_rank_plans_the_whole_epoch_and_a_framework_cuts_it():
    (first, scores, lengths, order, missed), (second, others, *_) = run_ranks(2, train_external)
    np.testing.assert_array_equal(scores, others)
    assert lengths[:2] == [13, 13] and lengths[2] < 13
    assert missed == 0
    for epoch in range(3):
        (one, progress), (other, same) = first[epoch], second[epoch]
        steps = list(zip(one, other, strict=True))
        trained = list(dict.fromkeys(i for step in steps for batch in step for i in batch))
        assert progress == same == (epoch + 1) / 3
        if epoch == 0:
            assert set(trained) == set(range(SIZE))
    assert trained == order
    single = tamis.Pruner(SIZE, 3, score="batch-loss", policy="none")
    single.start_epoch(0)
    for (one, _), (other, _) in zip(first, second, strict=True):
        for step in zip(one, other, strict=True):
            for batch in step:
                single.observe_samples(batch, float(batch_loss(batch)))
    np.testing.assert_array_equal(scores, single.scores)


def resume_external(rank, stop):
    """Trains, saving after `stop` steps; or goes on in a new handler from there."""
    handler, _, cut = make_external(rank, pads=False)
    trained, state = [], None
    for epoch in range(2):
        handler.set_epoch(epoch)
        for batch in cut:
            handler.update(batch_loss(batch[0]), batch)
            trained.append(batch[0].tolist())
            if len(trained) == stop:
                state = handler.state_dict()
    again, _, cut = make_external(rank, pads=False)
    again.load_state_dict(state)
    rest = []
    while again.next_epoch < 2:
        for batch in cut:
            again.update(batch_loss(batch[0]), batch)
            rest.append(batch[0].tolist())
    return trained[stop:], rest, handler.scores, again.scores


@pytest.mark.parametrize("stop", [3, 9])
def test_external_a_state_goes_on_with_the_next_step(stop):
    for expected, rest, scores, again in run_ranks(2, resume_external, stop):
        assert rest == expected
        np.testing.assert_array_equal(scores, again)


def train_dispatched(rank):
    """Rank 0 reads for both; rank 1 gets its half of each batch with the ids."""
    handler, loader, _ = make_external(rank)
    group = dist.group.WORLD
    for epoch in range(2):
        handler.set_epoch(epoch)
        batches = iter(loader) if rank == 0 else None
        while True:
            batch = next(batches, None) if rank == 0 else None
            sent = [None if batch is None else batch.ids.tolist()]
            dist.broadcast_object_list(sent, src=0, group=group)
            if sent[0] is None:
                break
            ids = (sent[0] + sent[0][:1])[rank : len(sent[0]) + rank : 2]  # equally many
            handler.update(batch_loss(tamis.indices_of(ids)), ids=ids)
    progress = handler.progress
    handler.state_dict()
    return handler.scores, progress, handler.epoch


def test_external_a_rank_that_another_one_reads_for_takes_part():
    (scores, progress, epoch), (others, same, _) = run_ranks(2, train_dispatched)
    np.testing.assert_array_equal(scores, others)
    assert not np.isnan(scores).any()
    assert epoch == 1
    assert progress == same == 2 / 3


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
        assert seconds < 10  # the limit is 6, but the machine may be busy


def ask_for_length(rank, layout):
    """Before the first epoch, after it, and when the second has started."""
    handler, loader = make(layout=layout)
    lengths = []
    for epoch in range(2):
        try:
            lengths.append(len(loader))
        except TypeError as error:
            lengths.append(str(error))
        handler.set_epoch(epoch)
        lengths.append(len(loader))
        train_epoch(handler, loader)
    return lengths


def test_the_length_is_that_of_the_running_epoch_until_all_ranks_start_the_next():
    for first, first_again, running, second in run_ranks(2, ask_for_length, "replicated"):
        assert first == first_again == running == 7
        assert second < 7
    for unknown, *lengths in run_ranks(2, ask_for_length, "sharded"):
        assert "set_epoch on every rank" in unknown
        assert lengths[0] == lengths[1] == 7


def start_two(*arguments):
    """Two processes of this command, started as torchrun does it."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", WORLD_SIZE="2")
    environment.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    environment.update(PYTHONPATH=os.pathsep.join(sys.path))
    return [
        subprocess.Popen(
            [sys.executable, *arguments],
            env=dict(environment, RANK=str(rank)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]


def launch_two(*arguments):
    """What two processes of this command print; both must end well."""
    ranks = start_two(*arguments)
    outputs = [rank.communicate(timeout=300)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], outputs
    return outputs


# Registered first, so it runs after the exit functions of all modules.
COUNT_THREADS_AT_EXIT = """
import atexit, pathlib

def num_threads():
    names = [(task / "comm").read_text() for task in pathlib.Path("/proc/self/task").iterdir()]
    return sum(name.startswith("pt_gloo_runloop") for name in names)

atexit.register(lambda: print("at exit:", num_threads(), flush=True))
import tamis, torch.distributed as dist

dist.init_process_group("gloo")
handler = tamis.prune(range(64), "bls-infobatch", epochs=2)
handler.set_epoch(0)
print("running:", num_threads() > 0, flush=True)
dist.destroy_process_group()
"""


def test_no_thread_of_a_group_is_left_when_the_interpreter_ends():
    """Such a thread asks for the interpreter's lock when it drops a tensor, and the process aborts."""
    for output in launch_two("-c", COUNT_THREADS_AT_EXIT):
        assert "running: True" in output, output
        assert "at exit: 0" in output, output


# The interpreter ends as it does for users, by an exception that nobody catches.
HANG_IN_TRAINING = """
import atexit, os, signal, sys, threading

atexit.register(lambda: print("threads at exit:", threading.active_count(), flush=True))
import tamis, torch.distributed as dist

dist.init_process_group("gloo")
options = tamis.Options(time_limit=4.0)
handler = tamis.prune(range(64), "bls-infobatch", epochs=2, options=options)
handler.set_epoch(0)
if dist.get_rank() == int(sys.argv[1]):
    os.kill(os.getpid(), signal.SIGSTOP)
handler.set_epoch(1)
"""


@pytest.mark.parametrize("hanging", [0, 1])
def test_the_interpreter_ends_normally_after_a_rank_hangs(hanging):
    """A thread that is left behind may come back while the interpreter ends, which aborts."""
    ranks = start_two("-c", HANG_IN_TRAINING, str(hanging))
    try:
        output = ranks[1 - hanging].communicate(timeout=120)[0]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
            rank.stdout.close()
    assert f"rank {hanging} of 2 has died, hangs or did not take part" in output, output
    assert "threads at exit: 1" in output, output
    assert ranks[1 - hanging].returncode == 1, output


def test_the_example_trains_on_two_processes(tmp_path):
    state = tmp_path / "state.pt"
    command = [str(EXAMPLES / "distributed_training.py"), "--epochs", "4", "--size", "3000"]
    outputs = launch_two(*command, "--save", str(state))
    assert outputs[0].count("epoch ") == 4
    assert "epoch " not in outputs[1]
    assert float(re.findall(r"([\d.]+)%", outputs[0])[-1]) > 3.0
    assert float(re.findall(r"accuracy ([\d.]+)", outputs[0])[-1]) > 0.9
    assert set(torch.load(state, weights_only=True)) == {"version", "pruner", "num_missed_updates"}
