"""Captions are true and functions of their seed; bad files are refused by file and line; metrics are pycocoevalcap's."""

import json

import numpy as np
import pytest
from PIL import Image

from recipes.kit import caption_scores, captions, emoji, wordnet


@pytest.fixture(scope="module")
def scenes():
    return captions.CaptionedScenes("train", 30)


@pytest.fixture(scope="module")
def films(scenes):
    moving = captions.CaptionedScenes.of(scenes, "all", 24)
    moving.frames = 4
    return moving


def test_a_captioned_scene_is_a_function_of_seed_domain_and_index(scenes):
    again = captions.CaptionedScenes("train", 30)
    for k in (0, 29):
        np.testing.assert_array_equal(scenes[k][0], again[k][0])
        assert scenes[k][1:] == again[k][1:]
    again.seed = 1
    assert [scenes[k][1] for k in range(5)] != [again[k][1] for k in range(5)]
    assert [scenes[k][1] for k in range(5)] != [scenes.of("in", 5)[k][1] for k in range(5)]


@pytest.mark.parametrize(("domain", "counts"), [("train", {0}), ("in", {0}), ("near", {1}), ("out", {2})])
def test_domains_differ_in_the_classes_of_their_objects(scenes, domain, counts):
    held_out = {name for label in scenes.held_out for name in scenes.names[label]}
    found = scenes.of(domain, 20)
    assert {sum(name in held_out for name in found[k][2]) for k in range(20)} == counts


def test_every_caption_names_both_objects_and_the_wrong_one_exchanges_them(scenes):
    for k in range(10):
        _, told, (a, b), wrong = scenes[k]
        assert len(set(told)) == 5 and all(a in text and b in text for text in told)
        assert wrong not in told and wrong.startswith(b) and a in wrong and sorted(wrong.split()) == sorted(told[0].split())


def test_what_is_said_of_a_film_is_what_it_shows(films):
    """What changes from frame to frame is the mover: it is in the half and goes the way that the caption says."""
    said = set()
    for k in range(len(films)):
        film, (text, *_), _, _ = films[k]
        changed = (film[1:] != film[:-1]).any(-1)
        rows, columns = (np.flatnonzero(changed.any((0, axis))) for axis in (2, 1))
        half = films.size / 2
        places = {
            "to the left of": columns.max() < half, "to the right of": columns.min() >= half - 1,
            " above ": rows.max() < half, " below ": rows.min() >= half - 1,
        }
        assert all(is_there for relation, is_there in places.items() if relation in text), text
        before, after = (np.array(np.nonzero(changed[j])).mean(1) for j in (0, -1))
        down, right = after - before
        motions = {"goes up": down < -8, "goes down": down > 8, "moves to the left": right < -8, "moves to the right": right > 8}
        areas = [changed[j].sum() for j in (0, -1)]
        motions |= {"comes nearer": areas[1] > areas[0], "goes away": areas[1] < areas[0]}
        assert any(word in text for word in motions)
        assert all(is_so for word, is_so in motions.items() if word in text), text
        said |= {word for word in motions if word in text}
    assert len(said) >= 5


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("A great blue heron.", "a great blue heron"), ("An albino peahen (a female peafowl, or peacock).", "an albino peahen"),
        ("A calculator.  6x7=42", "a calculator"), ("Say cheese!", None), ("Eat your bread!", None),
        ("Two wild boars.", "two wild boars"), ("A plumber’s wrench.", "a plumber's wrench"),
    ],
)
def test_the_name_of_a_cut_out_is_the_beginning_of_its_line(line, name, tmp_path):
    (tmp_path / "a.txt").write_text(f"{line}\nzz.utf8=x\n")
    assert captions.cutout_name(tmp_path / "a.png") == name


def test_texts_alone_never_name_what_is_held_out(scenes):
    texts = captions.template_texts(300)
    assert texts == captions.template_texts(300) and texts != captions.template_texts(300, seed=1)
    held_out = {name for label in scenes.held_out for name in scenes.names[label]}
    named = {name for text, entities in texts for name in entities if name in text}
    assert not named & held_out and len(named) > 200
    assert named & {name for label in scenes.seen for name in scenes.names[label]}


def test_wordnet_gives_nouns_that_can_be_seen():
    nouns = wordnet.nouns()
    assert nouns["umbrella"] == "a lightweight handheld collapsible canopy" and "freedom" not in nouns and len(nouns) > 1000


def test_emoji_have_their_names_in_every_style():
    flat, solid = emoji.read("flat", 32), emoji.read("3d", 32)
    assert flat.pixels.shape[1:] == (1, 3, 32, 32) and len(flat) > 1500 and len(solid) > 1500
    for part in (flat, solid):
        k = next(k for k, told in enumerate(part.captions) if told[0] == "dog face")
        assert "dog" in part.captions[k] and "animal" in part.entities[k]
        assert 20 < part.pixels[k].float().std() < 120
    few = emoji.read("flat", 32, 10)
    assert few.captions == flat.captions[:10] and (few.pixels == flat.pixels[:10]).all()
    with pytest.raises(ValueError, match="style must be one of flat, 3d, film, got round"):
        emoji.read("round", 32)


def test_texts_about_emoji_have_labels_pairs_and_glosses():
    texts = emoji.texts(40)
    assert texts == emoji.texts(40) and len(texts) == 40
    assert any(text.startswith("a picture of") and all(name in text for name in names) for text, names in texts)
    assert all(text == captions.words(text) for text, _ in texts)


GOOD = {"image_id": 7, "caption": "A cat, on a mat."}


def write(folder, *annotations, **image):
    """One element per line: the image in line 2, annotations from line 3."""
    (folder / "images").mkdir(exist_ok=True)
    Image.fromarray(np.full((20, 30, 3), 200, np.uint8)).save(folder / "images" / "a.png")
    rows = ",\n".join(map(json.dumps, annotations))
    path = folder / "captions.json"
    shown = json.dumps({"id": 7, "file_name": "a.png", **image})
    path.write_text('{"images": [\n' + shown + '],\n"annotations": [' + rows + "]}\n")
    return path


def test_a_file_of_captions_is_read_with_words_and_entities(tmp_path):
    found = captions.read(write(tmp_path, GOOD, {**GOOD, "caption": "The cat!"}, entities=["A cat"]), 16)
    assert found.captions == [["a cat on a mat", "the cat"]] and found.entities == [["a cat"]]
    assert found.pixels.shape == (1, 1, 3, 16, 16) and (found.pixels == 200).all()


@pytest.mark.parametrize(
    ("annotation", "image", "line", "problem"),
    [
        ({"caption": "... !"}, {}, 4, 'caption must have a word at least, got "... !"'),
        ({"caption": 3}, {}, 4, "caption must have a word at least, got 3"),
        ({"image_id": 8}, {}, 4, "image_id must be one of the images, got 8"),
        ({}, {"file_name": "b.png"}, 2, "b.png is missing"),
    ],
)
def test_a_bad_caption_is_refused_by_file_and_line(annotation, image, line, problem, tmp_path):
    path = write(tmp_path, GOOD, {**GOOD, **annotation}, **image)
    with pytest.raises(ValueError, match=f"{path}:{line}: .*{problem}"):
        captions.read(path, 16)


def test_a_picture_that_is_broken_or_has_no_caption_is_refused_by_file_and_line(tmp_path):
    with pytest.raises(ValueError, match="captions.json:2: image 7 must have a caption at least"):
        captions.read(write(tmp_path), 16)
    path = write(tmp_path, GOOD)
    (tmp_path / "images" / "a.png").write_bytes(b"no picture")
    with pytest.raises(ValueError, match=f"{path}:2: .*a.png: not a whole picture"):
        captions.read(path, 16)


def test_scores_are_those_of_perfect_partly_right_and_foreign_captions():
    pig, cat = ["a pig to the left of an apple", "an apple to the right of a pig"], ["a cat on a green mat", "a cat sits on a mat"]
    references = [pig, cat]
    perfect = caption_scores.measure([told[0] for told in references], references)
    partly = caption_scores.measure(["a pig to the right of an apple", "a cat on a mat"], references)
    foreign = caption_scores.measure(["nothing", ""], references)
    assert perfect["BLEU-4"] == pytest.approx(1) and foreign["BLEU-4"] < 0.01 and foreign["CIDEr"] == 0
    assert foreign["CIDEr"] < partly["CIDEr"] < perfect["CIDEr"] and partly["BLEU-4"] < 0.9
    with pytest.raises(ValueError, match="needs two captions at least, each with references, got 1 captions and 2 lists"):
        caption_scores.measure(["a"], references)


@pytest.mark.skipif(not caption_scores.has_meteor(), reason="METEOR is a Java program")
def test_meteor_knows_words_also_in_another_form():
    """One call, for Java takes seconds to read its tables: a word in another form costs little, other words all."""
    references = [["two dogs run over the green grass"], ["a cat sleeps on a mat"]]
    found = caption_scores.measure(["two dogs running over the green grass", "nothing like it"], references, meteor=True)
    assert 0.4 < found["METEOR"] < 0.6
    assert "METEOR" not in caption_scores.measure(["a", "b"], references)
