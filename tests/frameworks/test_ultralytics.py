"""The recipe for ultralytics, with a YOLO of the smallest size on images that tell their index."""

import os
import pathlib
import sys
import tempfile

import numpy as np
import torch
from PIL import Image
from truth import BATCH, EPOCHS, SIZE, Log, judge

# Settings of its own, so that nothing is written into the home folder or sent anywhere.
os.environ["YOLO_CONFIG_DIR"] = tempfile.mkdtemp()
from ultralytics.utils import SETTINGS  # noqa: E402

SETTINGS.update({"sync": False})
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples" / "recipes"))
from ultralytics_detection import PrunedTrainer  # noqa: E402


def make_data(folder):
    """Images of one colour with one box each."""
    for kind in ("images", "labels"):
        (folder / kind).mkdir(parents=True)
    for i in range(SIZE):
        pixels = np.full((32, 32, 3), 4 * i, dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "images" / f"{i:03}.png")
        (folder / "labels" / f"{i:03}.txt").write_text(f"0 0.5 0.5 0.{2 + i % 5} 0.{3 + i % 4}\n")
    (folder / "data.yaml").write_text(f"path: {folder}\ntrain: images\nval: images\nnames: [box]\n")
    return str(folder / "data.yaml")


class Logged(PrunedTrainer):
    """Logs the losses under the recipe's wrapper."""

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


def train(folder, **options):
    still = dict.fromkeys(
        ("mosaic", "hsv_h", "hsv_s", "hsv_v", "translate", "scale", "fliplr", "erasing"), 0.0
    )
    Logged.log = Log()
    overrides = {
        "model": "yolo11n.yaml", "data": make_data(folder / "data"), "epochs": EPOCHS, "batch": BATCH,
        "imgsz": 32, "device": "cpu", "workers": 0, "val": False, "plots": False, "pretrained": False,
        "optimizer": "SGD", "project": str(folder), "name": "run", "amp": False, "nbs": BATCH,
        "verbose": False, **still, **options,
    }
    trainer = Logged(overrides=overrides)
    trainer.train()
    return trainer


def test_a_detector_is_trained_on_the_samples_of_each_epoch(tmp_path):
    trainer = train(tmp_path)
    judge(trainer.log.steps, trainer.handler.scores)


def test_windows_of_several_batches(tmp_path):
    trainer = train(tmp_path, nbs=3 * BATCH)
    judge(trainer.log.steps, trainer.handler.scores)
