"""Trainers of ultralytics on a pruned data set.

In the recipes, not in the package tamis, because ultralytics is under the AGPL. Written for ultralytics 8.4.

    class PrunedTrainer(Pruned, DetectionTrainer):
        def prune(self, dataset):
            return tamis.prune(dataset, "bls-infobatch", epochs=self.epochs)

    YOLO("yolo11n.pt").train(trainer=PrunedTrainer, data="coco128.yaml", epochs=100)
"""

from __future__ import annotations

import copy
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import tamis
import torch
from tamis.loader import Loader

from .coco import Annotations, encode_mask

# Without these ultralytics writes into the home folder and reports how it is used.
os.environ.setdefault("YOLO_CONFIG_DIR", str(pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / "tamis-ultralytics"))
pathlib.Path(os.environ["YOLO_CONFIG_DIR"]).mkdir(parents=True, exist_ok=True)
os.environ.setdefault("YOLO_AUTOINSTALL", "false")

import cv2  # noqa: E402
from ultralytics import YOLO  # noqa: E402
from ultralytics.data.converter import merge_multi_segment  # noqa: E402
from ultralytics.nn.tasks import ClassificationModel, yaml_model_load  # noqa: E402, F401
from ultralytics.utils import SETTINGS  # noqa: E402
from ultralytics.utils.torch_utils import unwrap_model  # noqa: E402

SETTINGS.update({"sync": False})


class Reloadable(Loader):
    """The trainer asks for a reset when it turns mosaic off; our workers start with every epoch."""

    def reset(self) -> None:
        pass


class Pruned:
    """In front of DetectionTrainer or SegmentationTrainer: prunes the training set that the trainer builds.

    The loss of ultralytics is a vector: box, (mask,) class and distribution loss, each a mean over the batch times the batch size.
    Their sum divided by the batch size is the mean loss that tamis observes; the factor it returns goes on all parts.

    Attributes:
        handler: Of the run, once the trainer has made its loader.
        watches: Whether the head's outputs are watched, for methods ogs-.... The trainer calls the model's forward directly, so a
            hook on the whole model would see nothing.
    """

    handler: tamis.Handler
    watches = False

    def prune(self, dataset: Any) -> tamis.Handler:
        raise NotImplementedError("write prune(self, dataset): return tamis.prune(dataset, ...)")

    def get_dataloader(self, dataset_path: str, batch_size: int = 16, rank: int = 0, mode: str = "train") -> Any:
        if mode != "train":
            return super().get_dataloader(dataset_path, batch_size, rank, mode)
        dataset = self.build_dataset(dataset_path, mode, batch_size)
        self.handler = self.prune(dataset)
        self.add_callback("on_train_start", lambda trainer: trainer.wrap_loss())
        self.add_callback("on_train_epoch_start", lambda trainer: trainer.plan_epoch())
        self.add_callback("on_model_save", lambda trainer: trainer.save_handler())
        parts = self.handler.loader_options(batch_size, collate_fn=dataset.collate_fn)
        return Reloadable(**parts, num_workers=self.args.workers)

    def preprocess_batch(self, batch: dict[str, Any]) -> dict[str, Any]:
        self.ids = batch.pop("tamis_ids", None)
        return super().preprocess_batch(batch)

    def wrap_loss(self) -> None:
        """After the EMA was copied, which keeps the plain loss."""
        model = unwrap_model(self.model)
        plain = model.loss
        if self.watches:
            self.handler.watch(model.model[-1])

        def loss(batch: dict[str, Any], preds: Any = None) -> Any:
            parts, items = plain(batch, preds)
            if not torch.is_grad_enabled() or self.ids is None:
                return parts, items
            mean = parts.sum() / len(self.ids)
            return parts * self.handler.factor(mean, ids=self.ids), items

        model.loss = loss

    def plan_epoch(self) -> None:
        """Also where the trainer repeats an epoch after a NaN."""
        self.handler.set_epoch(self.epoch)

    def save_handler(self) -> None:
        torch.save(self.handler.state_dict(), self.wdir / "tamis.pt")

    def resume_training(self, ckpt: Any) -> None:
        super().resume_training(ckpt)
        if self.resume:
            self.handler.load_state_dict(torch.load(self.wdir / "tamis.pt"))


def write_folder(folder: pathlib.Path, *, train: Annotations, val: Annotations, masks: bool) -> pathlib.Path:
    """Lays out pictures (as links) and labels as ultralytics wants them. Returns data.yaml."""
    for part, given in (("train", train), ("val", val)):
        for kind in ("images", "labels"):
            (folder / kind / part).mkdir(parents=True, exist_ok=True)
        for picture in given.pictures:
            link = folder / "images" / part / picture.path.name
            if not link.is_symlink():
                link.symlink_to(picture.path.resolve())
            rows = []
            for annotation in picture.annotations:
                numbers = _polygon(annotation.mask) if masks else _centre(annotation.box)
                scaled = numbers.reshape(-1, 2) / [picture.width, picture.height]
                rows.append(" ".join([str(annotation.label), *(f"{v:.6f}" for v in scaled.clip(0, 1).ravel())]))
            (folder / "labels" / part / picture.path.name).with_suffix(".txt").write_text("".join(f"{row}\n" for row in rows))
    path = folder / "data.yaml"
    names = "".join(f"  {k}: {name}\n" for k, name in enumerate(train.classes))
    path.write_text(f"path: {folder.resolve()}\ntrain: images/train\nval: images/val\nnames:\n{names}")
    return path


def _centre(box: tuple[float, float, float, float]) -> np.ndarray:
    x, y, width, height = box
    return np.array([x + width / 2, y + height / 2, width, height])


def _polygon(mask: np.ndarray) -> np.ndarray:
    """The outline; parts that something in front has separated are joined by lines of no width."""
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    outlines = [contour.reshape(-1, 2) for contour in contours if len(contour) >= 3]
    if not outlines:  # a line of pixels
        rows, columns = np.nonzero(mask)
        low, high = [columns.min(), rows.min()], [columns.max() + 1, rows.max() + 1]
        return np.array([low, [high[0], low[1]], high, [low[0], high[1]]], float).ravel()
    if len(outlines) > 1:
        outlines = merge_multi_segment([outline.ravel().tolist() for outline in outlines])
    return np.concatenate(outlines).astype(float).ravel()


def detections(model: torch.nn.Module, config: str, annotations: Annotations, size: int, masks: bool) -> Iterator[dict[str, Any]]:
    """What the model finds in the pictures, as COCO's result files have it; with masks both kinds of results in each."""
    yolo = YOLO(config)
    yolo.model = copy.deepcopy(model).float().eval()
    pictures = {str(picture.path): picture for picture in annotations.pictures}
    results = yolo.predict(
        list(pictures), stream=True, imgsz=size, conf=0.001, iou=0.7, max_det=100, batch=32, device="cpu", verbose=False,
        save=False, retina_masks=masks,
    )
    for result in results:
        picture = pictures[result.path]
        for k, (left, top, right, bottom) in enumerate(result.boxes.xyxy.tolist()):
            found = {
                "image_id": picture.id,
                "category_id": annotations.category_ids[int(result.boxes.cls[k])],
                "score": float(result.boxes.conf[k]),
                "bbox": [left, top, right - left, bottom - top],
            }
            if masks:
                found["segmentation"] = encode_mask(result.masks.data[k].numpy() > 0.5)
            yield found


def sample_losses(trainer: Pruned) -> np.ndarray:
    """The loss of every training picture alone, without augmentation, for `tamis analyze`."""
    model = unwrap_model(trainer.model).eval()
    dataset = trainer.build_dataset(trainer.data["train"], mode="val", batch=1)
    place = {file: k for k, file in enumerate(trainer.train_loader.dataset.im_files)}
    losses = np.zeros(len(place), np.float32)
    with torch.no_grad():
        for k in range(len(dataset)):
            batch = dataset.collate_fn([dataset[k]])
            parts, _ = model.loss(trainer.preprocess_batch(batch))
            losses[place[batch["im_file"][0]]] = float(parts.sum())
    model.train()
    return losses
