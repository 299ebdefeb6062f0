"""The pictures of docs/tasks.md."""

import sys

import numpy as np
import pytest
from PIL import Image
from conftest import ROOT

from recipes.detection import train as detection
from recipes.kit import gallery, scenes
from recipes.segmentation import train as segmentation

sys.path.insert(0, str(ROOT / "scripts"))
import task_list  # noqa: E402

# Made of a run; all others show the data.
OF_RUNS = {"detections.webp", "segments.webp", "written.webp", "depths.webp", "vae.webp", "ddpm.webp", "ddpm-cfg.webp"}


def test_every_picture_of_data_is_drawn_and_on_the_page(tmp_path):
    gallery.main([str(tmp_path)])
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {name for task in task_list.TASKS for name in task.pictures} - OF_RUNS
    for name in drawn:
        values = np.asarray(Image.open(tmp_path / name).convert("L"))
        assert values.std() > 20, f"{name} shows nothing"


@pytest.mark.parametrize("recipe", [detection, segmentation])
def test_what_a_model_finds_is_drawn_into_the_validation_scenes(recipe, tmp_path, monkeypatch):
    """At most as many things as there are in a picture, however unsure: a model after one step finds some, too."""
    settings = ("limit=16", "val_limit=4", "size=64", "epochs=1", "batch_size=8")
    recipe.main(["--out", str(tmp_path / "run"), "--method", "full", *(part for s in settings for part in ("--set", s))])
    drawn, plain = [], gallery.marked
    monkeypatch.setattr(gallery, "marked", lambda *given: (drawn.append(given), plain(*given))[1])
    gallery.draw_found(tmp_path / "found.webp", tmp_path / "run")
    expected = scenes.Scenes("val", gallery.COLUMNS * gallery.ROWS, 64)
    assert len(drawn) == len(expected)
    for k, (image, boxes, tints) in enumerate(drawn):
        assert (image == expected[k].image).all()
        assert 1 <= len(boxes) <= len(expected[k].instances)
        assert len(tints) == (len(boxes) if recipe is segmentation else 0)
    assert Image.open(tmp_path / "found.webp").width > gallery.COLUMNS * 128


def test_masks_are_tints_and_boxes_frames_in_the_colour_of_the_class():
    image, mask = np.zeros((8, 8, 3), np.uint8), np.zeros((8, 8), bool)
    mask[4, 4] = True
    found = gallery.marked(image, [(1, (1, 1, 3, 2))], [(0, mask)])
    frame = {(y, x) for y in (1, 2) for x in (1, 2, 3)}
    assert all(tuple(found[y, x]) == gallery.COLOURS[1] for y, x in frame)
    assert found[4, 4].tolist() == [int(0.4 * value) for value in gallery.COLOURS[0]]
    assert np.count_nonzero(found.any(2)) == len(frame) + 1
