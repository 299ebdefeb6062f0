"""Pictures for the documentation: grids of samples."""

from __future__ import annotations

import pathlib

import torch
from PIL import Image
from torch import Tensor


def save(images: Tensor, path: pathlib.Path, columns: int = 10, scale: int = 2) -> None:
    """[N, C, H, W] in [-1, 1] as one picture, with a pixel between neighbours."""
    count, channels, height, width = images.shape
    rows = -(-count // columns)
    sheet = torch.full((channels, rows * (height + 1) + 1, columns * (width + 1) + 1), 1.0)
    for k, image in enumerate(images.clamp(-1, 1)):
        top, left = (k // columns) * (height + 1) + 1, (k % columns) * (width + 1) + 1
        sheet[:, top : top + height, left : left + width] = image
    pixels = ((sheet + 1) * 127.5).round().byte().permute(1, 2, 0).numpy()
    picture = Image.fromarray(pixels.squeeze(-1) if channels == 1 else pixels)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.resize((picture.width * scale, picture.height * scale), Image.Resampling.NEAREST).save(path)
