"""The paper's classifiers for pictures of 28 to 64 pixels, each in two sizes: as published, and small enough for a CPU."""

from __future__ import annotations

from collections.abc import Callable

import timm
import torch
from timm.models.resnet import BasicBlock, Bottleneck, ResNet
from torch import nn

from .vim import Vim

SMALL_RESNET = (8, 16, 32, 64)


def _resnet(block: type, layers: list[int]) -> Callable[..., nn.Module]:
    def make(num_classes: int, channels: int, size: int, is_small: bool) -> nn.Module:
        widths = SMALL_RESNET if is_small else (64, 128, 256, 512)
        model = ResNet(block, layers, num_classes=num_classes, in_chans=channels, channels=widths)
        # ImageNet's first layers would leave 8 x 8 of 32 x 32 pixels.
        model.conv1 = nn.Conv2d(channels, 64, 3, stride=2 if is_small else 1, padding=1, bias=False)
        model.maxpool = nn.Identity()
        return model

    return make


def _efficientnet(num_classes: int, channels: int, size: int, is_small: bool) -> nn.Module:
    name = "test_efficientnet" if is_small else "efficientnet_b0"  # the former: the same blocks, the fewest parameters
    model = timm.create_model(name, num_classes=num_classes, in_chans=channels)
    model.conv_stem.stride = (1, 1)
    return model


def _vit(num_classes: int, channels: int, size: int, is_small: bool) -> nn.Module:
    shape = {"embed_dim": 64, "depth": 3, "num_heads": 4} if is_small else {"embed_dim": 384, "depth": 12, "num_heads": 6}
    return timm.models.VisionTransformer(img_size=size, patch_size=4, in_chans=channels, num_classes=num_classes, **shape)


def _swin(num_classes: int, channels: int, size: int, is_small: bool) -> nn.Module:
    shape = {"embed_dim": 96, "depths": (2, 2, 6), "num_heads": (3, 6, 12), "patch_size": 2}
    if is_small:
        shape = {"embed_dim": 32, "depths": (2, 2), "num_heads": (2, 4), "patch_size": 4}
    side = size // shape["patch_size"]
    window = next(w for w in (4, 7, 2, 1) if side % w == 0)
    return timm.models.SwinTransformer(img_size=size, window_size=window, in_chans=channels, num_classes=num_classes, **shape)


def _vim(num_classes: int, channels: int, size: int, is_small: bool) -> nn.Module:
    return Vim(num_classes, channels, size, width=32, depth=2, states=4) if is_small else Vim(num_classes, channels, size)


class _Logits(nn.Module):
    """An ultralytics classifier that returns logits in evaluation mode too."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = self.model.predict(x)
        return result if isinstance(result, torch.Tensor) else result[1]


def _yolov5n_cls(num_classes: int, channels: int, size: int, is_small: bool) -> nn.Module:
    from recipes.kit.yolo import ClassificationModel, yaml_model_load  # ultralytics with settings of its own

    config = yaml_model_load("yolov5n.yaml")
    config["head"] = [[-1, 1, "Classify", ["nc"]]]  # ultralytics has YOLOv5's backbone, but no file for its classifier
    return _Logits(ClassificationModel(config, ch=channels, nc=num_classes, verbose=False))


MODELS: dict[str, Callable[..., nn.Module]] = {
    "resnet18": _resnet(BasicBlock, [2, 2, 2, 2]),
    "resnet50": _resnet(Bottleneck, [3, 4, 6, 3]),
    "efficientnet": _efficientnet,
    "vit": _vit,
    "swin": _swin,
    "vim": _vim,
    "yolov5n-cls": _yolov5n_cls,
}


def make(name: str, num_classes: int, channels: int, size: int, is_small: bool) -> nn.Module:
    if name not in MODELS:
        raise SystemExit(f"model must be one of {', '.join(MODELS)}, got {name}")
    model = MODELS[name](num_classes, channels, size, is_small)
    return model.to(memory_format=torch.channels_last)  # faster on a CPU
