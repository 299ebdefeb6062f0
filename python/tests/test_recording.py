"""handler.record: what is written, and that a resumed run goes on with it."""

import json
import struct

import numpy as np
import pytest
import support
import tamis
import torch
from support import IndexDataset, make_loader


def make_handler(size=100, epochs=3):
    return tamis.prune(IndexDataset(size), method="bls-infobatch", epochs=epochs)


def train(handler, epochs, per_sample=False, stop=None):
    loader = make_loader(handler)
    done = 0
    for _ in range(epochs):
        for indices, _ in loader:
            losses = torch.tensor([support.loss_of(int(i)) for i in indices], dtype=torch.float32)
            handler.update(losses if per_sample else losses.mean())
            done += 1
            if done == stop:
                return


def read_shard(folder):
    """The tensors of the first shard, read by the rules of safetensors alone."""
    data = (folder / "steps-00000.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    types = {"F32": np.float32, "U32": np.uint32, "I32": np.int32}
    return {
        name: np.frombuffer(
            data[8 + length :][slice(*entry["data_offsets"])], types[entry["dtype"]]
        )
        for name, entry in header.items()
        if name != "__metadata__"
    }


def test_every_step_is_recorded(tmp_path):
    handler = make_handler()
    handler.record(tmp_path / "r", num_recorded=30, seed=5)
    assert len(handler.recorded_samples) == 30
    train(handler, 1, per_sample=True)
    handler.flush_recording()
    shard = read_shard(tmp_path / "r")
    assert sorted(shard["indices"]) == list(range(100))
    assert len(shard["mean_losses"]) == handler.num_observations
    recorded = [i for i in shard["indices"] if i in set(handler.recorded_samples)]
    expected = np.array([support.loss_of(int(i)) for i in recorded], dtype=np.float32)
    np.testing.assert_array_equal(shard["own_losses"], expected)


def test_the_mean_is_recorded_with_unknown_per_sample_losses(tmp_path):
    handler = make_handler()
    handler.record(tmp_path / "r", samples=[3, 1])
    np.testing.assert_array_equal(handler.recorded_samples, [1, 3])
    train(handler, 1)
    handler.flush_recording()
    shard = read_shard(tmp_path / "r")
    assert len(shard["own_losses"]) == 2 and np.isnan(shard["own_losses"]).all()
    begin = shard["batch_sizes"][0]
    mean = np.mean([support.loss_of(int(i)) for i in shard["indices"][:begin]])
    assert shard["mean_losses"][0] == pytest.approx(mean, rel=1e-6)


def test_a_resumed_run_records_no_step_twice(tmp_path):
    whole = make_handler()
    whole.record(tmp_path / "whole")
    train(whole, 2)
    whole.flush_recording()

    first = make_handler()
    first.record(tmp_path / "parts")
    train(first, 2, stop=whole.num_observations - 3)
    state = first.state_dict()
    first.flush_recording()
    second = make_handler()
    second.load_state_dict(state)
    second.record(tmp_path / "parts")
    train(second, 1)
    second.flush_recording()
    name = "steps-00000.safetensors"
    assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_true_losses_are_kept(tmp_path):
    handler = make_handler()
    handler.record(tmp_path / "r", samples=[1, 2, 7])
    train(handler, 1)
    handler.record_true_losses(torch.tensor([0.1, 0.2, 0.7]))
    assert (tmp_path / "r" / "losses-epoch00000.safetensors").exists()
    with pytest.raises(ValueError, match="one per recorded sample \\(3\\), got 2"):
        handler.record_true_losses([0.1, 0.2])


def test_mistakes_are_named(tmp_path):
    handler = make_handler()
    assert handler.recorded_samples is None
    with pytest.raises(RuntimeError, match="record\\(\\) must be called first"):
        handler.flush_recording()
    with pytest.raises(IndexError, match="samples"):
        handler.record(tmp_path / "r", samples=[100])
    with pytest.raises(ValueError, match="num_recorded"):
        handler.record(tmp_path / "r", num_recorded=0)
    handler.record(tmp_path / "r")
    with pytest.raises(RuntimeError, match="holds a recording already"):
        make_handler().record(tmp_path / "r")
