"""The native module: arrays of every library, views, errors and the GIL."""

import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch
from tamis import EpochPlan, LossBook, Pruner, policies, scores


@pytest.fixture
def pruner():
    pruner = Pruner(100, 4, score="batch-loss", score_options={"alpha": 0.5})
    pruner.start_epoch(0)
    return pruner


class DlpackOnly:
    """Something that only speaks DLPack."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, **options):
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


INDEX_KINDS = {
    "list": list,
    "int64": lambda i: np.array(i, dtype=np.int64),
    "int32": lambda i: np.array(i, dtype=np.int32),
    "uint32": lambda i: np.array(i, dtype=np.uint32),
    "uint8": lambda i: np.array(i, dtype=np.uint8),
    "strided": lambda i: np.repeat(np.array(i), 2)[::2],
    "reversed": lambda i: np.array(i)[::-1],
    "tensor": torch.tensor,
    "dlpack": lambda i: DlpackOnly(torch.tensor(i)),
    "memoryview": lambda i: memoryview(np.array(i)),
    "read only": lambda i: np.frombuffer(np.array(i).tobytes(), dtype=np.int64),
}


@pytest.mark.parametrize("kind", INDEX_KINDS)
def test_indices_of_every_kind_are_taken(pruner, kind):
    assert pruner.observe_samples(INDEX_KINDS[kind]([3, 1, 99]), 2.0)
    assert np.flatnonzero(~np.isnan(pruner.scores)).tolist() == [1, 3, 99]


@pytest.mark.parametrize(
    "losses",
    [
        [1.0, 2.0, 6.0],
        np.array([1.0, 2.0, 6.0]),
        np.array([1, 2, 6], dtype=np.float16),
        torch.tensor([1.0, 2.0, 6.0]),
        DlpackOnly(torch.tensor([1.0, 2.0, 6.0])),
        np.float32(3.0),
        3,
        torch.tensor(3.0),
    ],
)
def test_losses_of_every_kind_are_taken(pruner, losses):
    pruner.observe_samples([0, 1, 2], losses)
    assert pruner.scores[:3].tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize(
    "indices, loss, error, message",
    [
        ([0.5], 1.0, TypeError, "indices must be whole numbers, got float64"),
        ([True], 1.0, TypeError, "whole numbers, got bool"),
        ([[1]], 1.0, ValueError, "one dimension, got 2"),
        ([100], 1.0, IndexError, r"index must be in \[0, 100\), got 100"),
        ([-1], 1.0, IndexError, "got -1"),
        ([], 1.0, ValueError, "at least one sample"),
        ([1, 2], [1.0], ValueError, r"as many as indices \(2\), got 1"),
        ([1], [[1.0]], ValueError, "2 dimensions"),
        ([1], "loss", TypeError, "real number"),
        ([1], 1j, TypeError, "real number, got complex128"),
    ],
)
def test_wrong_arrays_are_refused_by_name(pruner, indices, loss, error, message):
    with pytest.raises(error, match=message):
        pruner.observe_samples(indices, loss)
    assert pruner.num_observations == 0


def test_the_order_of_a_plan_is_a_view_that_outlives_the_plan(pruner):
    plan = pruner.preview(1)
    assert isinstance(plan, EpochPlan)
    order = plan.order
    assert order.dtype == np.uint32
    assert not order.flags.writeable
    assert order.ctypes.data == plan.order.ctypes.data  # no copy
    expected = order.tolist()
    del plan
    pruner.start_epoch(2)
    assert order.tolist() == expected


def test_a_plan_tells_what_it_keeps_and_why():
    pruner = Pruner(100, 8, score="last-batch-loss")
    pruner.start_epoch(0)
    for i in range(100):
        pruner.observe_samples([i], float(i))
    plan = pruner.preview(1)
    assert plan.epoch == 1 and plan.pruning and plan.num_samples == 100
    assert plan.kept.sum() == len(plan) == 75
    assert sorted(plan.order) == np.flatnonzero(plan.kept).tolist()
    assert (plan.weights[:50][plan.kept[:50]] == 2).all()
    assert (plan.weights[50:] == 1).all()
    assert plan.report["num_below"] == 50
    assert plan.num_batches(8) == 10 and plan.num_batches(8, drop_last=True) == 9
    assert plan.mean_weight_of([50, 51]) == 1.0
    assert plan.num_selected == 75 and plan.num_pruned == 25
    assert not plan.is_padding(0)


def test_a_plan_of_seta_tells_its_groups_and_its_window():
    pruner = Pruner(100, 8, policy="seta", score="last-batch-loss")
    for i in range(100):
        pruner.observe_samples([i], float(i))
    report = pruner.preview(1).report
    assert sum(group["size"] for group in report["groups"]) == 90
    assert (report["window_begin"], report["window_end"]) == (1, 5)
    centers = [group["center"] for group in report["groups"]]
    assert centers == sorted(centers)


def test_batches_are_addressed_by_their_place_in_the_plan(pruner):
    for begin in range(0, 100, 10):
        assert pruner.observe(begin, 10, float(begin))
    pruner.start_epoch(1)
    plan = pruner.plan
    batch = plan.samples(0, 10)
    assert batch == [plan[j] for j in range(10)] == plan.order[:10].tolist()
    weights = plan.weights_of(batch)
    assert plan.weights_at(0, 10).tolist() == weights.tolist()
    assert plan.mean_weight(0, 10) == plan.mean_weight_of(batch) == pytest.approx(weights.mean())
    pruner.observe(0, 10, np.arange(10, dtype=np.float32))
    assert pruner.num_observations == 11
    for wrong in (lambda: plan.samples(len(plan) - 1, 2), lambda: plan[len(plan)]):
        with pytest.raises(IndexError):
            wrong()
    with pytest.raises(IndexError):
        pruner.observe(len(plan) - 1, 2, 1.0)
    with pytest.raises(ValueError, match="got 3"):
        pruner.observe(0, 2, [1.0, 2.0, 3.0])


@pytest.mark.parametrize("begin", [-1, "0", None, 1.5, 2**64, 2**70, 100, 97])
def test_a_bad_place_is_an_error_of_the_caller(pruner, begin):
    """Never a SystemError, which says that the module itself is wrong."""
    with pytest.raises((TypeError, IndexError)):
        pruner.observe(begin, 4, 0.5)
    with pytest.raises((TypeError, IndexError)):
        pruner.plan.samples(begin, 4)
    assert pruner.num_observations == 0


def test_a_book_observes_tells_the_weights_and_moves_on(pruner):
    book = LossBook(pruner)
    book.begin_pass(in_order=False)
    with pytest.raises(RuntimeError, match="update"):
        book.update(1.0)
    for begin in range(0, 100, 10):
        book.deliver(10)
        assert book.update(float(begin)) == 1.0
        assert pruner.position == begin + 10
    assert book.end_pass()["num_missed"] == 0
    pruner.start_epoch(1)
    plan = pruner.plan
    book.begin_pass(in_order=True)
    book.deliver(8)
    np.testing.assert_array_equal(book.update(np.ones(8, np.float32)), plan.weights_at(0, 8))
    assert pruner.num_observations == 10  # kept back
    samples = plan.samples(0, 8)
    assert book.update_samples(samples, 1.0) == plan.mean_weight(0, 8)
    summary = book.end_pass()
    assert (summary["num_batches"], summary["num_updates"], summary["warning"]) == (1, 1, "")
    assert pruner.num_observations == 12


def test_a_book_keeps_its_pruner_alive():
    pruner = Pruner(100, 4, score="batch-loss")
    pruner.start_epoch(0)
    book = LossBook(pruner)
    del pruner
    book.begin_pass(in_order=False)
    book.deliver(10)
    assert book.update(1.0) == 1.0


def test_before_the_first_epoch_there_is_no_plan():
    pruner = Pruner(100, 4)
    assert pruner.plan is None and pruner.epoch is None
    with pytest.raises(RuntimeError, match="epoch"):
        pruner.observe(0, 1, 1.0)


def test_the_state_can_be_saved_loaded_and_pickled(pruner, tmp_path):
    pruner.observe(0, 10, 3.0)
    pruner.position = 10
    path = tmp_path / "state.safetensors"
    pruner.save(path)
    copies = [Pruner.from_file(str(path)), pickle.loads(pickle.dumps(pruner))]
    loaded = Pruner(100, 4, score="batch-loss", score_options={"alpha": 0.5})
    loaded.load(path)
    for copy in [*copies, loaded]:
        np.testing.assert_array_equal(copy.scores, pruner.scores)
        assert copy.position == 10
        assert str(copy.options) == str(pruner.options)
    with pytest.raises(RuntimeError):
        loaded.deserialize(b"nothing of the kind")
    with pytest.raises(RuntimeError):
        loaded.load(tmp_path / "missing")
    assert loaded.position == 10


def test_long_calls_let_other_threads_run():
    pruner = Pruner(10_000_000, 4, policy="random-dynamic")
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    while not ticks:
        time.sleep(0.001)
    begin = time.perf_counter()
    pruner.start_epoch(1)  # selects and shuffles: a tenth of a second
    end = time.perf_counter()
    done.set()
    thread.join()
    assert sum(begin < t < end for t in ticks) >= 3


def test_the_registry_lists_every_option():
    assert {"batch-loss", "sample-loss", "reconstruction"} <= set(scores())
    assert {"infobatch", "seta", "none", "trim"} <= set(policies())
    assert policies()["seta"]["default_score"] == "sample-loss"
    for info in [*scores().values(), *policies().values()]:
        for option in info["options"]:
            assert set(option) == {"name", "default", "rule", "help"}


def test_the_core_does_not_need_torch():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import tamis\n"
        "pruner = tamis.Pruner(10, 2, score='batch-loss')\n"
        "pruner.start_epoch(0)\n"
        "pruner.observe_samples([1, 2], 1.5)\n"
        "try:\n"
        "    tamis.prune\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    path = os.pathsep.join(sys.path)
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=dict(os.environ, PYTHONPATH=path),
    )
    assert result.stdout == "tamis.prune needs PyTorch: pip install tamis[torch]\n", result.stderr
