"""check() says how a loop's losses find their batch; repr, summary and metrics say how it goes."""

import math

import pytest
import support
import tamis
from support import ExpectedScores, make_loader, rebuild, train_epoch
from torch.utils.data import DataLoader


class Wrapped:
    """What frameworks put around a loader."""

    def __init__(self, loader):
        self.base_dataloader = loader


@pytest.mark.parametrize(
    "make, way, cure",
    [
        (lambda h: h.loader(8), "by delivery", "update(loss)"),
        (lambda h: h.loader(8, num_workers=2, in_order=False), "by ids", "update(loss, batch)"),
        (lambda h: h.loader(8, carry="labels"), "by ids that ride on the labels", "labels"),
        (lambda h: rebuild(h.loader(8)), "by ids", "update(loss, batch)"),
        (lambda h: Wrapped(rebuild(h.loader(8))), "by ids", "of this Wrapped"),
        (lambda h: DataLoader(**h.loader_options(8)), "by ids", "update(loss, batch)"),
        (lambda h: make_loader(h, "sampler"), "in order", "of 8 samples"),
        (lambda h: make_loader(h, "batch_sampler"), "in order", "of 8 samples"),
        (lambda h: DataLoader(h.data, batch_size=8), None, "use handler.loader(B)"),
        (
            lambda h: DataLoader(h.data, batch_sampler=h.loader(8).batch_sampler),
            None,
            "handler.loader_options(B",
        ),
        (lambda h: [1, 2], None, "this list does not draw from the handler's sampler"),
    ],
)
def test_check_names_the_way_or_the_cure(make_handler, make, way, cure):
    handler = make_handler()
    found = handler.check(make(handler))
    assert found.way == way
    assert bool(found) == (way is not None)
    assert cure in found.reason
    assert str(found) == f"{way or 'not attributable'}: {found.reason}"


def test_check_knows_other_handlers_and_unknown_batch_sizes(make_handler):
    handler = make_handler(batch_size=None)
    assert "another handler" in handler.check(make_handler().loader(8)).reason
    loader = DataLoader(handler.data, sampler=handler.sampler, batch_size=8)
    assert "Options(batch_size=B)" in handler.check(loader).reason


@pytest.mark.parametrize("mode", support.MODES)
def test_check_draws_nothing(make_handler, mode):
    handler = make_handler()
    loader = make_loader(handler, mode)
    expected = ExpectedScores(len(handler))
    for _ in range(2):
        assert handler.check(loader)
        train_epoch(handler, loader, expected)
        assert handler.check(loader)
    assert handler.epoch == 1


def test_repr_and_summary_are_one_line_each(make_handler):
    handler = make_handler()
    assert repr(handler) == (
        "<Handler: batch-loss score, infobatch policy, 103 samples, epoch 0 of 4>"
    )
    assert handler.summary() == (
        "epoch 0: 103 of 103 samples, 0.0% of the run pruned, 0% scored"
    )
    for _ in range(2):
        train_epoch(handler, make_loader(handler), None)
    line = handler.summary()
    assert line.startswith(f"epoch 1: {handler.plan.num_selected} of 103 samples, ")
    assert "100% scored, mean score 1." in line
    assert "\n" not in line


def test_metrics_are_finite_numbers_for_any_logger(make_handler):
    handler = make_handler()
    names = set(handler.metrics())
    for _ in range(2):
        train_epoch(handler, make_loader(handler), None)
    metrics = handler.metrics()
    assert names < set(metrics)
    assert all(type(value) is float and math.isfinite(value) for value in metrics.values())
    assert all(name.startswith("tamis/") for name in metrics)
    assert metrics["tamis/selected"] == handler.plan.num_selected
    assert metrics["tamis/pruned_share"] == handler.pruned_share
    assert metrics["tamis/score_p10"] <= metrics["tamis/score_median"] <= metrics["tamis/score_p90"]
    assert metrics["tamis/observations"] == handler.num_observations
    cheap = handler.metrics(with_scores=False)
    assert cheap == {name: metrics[name] for name in cheap}
    assert not any("score" in name for name in cheap)


def test_summary_tells_of_what_was_missed_and_skipped(make_handler):
    handler = make_handler()
    for step, (indices, _) in enumerate(handler.loader(8)):
        if step == 3:
            continue
        handler.update(math.nan if step == 5 else float(support.batch_loss(indices)))
    with pytest.warns(tamis.MissedUpdateWarning, match="1 of 13 batches"):
        assert handler.num_missed_updates == 1
    assert handler.summary().endswith(", 1 losses skipped, 1 batches missed")


def test_next_epoch_is_known_before_during_and_after_the_run(make_handler):
    handler = make_handler(epochs=2)
    assert handler.next_epoch == 0
    for epoch in range(2):
        train_epoch(handler, make_loader(handler), None)
        assert handler.next_epoch == epoch + 1
    resumed = make_handler(epochs=2)
    resumed.load_state_dict(handler.state_dict())
    assert resumed.next_epoch == 2
    assert tamis.prune([1, 2], "full", epochs=3).next_epoch == 0
