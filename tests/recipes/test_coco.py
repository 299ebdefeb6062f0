"""Bad annotations are refused by file and line; good ones are measured by pycocotools."""

import json

import numpy as np
import pytest
from PIL import Image

from recipes.kit import coco

GOOD = {"id": 1, "image_id": 7, "category_id": 3, "bbox": [2, 3, 10, 5], "segmentation": [[2, 3, 12, 3, 12, 8, 2, 8]]}


def write(folder, *annotations):
    """One element per line: annotations begin in line 9."""
    (folder / "images").mkdir(exist_ok=True)
    Image.fromarray(np.zeros((20, 30, 3), np.uint8)).save(folder / "images" / "a.png")
    rows = ",\n".join(json.dumps(annotation) for annotation in annotations)
    path = folder / "annotations.json"
    path.write_text(
        '{"info": {"version": "1"},\n"categories": [\n{"id": 3, "name": "cat"},\n{"id": 9, "name": "dog"}\n],\n"images": ['
        '{"id": 7, "file_name": "a.png", "width": 30, "height": 20}],\n\n"annotations": [\n' + rows + "\n]}\n"
    )
    return path


def test_a_good_file_is_read_with_classes_boxes_and_masks(tmp_path):
    found = coco.read(write(tmp_path, GOOD, {**GOOD, "id": 2, "category_id": 9}), masks=True)
    assert found.classes == ["cat", "dog"] and found.category_ids == [3, 9]
    (picture,) = found.pictures
    assert [annotation.label for annotation in picture.annotations] == [0, 1]
    assert picture.annotations[0].box == (2, 3, 10, 5)
    assert picture.annotations[0].mask.sum() == 50


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"bbox": [25, 3, 10, 5]}, "bbox must lie inside its picture of 30 x 20"),
        ({"bbox": [-2, 3, 10, 5]}, "bbox must lie inside"),
        ({"bbox": [2, 3, 0, 5]}, "bbox must be x, y, width, height with positive sizes"),
        ({"bbox": [2, 3, 10]}, "bbox must be"),
        ({"category_id": 4}, r"category_id must be one of \[3, 9\], got 4"),
        ({"image_id": 8}, "image_id must be one of the images, got 8"),
        ({"segmentation": []}, "segmentation must hold polygons"),
        ({"segmentation": [[1, 1, 1, 1, 1, 1]]}, "got an empty mask"),
        ({"segmentation": {"size": [20, 30], "counts": [600]}}, "got an empty mask"),
        ({"segmentation": {"size": [20, 31], "counts": [600]}}, "run lengths for 20 x 30 pixels"),
        ({"segmentation": {"size": [20, 30], "counts": [5, 9]}}, "run lengths for 20 x 30 pixels"),
    ],
)
def test_a_bad_annotation_is_refused_by_file_and_line(change, problem, tmp_path):
    path = write(tmp_path, GOOD, {**GOOD, "id": 2, **change})
    with pytest.raises(ValueError, match=rf"{path}:10: .*{problem}"):
        coco.read(path, masks=True)


def test_a_missing_key_is_refused_by_file_and_line(tmp_path):
    broken = {key: value for key, value in GOOD.items() if key != "bbox"}
    path = write(tmp_path, broken)
    with pytest.raises(ValueError, match=f'{path}:9: must have "bbox"'):
        coco.read(path)


def test_a_file_that_is_not_json_is_refused_by_line(tmp_path):
    path = write(tmp_path, GOOD)
    path.write_text(path.read_text().replace('"bbox"', "bbox"))
    with pytest.raises(ValueError, match=f"{path}:9: not JSON"):
        coco.read(path)


def test_a_truncated_a_missing_and_a_resized_picture_are_refused_by_file_and_line(tmp_path):
    path, picture = write(tmp_path, GOOD), tmp_path / "images" / "a.png"
    noise = np.random.default_rng(0).integers(0, 255, (20, 30, 3), np.uint8)
    Image.fromarray(noise).save(picture)
    coco.read(path)
    picture.write_bytes(picture.read_bytes()[:900])
    with pytest.raises(ValueError, match=f"{path}:6: .*a.png: not a whole picture"):
        coco.read(path)
    Image.fromarray(noise[:10]).save(picture)
    with pytest.raises(ValueError, match=f"{path}:6: .*must have 30 x 20 pixels, got 30 x 10"):
        coco.read(path)
    picture.unlink()
    with pytest.raises(ValueError, match=f"{path}:6: .*a.png is missing"):
        coco.read(path)


def test_average_precision_of_perfect_shifted_and_no_detections(tmp_path):
    mask = np.zeros((20, 30), bool)
    mask[3:8, 2:12] = True
    path = write(tmp_path, {**GOOD, "area": 50, "iscrowd": 0})
    found = {"image_id": 7, "category_id": 3, "score": 0.9, "bbox": [2, 3, 10, 5], "segmentation": coco.encode_mask(mask)}
    for kind in ("bbox", "segm"):
        assert coco.mean_average_precision(path, [dict(found)], kind) == pytest.approx({"mAP.5": 1, "mAP.5:.95": 1})
    shifted = {**found, "bbox": [4, 3, 10, 5]}  # overlap 8 / 12: counts at .5, .55, .6 and .65
    assert coco.mean_average_precision(path, [shifted], "bbox") == pytest.approx({"mAP.5": 1, "mAP.5:.95": 0.4})
    assert coco.mean_average_precision(path, [], "bbox") == {"mAP.5": 0, "mAP.5:.95": 0}
