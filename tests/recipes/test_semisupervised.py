"""Semi-supervised recipes learn from few labels, score both sets sample by sample, resume, and refuse bad files.

Small parts of the real data, seconds each.
"""

import csv

import numpy as np
import pytest
import soundfile
import tamis
import torch
from conftest import check_resumed, command, lines
from truth import Log, features_of, indices_in, judge, label_of, make_classifier

from recipes.kit import augment, run, sounds, texts
from recipes.semisupervised import dash, fixmatch, flexmatch, loop

TINY = {
    "fixmatch": (fixmatch, ("limit=64", "test_limit=20", "labels_per_class=2", "epochs=4", "batch_size=16", "passes=2",
                            "labelled_batch_size=8")),
    "flexmatch": (flexmatch, ("dataset=FOLDER", "labels_per_class=4", "epochs=4", "batch_size=8", "passes=2", "width=8",
                              "labelled_batch_size=4")),
    "dash": (dash, ("dataset=FOLDER", "labels_per_class=2", "epochs=4", "batch_size=8", "passes=2", "width=4",
                    "labelled_batch_size=4")),
}
WORDS = [["good", "fine", "great"], ["bad", "poor", "dull"]]


def write_texts(folder, count=48):
    """train.csv and test.csv: the label is in one word of six."""
    random = np.random.default_rng(0)
    for part in ("train", "test"):
        with open(folder / f"{part}.csv", "w", newline="") as file:
            for k in range(count):
                filler = random.choice(["a", "film", "of", "its", "time"], 5)
                csv.writer(file).writerow([1 + k % 2, f"{random.choice(WORDS[k % 2])} {' '.join(filler)}"])


def write_sounds(folder, count=40):
    """ESC-50's layout with two tones as classes."""
    (folder / "meta").mkdir()
    (folder / "audio").mkdir()
    rows = ["filename,fold,target,category"]
    for k in range(count):
        tone = np.sin(np.arange(4000) / 8000 * 2 * np.pi * (440, 1200)[k % 2]) * (0.5 + 0.01 * k)
        soundfile.write(folder / "audio" / f"{k}.wav", tone, 8000)
        rows.append(f"{k}.wav,{1 + k // 2 % 5},{k % 2},{('low', 'high')[k % 2]}")
    (folder / "meta" / "esc50.csv").write_text("\n".join(rows) + "\n")


@pytest.fixture
def tiny(tmp_path):
    """(recipe, settings) by name, on files of the user's own where the recipe reads some."""

    def make(name):
        folder = tmp_path / "files"
        folder.mkdir()
        {"flexmatch": write_texts, "dash": write_sounds}.get(name, lambda _: None)(folder)
        recipe, settings = TINY[name]
        return recipe, [setting.replace("FOLDER", str(folder)) for setting in settings]

    return make


@pytest.mark.parametrize("name", TINY)
def test_a_resumed_run_is_the_one_that_was_not_interrupted(name, tiny, tmp_path, interrupt):
    check_resumed(*tiny(name), tmp_path, interrupt)


def test_a_recorded_run_keeps_the_losses_of_the_unlabelled_samples(tiny, tmp_path):
    recipe, settings = tiny("dash")
    recipe.main([*command(tmp_path, *settings, method="full"), "--record"])
    assert (tmp_path / "record" / "losses-epoch00003.safetensors").stat().st_size > 0


def test_syllables_are_learnt_from_few_labels(tmp_path):
    """By chance 3 % of the finals are right."""
    dash.main(command(tmp_path, "epochs=5", "width=8", "labels_per_class=8"))
    found = lines(tmp_path)
    assert found[-1]["values"]["accuracy"] > 0.1 and found[-1]["values"]["trusted"] > found[0]["values"]["trusted"] == 0
    assert sum(line["pruned"] for line in found) > 0.1 * sum(line["samples"] + line["pruned"] for line in found)


def test_reviews_are_learnt_from_few_labels(tmp_path):
    """By chance half of them are right."""
    settings = ("limit=2000", "test_limit=400", "labels_per_class=400", "epochs=6", "batch_size=64", "passes=4", "width=32")
    flexmatch.main(command(tmp_path, *settings))
    assert lines(tmp_path)[-1]["values"]["accuracy"] > 0.6  # 0.70 with seed 0


def test_pictures_are_learnt_from_few_labels(tmp_path):
    """By chance 10 % are right."""
    settings = ("limit=400", "test_limit=200", "labels_per_class=30", "epochs=4", "passes=2", "batch_size=32", "threshold=0.5")
    fixmatch.main(command(tmp_path, *settings))
    assert lines(tmp_path)[-1]["values"]["accuracy"] > 0.14


class Points(torch.utils.data.Dataset):
    """Sample i tells its index by its first feature."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return features_of(index), label_of(index)


def test_both_sets_are_scored_sample_by_sample(tmp_path, monkeypatch):
    """Plans, weights and scores of both are those of a core Pruner that sees what was in the tensors of each step."""
    logs, handlers, seen, plain = {}, {}, [], tamis.Handler.update

    def update(handler, loss, *more, **options):
        handlers[handler.number] = handler
        logs.setdefault(handler.number, Log()).see(handler.epoch, seen[-1], loss)
        return plain(handler, loss, *more, **options)

    monkeypatch.setattr(tamis.Handler, "update", update)
    settings = ("epochs=4", "passes=2", "batch_size=8", "labelled_batch_size=5", "prune=0")
    args = run.arguments("doc", dash.PRESETS, command(tmp_path, *settings))
    model, sets = make_classifier(), (Points(21), Points(53), Points(9))
    model.register_forward_pre_hook(lambda _, inputs: seen.append(indices_in(inputs[0])) if torch.is_grad_enabled() else None)
    loop.train(args, "points", sets, model, loop.Rule(0.0), (lambda x: x, lambda x: x), "linear")
    assert sorted(len(one) for one in handlers.values()) == [21, 53]
    for number, log in logs.items():
        judge(log.steps, handlers[number].scores, size=len(handlers[number]), length=handlers[number].epochs)


def test_flexible_thresholds_follow_the_classes():
    """A class that few samples are predicted as needs less confidence, as long as others have more."""
    rule = flexmatch.FlexibleRule(0.9, num_classes=2, num_samples=4)
    sure = torch.tensor([[0.95, 0.05], [0.95, 0.05], [0.95, 0.05]])
    assert rule(sure, [0, 1, 2]).all() and rule.predicted.tolist() == [0, 0, 0, 2]
    unsure = torch.tensor([[0.6, 0.4], [0.4, 0.6]])
    assert rule(unsure, [0, 3]).tolist() == [False, True]


def test_the_threshold_of_dash_shrinks():
    rule = dash.DashRule(1.0, 2.0, least=0.3)
    fair = torch.tensor([[0.5, 0.5], [0.9, 0.1]])
    assert not rule(fair, None).any(), "the first epoch is the warm-up"
    rule.end_epoch(1.0)
    assert rule(fair, None).all()
    rule.end_epoch(9.0)
    assert rule.level == 0.5 and rule(fair, None).tolist() == [False, True]
    rule.end_epoch(9.0)
    assert float(rule.level) == pytest.approx(0.3)


def test_no_review_is_in_both_parts_and_none_twice():
    train, test = texts.reviews("train"), texts.reviews("test")
    assert len(train) + len(test) == 49582 == len({text for text, _ in [*train, *test]})
    assert abs(np.mean([label for _, label in train[:1000]]) - 0.5) < 0.06


def test_syllables_are_split_by_clip():
    train, test = sounds.syllables("train"), sounds.syllables("test")
    assert len(train.classes) == 34 and (len(train), len(test)) == (1811, 469)
    assert set(test.labels.tolist()) == set(range(34))


def test_a_tone_is_in_its_band():
    tone = np.sin(np.arange(8000) / 8000 * 2 * np.pi * 1000)
    spectrogram = sounds.log_mel(tone, 8000, 1.0)
    mel = [2595 * np.log10(1 + f / 700) for f in (50, 1000, 4000)]
    assert (spectrogram.argmax(0) == round((mel[1] - mel[0]) / (mel[2] - mel[0]) * 41) - 1).all()


def test_changes_are_of_one_picture_each():
    torch.manual_seed(0)
    images = torch.linspace(-0.5, 0.5, 4)[:, None, None, None].expand(4, 3, 32, 32)
    assert augment.affine(images).allclose(images, atol=1e-5), "plain pictures stay as they are"
    changed = augment.strong(images)
    assert changed.shape == images.shape and changed.abs().max() <= 1 and not changed.allclose(images)


def refused(read, path, text, problem):
    path.write_text(text)
    with pytest.raises(ValueError, match=problem):
        read()


def test_bad_texts_are_refused_by_file_and_line(tmp_path):
    path = tmp_path / "train.csv"
    for text, problem in (
        ("1,good\n0,bad\n", "train.csv:2: must be a label from 1 and a text, got '0,bad'"),
        ("1,good\nbad\n", "train.csv:2: must be a label from 1 and a text"),
        ("1,good\n2,\n", "train.csv:2: must be a label from 1 and a text"),
        ('1,"good\n', "train.csv:1: not CSV"),
        ("", "train.csv:1: must have a row"),
    ):
        refused(lambda: texts.read_csv(path), path, text, problem)


def test_bad_sounds_are_refused_by_file_and_line(tmp_path):
    write_sounds(tmp_path)
    path = tmp_path / "meta" / "esc50.csv"
    head = "filename,fold,target,category\n"
    for text, problem in (
        ("filename,fold\n", "esc50.csv:1: must have the columns .* no category, target"),
        (head + "0.wav,1,0,low\n1.wav,6,1,high\n", "esc50.csv:3: target must be a number and fold one of 1 to 5, got 1 and 6"),
        (head + "0.wav,1,0,low\n1.wav,1,0,high\n", "esc50.csv:3: target 0 must be low as before, got high"),
        (head + "none.wav,1,0,low\n", "esc50.csv:2: .*none.wav is missing"),
        (head + "../meta/esc50.csv,1,0,low\n", "esc50.csv:2: .*not a whole sound"),
    ):
        refused(lambda: sounds.esc50(tmp_path, "train"), path, text, problem)
