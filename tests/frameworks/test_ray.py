"""Ray Train: its workers are ranks of a process group, so the loop is that of torchrun."""

import pickle

import pytest
import ray
import ray.train
from loops import SITUATIONS
from matrix import cell
from ray.train import ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer
from test_ddp import check_resumed, check_situation, every_situation

NAME = "Ray Train"


def train_loop(config):
    rank = ray.train.get_context().get_world_rank()
    with open(f"{config['folder']}/{rank}.pickle", "wb") as file:
        pickle.dump(every_situation(), file)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Of both workers."""
    folder = tmp_path_factory.mktemp("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # at 15 they starve beside other work
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    trainer = TorchTrainer(
        train_loop,
        train_loop_config={"folder": str(folder)},
        torch_config=TorchConfig(backend="gloo"),
        scaling_config=ScalingConfig(num_workers=2),
        run_config=ray.train.RunConfig(storage_path=str(folder)),
    )
    try:
        trainer.fit()
    finally:
        ray.shutdown()
    return [pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in range(2)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [pytest.param(n, n, marks=cell(NAME, n, "two processes")) for n in SITUATIONS]
    + [pytest.param("workers", "plain", marks=cell(NAME, "workers", "two processes"))],
)
def test_two_workers_share_every_epoch(results, name, kind):
    check_situation(results, name, kind)


@cell(NAME, "resume")
def test_a_run_resumed_after_any_batch_is_the_run_that_was_not_interrupted(results):
    check_resumed(results)
