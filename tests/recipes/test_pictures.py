"""Readers give the pictures and classes that the files hold."""

import gzip
import json

import numpy as np
import pytest
import torch
from PIL import Image

from recipes.kit import assets, frechet, pictures


def test_cifar10_has_its_pictures_in_order():
    few, more = pictures.cifar10("train", 5), pictures.cifar10("train", 300)
    assert few.pixels.shape == (5, 3, 32, 32) and few.labels.tolist() == [6, 9, 9, 4, 1]  # frog, truck, truck, deer, automobile
    assert torch.equal(few.pixels, more.pixels[:5])
    image, label = few[0]
    assert image.min() >= -1 and image.max() <= 1 and int(label) == 6


def test_mnist_begins_with_a_five():
    digits = pictures.mnist("train", 10)
    assert digits.labels.tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4] and digits.pixels.shape == (10, 1, 28, 28)


def test_quickdraw_goes_through_the_classes_and_parts_are_disjoint():
    train, test = pictures.quickdraw("train"), pictures.quickdraw("test")
    assert (len(train), len(test), len(train.classes)) == (345 * 80, 345 * 20, 345)
    assert train.labels[:346].tolist() == [*range(345), 0]
    ant = train.classes.index("ant")
    with gzip.open(assets.find("quickdraw") / "ant.ndjson.gz", "rt") as file:
        drawings = [np.array(json.loads(line)) for line in file]
    np.testing.assert_allclose(train.pixels[345 + ant].flatten() / 255, drawings[1], atol=0.003)
    np.testing.assert_allclose(test.pixels[ant].flatten() / 255, drawings[80], atol=0.003)


def test_cifar100_is_read_from_the_binary_version(tmp_path):
    (tmp_path / "fine_label_names.txt").write_text("\n".join(f"c{k}" for k in range(100)))
    record = np.arange(3074) % 251
    np.stack([record, record + 1]).astype(np.uint8).tofile(tmp_path / "train.bin")
    found = pictures.cifar100(tmp_path, "train")
    assert found.labels.tolist() == [1, 2] and found.pixels[0, 1, 0, 0] == record[2 + 1024]
    (tmp_path / "train.bin").write_bytes(b"x" * 3000)
    with pytest.raises(ValueError, match=r"train.bin: must hold records of 3074 bytes.*got 3000 bytes"):
        pictures.cifar100(tmp_path, "train")


def test_folders_of_pictures_are_read_as_imagenet_has_them(tmp_path):
    for k, name in enumerate(("cat", "dog")):
        (tmp_path / name).mkdir()
        Image.fromarray(np.full((40, 60 + k, 3), 200 * k, np.uint8)).save(tmp_path / name / "a.png")
    found = pictures.ImageFolder(tmp_path, 32)
    assert found.classes == ["cat", "dog"] and found.labels.tolist() == [0, 1]
    image, label = found[1]
    assert image.shape == (3, 32, 32) and int(label) == 1 and float(image[0, 16, 16]) == pytest.approx(200 / 127.5 - 1)


def test_broken_folders_are_refused_by_name(tmp_path):
    with pytest.raises(FileNotFoundError, match="must hold a folder of pictures for each class"):
        pictures.ImageFolder(tmp_path, 32)
    (tmp_path / "cat").mkdir()
    with pytest.raises(FileNotFoundError, match="cat: must hold pictures"):
        pictures.ImageFolder(tmp_path, 32)
    (tmp_path / "cat" / "a.jpg").write_bytes(b"no picture")
    with pytest.raises(ValueError, match="a.jpg: not a whole picture"):
        pictures.ImageFolder(tmp_path, 32)[0]


def test_the_frechet_distance_is_that_of_normal_distributions():
    """Closed form for independent features: squared gap of the means plus squared gap of the deviations."""
    torch.manual_seed(0)
    a, b = torch.randn(200_000, 3), torch.randn(200_000, 3) * torch.tensor([1.0, 2.0, 0.5]) + torch.tensor([0.0, 1.0, 3.0])
    assert frechet.distance(a, b) == pytest.approx(10 + 1 + 0.25, rel=0.02)
    assert frechet.distance(a, a) == pytest.approx(0, abs=1e-9)

    # tr sqrt(A B) is also the sum of the roots of the eigenvalues of A B, which is not symmetric.
    a, b = torch.randn(50, 4, dtype=torch.double), torch.randn(60, 4, dtype=torch.double) ** 2
    first, second = np.cov(a.T.numpy()), np.cov(b.T.numpy())
    shared = np.sqrt(np.linalg.eigvals(first @ second)).sum().real
    expected = float((a.mean(0) - b.mean(0)).square().sum()) + np.trace(first + second) - 2 * shared
    assert frechet.distance(a, b) == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValueError, match="two samples at least"):
        frechet.distance(a[:1], b)


def test_the_ruler_tells_digits_from_noise_and_is_kept(tmp_path):
    train, test = pictures.mnist("train", 2000), pictures.mnist("test", 500)
    state = torch.get_rng_state()
    ruler = frechet.Ruler(train, test, tmp_path)
    assert torch.equal(torch.get_rng_state(), state), "training the classifier must not change the run's random numbers"
    digits = pictures.mnist("test", 1000).pixels[500:].float() / 127.5 - 1
    noise = torch.rand(500, 1, 28, 28) * 2 - 1
    assert 20 * ruler.distance(digits) < ruler.distance(noise)
    again = frechet.Ruler(train, test, tmp_path)
    assert again.distance(digits) == ruler.distance(digits)
