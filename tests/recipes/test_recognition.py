"""Rendered words are functions of their seed, with words and fonts of the test part unseen; the reader learns them."""

import numpy as np
import pytest
import torch
from conftest import ROOT, check_resumed, check_scored, command, lines
from PIL import Image
from truth import BATCH, SIZE

from recipes.kit import assets, lettering
from recipes.recognition import abinet

TINY = ("pretrain=0", "limit=48", "test_limit=20", "epochs=4", "batch_size=16", "width=16", "rounds=1")


def test_a_word_is_a_function_of_seed_and_index():
    words, files = lettering.vocabulary("train"), lettering.fonts("train")
    for index in (0, 5):
        picture, text = lettering.sample(index, "train", 0, words, files)
        again, same = lettering.sample(index, "train", 0, words, files)
        np.testing.assert_array_equal(picture, again)
        assert text == same and picture.shape == (lettering.HEIGHT, lettering.WIDTH) and np.ptp(picture) > 60
    other, _ = lettering.sample(0, "train", 1, words, files)
    assert (other != lettering.sample(0, "train", 0, words, files)[0]).any()


def test_words_and_fonts_of_the_test_part_are_unseen():
    fonts = {part: lettering.fonts(part) for part in lettering.PARTS}
    families = [{path.stem[:5].lower() for path in fonts[part]} for part in lettering.PARTS]
    assert not families[0] & families[1] and sum(map(len, fonts.values())) >= 400
    assert not lettering.ILLEGIBLE & {path.stem for part in lettering.PARTS for path in fonts[part]}
    words = [set(lettering.vocabulary(part)) for part in lettering.PARTS]
    assert not words[0] & words[1] and min(map(len, words)) > 5000
    with pytest.raises(ValueError, match="part must be one of train, test, got val"):
        lettering.fonts("val")
    with pytest.raises(ValueError, match="longest must be in .2, 12., got 40"):
        lettering.vocabulary("train", 40)


def test_words_are_decoded_up_to_their_end():
    dataset = lettering.Words(torch.zeros(2, 1, 32, 96, dtype=torch.uint8), ["cat9", "abcdefghijkl"])
    assert lettering.decode(dataset.targets.clamp(min=0)) == dataset.texts


def test_language_does_not_see_the_place_that_it_corrects():
    model = abinet.Language(16)
    characters = torch.randn(1, abinet.PLACES, abinet.CLASSES, requires_grad=True)
    (gradient,) = torch.autograd.grad(model(characters)[0, 3].sum(), characters)
    seen = gradient[0].abs().sum(1)
    assert seen[3] == 0 and (seen[[k for k in range(abinet.PLACES) if k != 3]] > 0).all()


def test_the_reader_learns_the_words_it_is_trained_on(tmp_path):
    """Half of the words at least; seed 0 reads nine of ten. Untrained it reads none."""
    words = lettering.rendered("train", 24, 4)
    (tmp_path / "words").mkdir()
    for k, picture in enumerate(words.pixels):
        Image.fromarray(picture[0].numpy()).save(tmp_path / "words" / f"{k}.png")
    (tmp_path / "words" / "test.txt").write_text("".join(f"{k}.png {text}\n" for k, text in enumerate(words.texts)))
    settings = ("pretrain=0", "limit=24", f"test_words={tmp_path / 'words'}", "epochs=60", "batch_size=8", "width=32", "rounds=1")
    abinet.main(command(tmp_path / "run", *settings, "learning_rate=0.002"))
    found = lines(tmp_path / "run")
    assert found[-1]["values"]["word_accuracy"] > 0.5
    assert sum(line["pruned"] for line in found) > 0.1 * 24 * 60


def test_all_runs_start_from_the_same_reader(tmp_path, monkeypatch):
    monkeypatch.setattr(assets, "ROOT", tmp_path)
    (tmp_path / "data").mkdir()
    rendered = lettering.rendered
    monkeypatch.setattr(lettering, "rendered", lambda *a, data, **b: rendered(*a, data=ROOT / "data", **b))
    settings = ("pretrain=32", "pretrain_epochs=2", "width=16", "rounds=1")
    weights = []
    for seed in (0, 1):
        args = abinet.run.arguments("", abinet.PRESETS, [*command(tmp_path / str(seed), *settings), "--seed", str(seed)])
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        weights.append(abinet.pretrained(args))
        assert torch.equal(torch.get_rng_state(), before), "training it must not change the run's random numbers"
    (kept,) = (tmp_path / "data").iterdir()
    kept.unlink()
    weights.append(abinet.pretrained(args))
    for found in weights[1:]:
        assert all(torch.equal(found[name], value) for name, value in weights[0].items())


def test_a_resumed_run_is_the_one_that_was_not_interrupted(tmp_path, interrupt):
    check_resumed(abinet, TINY, tmp_path, interrupt)


def test_the_reader_scores_the_samples_it_was_trained_on(tmp_path, monkeypatch):
    """Every picture has one shade, which tells its index."""

    def rendered(part, count, longest=12, seed=0, data=None):
        shades = (4 * torch.arange(SIZE, dtype=torch.uint8))[:, None, None, None]
        return lettering.Words(shades.expand(-1, 1, 32, 96).contiguous(), ["word"] * SIZE)

    monkeypatch.setattr(lettering, "rendered", rendered)
    settings = ("pretrain=0", "epochs=4", f"batch_size={BATCH}", "width=8", "rounds=1", "prune=0")

    def indices(images):
        return ((images[:, 0, 0, 0] + 1) * 127.5 / 4).round().long().tolist()

    check_scored(abinet, abinet.Reader, indices, command(tmp_path, *settings), monkeypatch)


def write_iiit5k(folder):
    (folder / "test").mkdir()
    for k in range(2):
        Image.new("RGB", (60, 20), (90 * k, 50, 50)).save(folder / "test" / f"{k}.png")
    (folder / "test.txt").write_text("test/0.png PRIVATE\ntest/1.png it's\n")


def test_iiit5k_is_read_without_case_and_signs(tmp_path):
    write_iiit5k(tmp_path)
    found = lettering.iiit5k(tmp_path)
    assert found.texts == ["private", "its"] and found.pixels.shape == (2, 1, 32, 96)


def test_iiit5k_is_read_from_its_own_file(tmp_path):
    from scipy.io import savemat

    write_iiit5k(tmp_path)
    rows = np.array([("test/0.png", "PRIVATE"), ("test/2.png", "TWO")], dtype=[("ImgName", object), ("GroundTruth", object)])
    savemat(tmp_path / "testdata.mat", {"testdata": rows[:1]})
    assert lettering.iiit5k(tmp_path).texts == ["private"]
    savemat(tmp_path / "testdata.mat", {"testdata": rows})
    with pytest.raises(ValueError, match="testdata.mat:2: .*2.png is missing"):
        lettering.iiit5k(tmp_path)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("test/1.png", "test.txt:2: must be a picture and its word, got 'test/1.png'"),
        ("test/1.png !!", "test.txt:2: must be a picture and its word"),
        ("test/9.png word", "test.txt:2: .*9.png is missing"),
        ("test.txt word", "test.txt:2: .*not a whole picture"),
    ],
)
def test_bad_words_are_refused_by_file_and_line(line, problem, tmp_path):
    write_iiit5k(tmp_path)
    (tmp_path / "test.txt").write_text(f"test/0.png PRIVATE\n{line}\n")
    with pytest.raises(ValueError, match=problem):
        lettering.iiit5k(tmp_path)


def test_a_folder_without_words_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="must hold testdata.mat or test.txt"):
        lettering.iiit5k(tmp_path)
