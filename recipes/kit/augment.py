"""Random changes of a batch of pictures [N, C, H, W] in [-1, 1], a different one for each."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def weak(images: Tensor, mirror: bool = True) -> Tensor:
    """Moves each picture by up to an eighth and, for photographs, mirrors half of them."""
    if mirror:
        flip = torch.rand(len(images)) < 0.5
        images = torch.where(flip[:, None, None, None], images.flip(3), images)
    side, pad = images.shape[-1], images.shape[-1] // 8
    images = F.pad(images, (pad,) * 4)
    top, left = torch.randint(0, 2 * pad + 1, (2, len(images)))
    return torch.stack([x[:, t : t + side, u : u + side] for x, t, u in zip(images, top.tolist(), left.tolist())])


def strong(images: Tensor) -> Tensor:
    """weak(), then turned, sheared, scaled, in other colours, and with a grey square in it: as RandAugment and Cutout do."""
    return cut_out(colours(affine(weak(images))))


def affine(images: Tensor, degrees: float = 30.0, shear: float = 0.3, scale: float = 0.2) -> Tensor:
    angle, slant, size = (2 * torch.rand(3, len(images)) - 1) * torch.tensor([math.radians(degrees), shear, scale])[:, None]
    sine, cosine, size = angle.sin(), angle.cos(), 1 + size
    zero = torch.zeros_like(sine)
    rows = [size * cosine, size * (slant * cosine - sine), zero, size * sine, size * (slant * sine + cosine), zero]
    grid = F.affine_grid(torch.stack(rows, 1).view(-1, 2, 3), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="reflection", align_corners=False)


def colours(images: Tensor) -> Tensor:
    """Brightness, contrast and saturation; every fifth picture is solarised."""
    strength = torch.tensor([0.5, 0.6, 0.8]).view(3, 1, 1, 1, 1)
    brightness, contrast, saturation = (2 * torch.rand(3, len(images), 1, 1, 1) - 1) * strength
    mean = images.mean((1, 2, 3), keepdim=True)
    images = (images - mean) * (1 + contrast) + mean + brightness
    grey = images.mean(1, keepdim=True)
    images = (grey + (images - grey) * (1 + saturation)).clamp(-1, 1)
    solarised = (torch.rand(len(images), 1, 1, 1) < 0.2) & (images > 0.3)
    return torch.where(solarised, -images, images)


def cut_out(images: Tensor, share: float = 0.4) -> Tensor:
    """A square of up to this share of the side, in the middle grey."""
    count, _, height, width = images.shape
    half = torch.rand(count, 1) * share / 2
    x, y = torch.rand(2, count, 1)
    columns = (torch.arange(width) / width - x).abs() < half
    rows = (torch.arange(height) / height - y).abs() < half
    return images.masked_fill((rows[:, :, None] & columns[:, None])[:, None], 0.0)
