"""The captioner learns what to say on every task, and what it says depends on the picture.

Small CLIPs, few scenes, seconds each. The margins are about half of what seed 0 reaches.
"""

import json

import numpy as np
import pytest
import torch
from conftest import lines
from PIL import Image

from recipes.captioning import model, train
from recipes.kit import captions


def command(out, *settings, method="bls-infobatch"):
    changes = [part for setting in settings for part in ("--set", setting)]
    return ["--out", str(out), "--method", method, *changes]


SMALL = (
    "size=32", "clip_scenes=300", "clip_epochs=2", "test_limit=30", "width=48", "limit=800", "batch_size=16", "epochs=4",
    "learning_rate=0.005", "frames=3",
)
ENOUGH = {"image": 7, "text": 12, "cross": 2.5, "video": 11}


@pytest.mark.parametrize("task", train.TASKS)
def test_a_captioner_learns_on_pruned_data(task, tmp_path):
    """Untrained, CIDEr and BLEU-4 are 0. After 150 steps it has learnt phrases, not yet to repeat names."""
    train.main(command(tmp_path, *SMALL, f"task={task}"))
    found = lines(tmp_path)
    assert sum(line["pruned"] for line in found) > 0.1 * 800 * 4
    values, part = found[-1]["values"], "_scenes" if task == "cross" else ""
    assert values[f"CIDEr{part}"] > ENOUGH[task] and values[f"BLEU-4{part}"] > 0.1
    assert task == "cross" or values["loss"] < 0.9 * found[0]["values"]["loss"]


def test_a_text_is_read_back_from_its_numbers():
    words = model.Vocabulary(["a pig to the left", "an apple"])
    (row,) = words.captions(["a pig to the apple"])
    assert words.text(row[1:]) == "a pig to the apple" and row[0] == model.START and words.encode("a cow") == [4, model.UNKNOWN]
    (prompt,) = words.prompts([["a pig", "an apple"]])
    pig, apple = ([*words.encode(name), model.END, model.PAD, model.PAD] for name in ("a pig", "an apple"))
    assert prompt.tolist() == pig + apple + [model.PAD] * model.SLOT


def make_captioner():
    torch.manual_seed(0)
    words = model.Vocabulary(["a pig to the left of an apple on a dune"])
    args = train.run.arguments("", train.PRESETS, command("unused", "width=16", "frames=2"))
    return model.Captioner(words, args), words


def test_writing_takes_the_likeliest_word_of_the_forward_pass():
    captioner, words = make_captioner()
    embeddings, prompts = torch.randn(3, 2, 128), words.prompts([["a pig"], ["an apple", "a dune"], []])
    told = captioner.numbers(embeddings, prompts)
    best = captioner(embeddings, prompts, told).argmax(2)
    for row in range(3):
        count = next((k for k, word in enumerate(told[row]) if word in (model.PAD, model.END)), len(told[row]))
        assert count > 1 or told[row, 1] == model.END
        assert best[row, : count - 1].tolist() == told[row, 1:count].tolist()


def test_the_loss_of_a_caption_does_not_depend_on_its_batch():
    captioner, words = make_captioner()
    told = words.captions(["a pig on a dune", "an apple", "a pig to the left of an apple"])
    embeddings, prompts = torch.randn(3, 2, 128), words.prompts([["a pig"], ["an apple"], ["a pig", "an apple"]])
    together = model.losses(captioner(embeddings, prompts, told), told)
    for k in range(3):
        alone = train.trimmed(told[k : k + 1])
        torch.testing.assert_close(model.losses(captioner(embeddings[k : k + 1], prompts[k : k + 1], alone), alone)[0], together[k])


def test_the_small_clip_finds_the_caption_and_is_kept(tmp_path):
    """Of scenes that it was trained on it tells the caption from that of the next scene, mostly."""
    scenes = captions.CaptionedScenes("all", 120, 32).load()
    args = train.run.arguments("", train.PRESETS, [*command("unused", "size=32", "clip_epochs=40"), "--data", str(tmp_path)])
    state = torch.get_rng_state()
    clip = model.load_clip(args, own=scenes)
    assert torch.equal(torch.get_rng_state(), state), "training the CLIP must not change the run's random numbers"
    images, texts = clip.embed(scenes)[:, 0], clip.embed([told[0] for told in scenes.captions])[:, 0]
    right, other = (images * texts).sum(1), (images * texts.roll(1, 0)).sum(1)
    assert (right > other).float().mean() > 0.8
    torch.testing.assert_close(model.load_clip(args, own=scenes).embed(scenes)[:, 0], images)


def test_own_captions_are_trained_on_and_bad_ones_refused(tmp_path):
    (tmp_path / "images").mkdir()
    images, annotations = [], []
    for k, name in enumerate(("red", "green", "blue") * 4):
        pixels = np.zeros((20, 20, 3), np.uint8)
        pixels[..., k % 3] = 200
        Image.fromarray(pixels).save(tmp_path / "images" / f"{k}.png")
        images.append({"id": k, "file_name": f"{k}.png"})
        annotations.append({"image_id": k, "caption": f"A {name} picture."})
    path = tmp_path / "own.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations}))
    small = ("size=32", "clip_epochs=20", "width=32", "epochs=40", "batch_size=4", "learning_rate=0.004")
    own = (f"train={path}", f"val={path}", *small)
    train.main([*command(tmp_path / "run", *own), "--data", str(tmp_path)])
    written = json.loads((tmp_path / "run" / "captions.json").read_text())["val"]
    assert [row["written"] for row in written[:3]] == ["a red picture", "a green picture", "a blue picture"]
    path.write_text(path.read_text().replace("A red picture.", "..."))
    with pytest.raises(ValueError, match="own.json:1: caption must have a word at least"):
        train.main(command(tmp_path / "other", *own))


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("task=audio", "task must be one of image, text, cross, video, got audio"),
        ("dataset=coco", "dataset must be scenes or.* emoji, got coco"),
        ("train=a.json", "train and val must be given together"),
    ],
)
def test_unknown_tasks_and_data_are_refused(setting, problem, tmp_path):
    with pytest.raises(SystemExit, match=problem):
        train.main(command(tmp_path, setting))


@pytest.mark.parametrize(("java", "expected"), [("/usr/bin/java", True), (None, False)])
def test_meteor_is_a_metric_where_java_is_there(java, expected, monkeypatch):
    monkeypatch.setattr("recipes.kit.caption_scores.shutil.which", lambda name: java)
    for meteor in (0, 1):
        args = train.run.arguments("", train.PRESETS, command("unused", f"meteor={meteor}"))
        names = [metric["name"] for metric in train.metrics(args, {"in": None})]
        assert ("METEOR" in names) == (expected and meteor == 1)
