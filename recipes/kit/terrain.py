"""Views of real terrain (ETOPO5) under satellite imagery (Blue Marble), with exact depth, and a real stereo pair (Middlebury).

A tile is a function of seed, part and index. Its unit is a cell of five minutes. Heights are exaggerated until the steepest slope
is SLOPE, so that every ray meets the ground once. All cameras look straight down from HEIGHT; those beside the reference have their
sensors shifted so that they see the same ground. Continents of the part "test" are not in "train".
"""

from __future__ import annotations

import functools
import hashlib
import json
import pathlib
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from scipy.io import netcdf_file
from scipy.ndimage import gaussian_filter
from torch import Tensor

from . import assets

# South, north, west, east, in degrees.
CONTINENTS = {
    "train": {
        "Africa": (-30, 32, -12, 45), "Asia": (15, 65, 60, 130), "Europe": (40, 65, -5, 35), "North America": (20, 60, -120, -75),
    },
    "test": {"South America": (-45, 5, -75, -45), "Australia": (-34, -17, 120, 147)},
}
HEIGHT, FOCAL = 100.0, 100.0  # units, pixels: a pixel of the reference sees one unit at height 0
SLOPE, TALLEST = 1.2, 20.0  # at most, units
BASELINE = 30.0  # units
LEAST_LAND = 0.9
CONTRAST = 45.0  # deviation of each colour in a tile
ROUNDS = 40  # each brings a ray nearer to the ground by a factor of 0.75 at least
VERSION = 2


@dataclass
class Views(torch.utils.data.Dataset):
    """Pictures [N, views, 3, H, W] of bytes, depth of the reference [N, H, W], FOCAL times the place of each camera [N, views, 2].

    A sample is (pictures with mean 0 and deviation 1, depth, cameras); the first view is the reference.
    """

    pixels: Tensor
    depths: Tensor
    cameras: Tensor

    def __len__(self) -> int:
        return len(self.depths)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, Tensor]:
        return normalised(self.pixels[index].float()), self.depths[index], self.cameras[index]


def normalised(pictures: Tensor) -> Tensor:
    """Every channel of all views together."""
    mean, deviation = pictures.mean((0, 2, 3), keepdim=True), pictures.std((0, 2, 3), keepdim=True)
    return (pictures - mean) / (deviation + 1)


def shift(cameras: Tensor, depth: Tensor) -> Tensor:
    """By how many pixels a point of the reference at this depth lies elsewhere in a view: [..., 2]."""
    return -cameras * (1 / depth - 1 / HEIGHT)[..., None]


@functools.cache
def _globe(data: pathlib.Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Heights in metres, sea 0, and colours, on the same grid: rows from the south, columns from Greenwich eastwards."""
    with netcdf_file(assets.find("terrain", data) / "etopo5.cdf", mmap=False) as file:
        heights = np.clip(np.array(file.variables["ROSE"].data, np.float32), 0, None)
    picture = Image.open(assets.find("satellite", data) / "earth-blue-marble.jpg").convert("RGB")
    picture = picture.resize((heights.shape[1], heights.shape[0]), Image.Resampling.BICUBIC)
    colours = np.roll(np.asarray(picture)[::-1], -heights.shape[1] // 2, axis=1)  # the file begins at 180 degrees west
    return heights, colours


def _cut(random: np.random.Generator, part: str, side: int, data: pathlib.Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Heights in units and colours of a square of land on one of the part's continents."""
    heights, colours = _globe(data)
    boxes = list(CONTINENTS[part].values())
    while True:
        south, north, west, east = boxes[random.integers(len(boxes))]
        row = int((random.uniform(south, north) + 90) * 12) - side // 2
        column = int((random.uniform(west, east) % 360) * 12) - side // 2
        rows, columns = np.arange(row + side, row, -1), np.arange(column, column + side) % heights.shape[1]
        ground = heights[np.ix_(rows, columns)]
        if (ground > 0).mean() >= LEAST_LAND and ground.std() > 50:
            break
    ground = gaussian_filter(ground, 1.5)
    ground -= ground.min()
    slopes = np.hypot(np.diff(ground, axis=0)[:, :-1], np.diff(ground, axis=1)[:-1])
    land = colours[np.ix_(rows, columns)].astype(np.float32)
    land = 128 + CONTRAST * (land - land.mean((0, 1))) / (land.std((0, 1)) + 1)  # seen from so high it is dark and dull
    return ground * min(SLOPE / slopes.max(), TALLEST / ground.max()), land.clip(0, 255)


def look(ground: Tensor, colours: Tensor, cameras: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Pictures [views, 3, size, size] and depths [views, size, size] of one tile [P, P], cameras [views, 2] in units."""
    views = len(cameras)
    line = torch.arange(size) - (size - 1) / 2
    pixels = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1)
    rays = pixels / FOCAL - (cameras / HEIGHT)[:, None, None]  # units sideways for one unit down
    half = (ground.shape[0] - 1) / 2
    heights = ground.expand(views, 1, -1, -1)
    depth = torch.full((views, size, size), HEIGHT)
    for _ in range(ROUNDS):
        places = cameras[:, None, None] + rays * depth[..., None]
        depth = HEIGHT - F.grid_sample(heights, places / half, padding_mode="border", align_corners=True)[:, 0]
    places = (cameras[:, None, None] + rays * depth[..., None]) / half
    pictures = F.grid_sample(colours.expand(views, -1, -1, -1), places, padding_mode="border", align_corners=True)
    return pictures, depth


def tile(
    index: int, part: str, seed: int, size: int, views: int, data: pathlib.Path | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Pictures as bytes, depth of the reference, cameras times FOCAL."""
    random = np.random.default_rng([seed, list(CONTINENTS).index(part), index])
    ground, colours = _cut(random, part, size + 24, data)
    angle = random.uniform(0, 2 * np.pi) + 2 * np.pi / max(1, views - 1) * np.arange(views - 1)
    places = BASELINE * random.uniform(0.9, 1.1, (views - 1, 1)) * np.stack([np.cos(angle), np.sin(angle)], 1)
    cameras = torch.from_numpy(np.concatenate([np.zeros((1, 2)), places])).float()
    pictures, depth = look(torch.from_numpy(ground), torch.from_numpy(colours).permute(2, 0, 1), cameras, size)
    noise = torch.from_numpy(random.normal(0, 1.0, pictures.shape)).float()
    return (pictures + noise).clamp(0, 255).round().byte(), depth[0], FOCAL * cameras


def rendered(part: str, count: int, size: int, views: int = 3, seed: int = 0, data: pathlib.Path | None = None) -> Views:
    """`count` tiles; kept beside the data, by a sum of what they depend on."""
    if part not in CONTINENTS:
        raise ValueError(f"terrain: part must be one of {', '.join(CONTINENTS)}, got {part}")
    facts = [VERSION, part, count, size, views, seed, CONTINENTS, HEIGHT, FOCAL, SLOPE, TALLEST, BASELINE]
    facts += [LEAST_LAND, CONTRAST, ROUNDS] + [assets.ASSETS[name].digest for name in ("terrain", "satellite")]
    folder = assets.find("terrain", data).parent
    kept = folder / f"views-{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]}.pt"
    if not kept.exists():
        tiles = [tile(k, part, seed, size, views, data) for k in range(count)]
        parts = [torch.stack(column) for column in zip(*tiles)]
        with assets.written(kept) as file:
            torch.save(parts, file)
    return Views(*torch.load(kept, weights_only=True))


def motorcycle(scale: int = 8, data: pathlib.Path | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """A real pair as a sample of Views: pictures, depth (NaN where unknown), cameras. Never trained on.

    Its disparities, made smaller by `scale` and counted from the least one, are turned into the depths that would give them.
    """
    folder = assets.find("stereo", data)
    disparity = np.load(folder / "motorcycle_disp.npz")["arr_0"] / scale
    height, width = (side // scale // 4 * 4 for side in disparity.shape)
    known = np.where(np.isfinite(disparity), disparity, np.nan)[: height * scale, : width * scale]
    blocks = known.reshape(height, scale, width, scale).swapaxes(1, 2).reshape(height, width, -1)
    truth = np.where(np.isnan(blocks).any(2), np.nan, np.median(blocks, 2))
    least = np.floor(np.nanmin(truth))
    pictures = []
    for name, move in (("left", 0), ("right", int(least))):
        picture = Image.open(folder / f"motorcycle_{name}.png").convert("RGB").crop((0, 0, width * scale, height * scale))
        pixels = np.asarray(picture.reduce(scale), np.float32)
        pictures.append(torch.from_numpy(np.roll(pixels, move, axis=1)).permute(2, 0, 1))
    cameras = torch.tensor([[0.0, 0.0], [FOCAL * BASELINE, 0.0]])
    depth = 1 / (torch.from_numpy(truth - least).float() / (FOCAL * BASELINE) + 1 / HEIGHT)
    return normalised(torch.stack(pictures)), depth, cameras
