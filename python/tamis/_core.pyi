"""The native module: the core without torch."""

from collections.abc import Mapping
from os import PathLike
from typing import Any, Final, Literal, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

__version__: str
INDEX_BITS: int

class OptionInfo(TypedDict):
    name: str
    default: float
    rule: str
    help: str

class ScoreInfo(TypedDict):
    summary: str
    options: list[OptionInfo]

class PolicyInfo(TypedDict):
    summary: str
    default_score: str
    options: list[OptionInfo]

class MethodInfo(TypedDict):
    summary: str
    policy: str
    score: str
    paper: str

def scores() -> dict[str, ScoreInfo]: ...
def policies() -> dict[str, PolicyInfo]: ...
def methods() -> dict[str, MethodInfo]: ...

class Communicator(Protocol):
    """What connects the ranks of a run; see tamis._ranks for one over torch.distributed."""

    rank: int
    size: int
    time_limit: float  # seconds
    def reduce(self, numbers: NDArray[np.int64], operation: str) -> NDArray[np.int64]: ...
    def gather(self, own: bytes) -> list[bytes]: ...

class EpochPlan:
    epoch: Final[int]
    pruning: Final[bool]
    num_samples: Final[int]
    num_selected: Final[int]
    num_pruned: Final[int]
    order: Final[NDArray[np.uint32]]
    kept: Final[NDArray[np.bool_]]
    weights: Final[NDArray[np.float32]]
    report: Final[dict[str, Any]]
    def __len__(self) -> int: ...
    def __getitem__(self, position: int) -> int: ...
    def samples(self, begin: int, count: int) -> list[int]: ...
    def ids(self, begin: int, count: int) -> list[int]: ...
    def is_padding(self, position: int) -> bool: ...
    def num_batches(self, batch_size: int, drop_last: bool = False) -> int: ...
    def mean_weight(self, begin: int, count: int) -> float: ...
    def weights_at(self, begin: int, count: int) -> NDArray[np.float32]: ...
    def mean_weight_of(self, samples: Any) -> float: ...
    def weights_of(self, samples: Any) -> NDArray[np.float32]: ...

class Pruner:
    position: int
    def __init__(
        self,
        num_samples: int,
        num_epochs: int,
        *,
        policy: str = "infobatch",
        policy_options: Mapping[str, float] = {},
        score: str | None = None,
        score_options: Mapping[str, float] = {},
        delta: float | None = None,
        seed: int = 0,
        homogeneous_batch_size: int = 0,
        min_per_class: float = 0.0,
        labels: Any = None,
        target_prune: float | None = None,
        layout: str = "automatic",
        remainder: str = "pad",
        threads: int = 1,
        communicator: Communicator | None = None,
    ) -> None: ...
    options: Final[dict[str, Any]]
    num_samples: Final[int]
    num_epochs: Final[int]
    num_pruned_epochs: Final[int]
    first_sample: Final[int]
    num_kept: Final[int]
    def start_epoch(self, epoch: int) -> None: ...
    def preview(self, epoch: int) -> EpochPlan: ...
    plan: Final[EpochPlan | None]
    epoch: Final[int | None]
    progress: Final[float]
    pruned_share: Final[float]
    def exchange(self) -> None: ...
    def observe(self, begin: int, count: int, loss: Any, norms: Any = None) -> bool: ...
    def observe_samples(self, samples: Any, loss: Any, norms: Any = None) -> bool: ...
    scores: Final[NDArray[np.float32]]
    num_scored: Final[int]
    num_observations: Final[int]
    num_skipped_observations: Final[int]
    needs: Final[Literal["mean-loss", "sample-losses", "output-gradients"]]
    norm_order: Final[int]
    def save(self, path: str | PathLike[str]) -> None: ...
    def load(self, path: str | PathLike[str]) -> None: ...
    @staticmethod
    def from_file(path: str | PathLike[str]) -> Pruner: ...
    def serialize(self) -> bytes: ...
    def deserialize(self, state: Any) -> None: ...
    def record(
        self,
        folder: str | PathLike[str],
        *,
        num_recorded: int = 10_000,
        samples: Any = None,
        seed: int = 0,
    ) -> None: ...
    recorded_samples: Final[NDArray[np.uint32] | None]
    def record_true_losses(self, losses: Any, epoch: int | None = None) -> None: ...
    def flush_recording(self) -> None: ...

class PassSummary(TypedDict):
    epoch: int
    num_batches: int
    num_updates: int
    num_missed: int
    num_unsettled: int
    dropped: bool
    out_of_order: bool
    warning: str

class WatchedRows:
    def __init__(
        self, step: Any, receive: Any, place: int, num_rows: int, norm_order: int
    ) -> None: ...
    def claim(self, book: LossBook, mean_loss: float, exact_weights: bool) -> float | None: ...
    def __call__(self, gradients: tuple[Any, ...]) -> Any: ...

class LossBook:
    def __init__(self, pruner: Pruner) -> None: ...
    def begin_pass(self, *, in_order: bool) -> None: ...
    in_pass: Final[bool]
    has_refused: Final[bool]
    def deliver(self, count: int) -> None: ...
    def finish_delivery(self) -> None: ...
    def next_batch(self) -> tuple[int, int]: ...
    def update(self, loss: Any) -> Any: ...
    def update_memory(self, losses: int, weights: int, count: int) -> None: ...
    def update_samples(self, samples: Any, loss: Any) -> Any: ...
    def weights_of(self, samples: Any) -> NDArray[np.float32]: ...
    def keep_weights(self) -> None: ...
    def claim(self, samples: Any, per_sample: bool) -> tuple[int, float, Any]: ...
    def settle(self, claim: int, mean_loss: float, norms: Any) -> bool: ...
    def give_up(self) -> None: ...
    num_open_claims: Final[int]
    def end_pass(self) -> PassSummary: ...
    def before_save(self) -> None: ...
    def after_load(self) -> None: ...
