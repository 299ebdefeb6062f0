"""The trainers of ultralytics, with a YOLO of the smallest size on images that tell their index."""

import pathlib
import sys

import numpy as np
import pytest
import tamis
import torch
from PIL import Image
from truth import BATCH, EPOCHS, METHOD, SIZE, Log, judge

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
from recipes.kit.yolo import Pruned  # noqa: E402
from ultralytics.models.yolo.detect import DetectionTrainer  # noqa: E402
from ultralytics.models.yolo.segment import SegmentationTrainer  # noqa: E402

MODELS = {DetectionTrainer: "yolo11n.yaml", SegmentationTrainer: "yolo11n-seg.yaml"}


def make_data(folder):
    """Images of one colour with one object each, whose outline is a box."""
    for kind in ("images", "labels"):
        (folder / kind).mkdir(parents=True)
    for i in range(SIZE):
        pixels = np.full((32, 32, 3), 4 * i, dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "images" / f"{i:03}.png")
        right, low = 0.3 + 0.1 * (i % 5), 0.4 + 0.1 * (i % 4)
        (folder / "labels" / f"{i:03}.txt").write_text(f"0 0.1 0.1 {right} 0.1 {right} {low} 0.1 {low}\n")
    (folder / "data.yaml").write_text(f"path: {folder}\ntrain: images\nval: images\nnames: [box]\n")
    return str(folder / "data.yaml")


class Logged(Pruned):
    """Logs the losses under the wrapper."""

    def prune(self, dataset):
        return tamis.prune(dataset, METHOD, epochs=self.epochs)

    def wrap_loss(self):
        model = self.model
        plain = model.loss

        def loss(batch, preds=None):
            parts, items = plain(batch, preds)
            if torch.is_grad_enabled():
                indices = (batch["img"][:, 0, 16, 16] * 255 / 4).round().long().tolist()
                step = self.log.add(self.epoch, indices, float(parts.detach().sum()) / len(indices))
                parts.register_hook(lambda gradient, step=step: setattr(step, "factor", float(gradient[0])))
            return parts, items

        model.loss = loss
        super().wrap_loss()


def train(folder, base, **options):
    still = dict.fromkeys(
        ("mosaic", "hsv_h", "hsv_s", "hsv_v", "translate", "scale", "fliplr", "erasing"), 0.0
    )
    Logged.log = Log()
    overrides = {
        "model": MODELS[base], "data": make_data(folder / "data"), "epochs": EPOCHS, "batch": BATCH,
        "imgsz": 32, "device": "cpu", "workers": 0, "val": False, "plots": False, "pretrained": False,
        "optimizer": "SGD", "project": str(folder), "name": "run", "amp": False, "nbs": BATCH,
        "verbose": False, **still, **options,
    }
    trainer = type("LoggedTrainer", (Logged, base), {})(overrides=overrides)
    trainer.train()
    return trainer


@pytest.mark.parametrize("base", MODELS)
def test_each_epoch_trains_on_its_samples(base, tmp_path):
    trainer = train(tmp_path, base)
    judge(trainer.log.steps, trainer.handler.scores)


def test_windows_of_several_batches(tmp_path):
    trainer = train(tmp_path, DetectionTrainer, nbs=3 * BATCH)
    judge(trainer.log.steps, trainer.handler.scores)
