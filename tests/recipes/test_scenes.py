"""Scenes are functions of their seed, their truth is exact, and validation has cut-outs of its own."""

import numpy as np
import pytest

from recipes.kit import coco, scenes


@pytest.fixture(scope="module")
def train():
    return scenes.Scenes("train", 40, size=96)


def test_a_scene_is_a_function_of_seed_and_index(train):
    again, other = scenes.Scenes("train", 40, size=96), scenes.Scenes("train", 40, size=96, seed=1)
    for k in (0, 7, 39):
        np.testing.assert_array_equal(train[k].image, again[k].image)
        assert [i.box for i in train[k].instances] == [i.box for i in again[k].instances]
    assert any((train[k].image != other[k].image).any() for k in range(3))


def test_no_cut_out_is_in_both_parts(train):
    parts = [{path for files in scenes.cutout_files(part) for path in files} for part in scenes.PARTS]
    assert not parts[0] & parts[1]
    assert all(len(files) >= 5 for files in scenes.cutout_files("val"))
    names = {path.stem for path in parts[0]}
    assert all(instance.name in names for k in range(len(train)) for instance in train[k].instances)


def test_masks_are_disjoint_and_boxes_are_their_extents(train):
    counts = []
    for k in range(len(train)):
        scene = train[k]
        counts.append(len(scene.instances))
        total = sum(instance.mask.astype(int) for instance in scene.instances)
        assert total.max() == 1
        for instance in scene.instances:
            x, y, width, height = instance.box
            inside = instance.mask[y : y + height, x : x + width]
            assert inside.sum() == instance.mask.sum()
            assert all(edge.any() for edge in (inside[0], inside[-1], inside[:, 0], inside[:, -1]))
    assert set(counts) == {1, 2, 3, 4}


def test_an_object_shows_its_cut_out(train):
    """The pixels of the object in front are those of its file, scaled; nothing else of the scene has them."""
    scene = train[3]
    plain = train._background(np.random.default_rng([0, 0, 3]))
    changed = (scene.image != plain).any(2)
    covered = np.any([instance.mask for instance in scene.instances], axis=0)
    assert changed[covered].mean() > 0.95
    assert changed[~covered].mean() < 0.1  # soft edges only


def test_written_scenes_are_read_back_exactly(train, tmp_path):
    path = scenes.write(train, tmp_path / "scenes")
    stamp = path.stat().st_mtime_ns
    found = coco.read(path, masks=True)
    assert found.classes == list(scenes.CLASSES)
    for k, picture in enumerate(found.pictures):
        instances = train[k].instances
        assert [a.label for a in picture.annotations] == [i.label for i in instances]
        for annotation, instance in zip(picture.annotations, instances):
            assert annotation.box == instance.box
            np.testing.assert_array_equal(annotation.mask, instance.mask)
    scenes.write(train, tmp_path / "scenes")
    assert path.stat().st_mtime_ns == stamp, "complete files are kept"


def test_bad_requests_are_refused(train):
    with pytest.raises(IndexError, match="index must be below 40, got 40"):
        train[40]
    with pytest.raises(ValueError, match="part must be one of train, val, got test"):
        scenes.cutout_files("test")
