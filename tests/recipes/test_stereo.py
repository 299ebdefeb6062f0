"""Rendered views are functions of their seed and agree with their depth; the model learns depth on pruned data."""

import pytest
import torch
from conftest import check_resumed, check_scored, command, lines
from truth import BATCH, SIZE

from recipes.kit import terrain
from recipes.stereo import adamvs

TINY = ("limit=24", "test_limit=4", "size=16", "epochs=4", "batch_size=8", "width=4", "planes=8", "fine_planes=4")


def test_a_tile_is_a_function_of_seed_and_index():
    for first, second in zip(terrain.tile(3, "train", 0, 16, 3), terrain.tile(3, "train", 0, 16, 3)):
        assert torch.equal(first, second)
    assert not torch.equal(terrain.tile(3, "train", 1, 16, 3)[1], terrain.tile(3, "train", 0, 16, 3)[1])


def test_rays_meet_the_ground_where_their_depth_says():
    """On a slope that rises by 0.5 for every unit to the right, the depth has a closed form."""
    line = torch.linspace(-40, 40, 81)
    ground = (10 + 0.5 * line).expand(81, 81)
    cameras = torch.tensor([[0.0, 0.0], [30.0, 0.0]])
    _, depth = terrain.look(ground, torch.zeros(3, 81, 81), cameras, 16)
    pixels = torch.arange(16) - 7.5
    for found, x in zip(depth, (0.0, 30.0)):
        ray = pixels / terrain.FOCAL - x / terrain.HEIGHT
        expected = (terrain.HEIGHT - 10 - 0.5 * x) / (1 + 0.5 * ray)
        torch.testing.assert_close(found, expected.expand(16, 16), rtol=1e-5, atol=1e-3)


def test_views_show_the_same_ground_where_the_depth_says():
    """A view, sampled at the places that the true depth gives, is the reference; at the mean depth it is not."""
    def gap(tile, at_mean):
        pictures, depth, cameras = tile
        planes = (depth.mean().expand_as(depth) if at_mean else depth)[None, None]
        warped = [adamvs.warp(pictures[k][None].float(), planes, cameras[None, k])[0, :, 0] for k in (1, 2)]
        return torch.stack([(one - pictures[0].float())[:, 8:-8, 8:-8].abs().mean() for one in warped]).mean()

    tiles = [terrain.tile(k, "test", 0, 48, 3) for k in range(4)]
    assert sum(gap(tile, False) for tile in tiles) < 0.7 * sum(gap(tile, True) for tile in tiles)


def test_parts_are_of_different_continents():
    boxes = [box for part in terrain.CONTINENTS.values() for box in part.values()]
    assert len(boxes) == 6
    for south, north, west, east in terrain.CONTINENTS["test"].values():
        for low, high, left, right in terrain.CONTINENTS["train"].values():
            assert north + 6 < low or south - 6 > high or east + 6 < left or west - 6 > right
    with pytest.raises(ValueError, match="part must be one of train, test, got val"):
        terrain.rendered("val", 1, 16)


def test_the_real_pair_agrees_with_its_depth():
    pictures, depth, cameras = terrain.motorcycle()
    known = torch.isfinite(depth)
    assert known.float().mean() > 0.5 and adamvs.NEAR - 1 < depth[known].min() < depth[known].max() < adamvs.FAR
    planes = depth.nan_to_num(90.0)[None, None]

    def gap(at):
        return (adamvs.warp(pictures[1][None], at, cameras[None, 1])[0, :, 0] - pictures[0])[:, known].abs().mean()

    assert gap(planes) < 0.7 * gap(torch.full_like(planes, 90.0))


def test_depth_is_learnt_on_pruned_data(tmp_path):
    """Better by a tenth at least than the mean depth of the tiles it was trained on, everywhere."""
    settings = ("limit=64", "test_limit=16", "size=32", "epochs=8", "batch_size=4", "planes=16", "fine_planes=4")
    adamvs.main(command(tmp_path, *settings))
    found = lines(tmp_path)
    train, test = (terrain.rendered(part, count, 32) for part, count in (("train", 64), ("test", 16)))
    assert found[-1]["values"]["mean_error"] < 0.9 * float((test.depths - train.depths.mean()).abs().mean())
    assert found[-1]["values"]["real_pair_mean_error"] > 0
    assert sum(line["pruned"] for line in found) > 0.1 * 64 * 8


def test_a_resumed_run_is_the_one_that_was_not_interrupted(tmp_path, interrupt):
    check_resumed(adamvs, TINY, tmp_path, interrupt)


def test_the_model_scores_the_samples_it_was_trained_on(tmp_path, monkeypatch):
    """The first camera of every sample tells its index."""

    def rendered(part, count, size, views=3, seed=0, data=None):
        cameras = torch.zeros(SIZE, 2, 2)
        cameras[:, 0] = torch.arange(SIZE)[:, None]
        random = torch.Generator().manual_seed(0)
        pixels = torch.randint(0, 255, (SIZE, 2, 3, 8, 8), dtype=torch.uint8, generator=random)
        return terrain.Views(pixels, 85 + 10 * torch.rand(SIZE, 8, 8, generator=random), cameras)

    monkeypatch.setattr(terrain, "rendered", rendered)
    settings = ("epochs=4", f"batch_size={BATCH}", "width=4", "planes=4", "fine_planes=3", "prune=0")
    check_scored(
        adamvs, adamvs.AdaMvs, lambda _, cameras: cameras[:, 0, 0].long().tolist(), command(tmp_path, *settings), monkeypatch
    )
