"""A detection trainer of ultralytics on a pruned data set.

Outside the package, because ultralytics is under the AGPL. Written for ultralytics 8.4.

    YOLO("yolo11n.pt").train(trainer=PrunedTrainer, data="coco128.yaml", epochs=100)
"""

import tamis
import torch
from tamis.loader import Loader
from ultralytics.models.yolo.detect import DetectionTrainer
from ultralytics.utils.torch_utils import unwrap_model

METHOD = "bls-infobatch"


class Reloadable(Loader):
    """The trainer asks for a reset when it turns mosaic off; our workers start with every epoch."""

    def reset(self):
        pass


class PrunedTrainer(DetectionTrainer):
    """Weighs the whole loss of a batch: box, class and distribution losses."""

    def get_dataloader(self, dataset_path, batch_size=16, rank=0, mode="train"):
        if mode != "train":
            return super().get_dataloader(dataset_path, batch_size, rank, mode)
        dataset = self.build_dataset(dataset_path, mode, batch_size)
        self.handler = tamis.prune(dataset, METHOD, epochs=self.epochs)
        self.add_callback("on_train_start", lambda trainer: trainer.wrap_loss())
        self.add_callback("on_train_epoch_start", lambda trainer: trainer.plan_epoch())
        self.add_callback("on_model_save", lambda trainer: trainer.save_handler())
        parts = self.handler.loader_options(batch_size, collate_fn=dataset.collate_fn)
        return Reloadable(**parts, num_workers=self.args.workers)

    def preprocess_batch(self, batch):
        self.ids = batch.pop("tamis_ids", None)
        return super().preprocess_batch(batch)

    def wrap_loss(self):
        """After the EMA was copied, which keeps the plain loss."""
        model = unwrap_model(self.model)
        plain = model.loss

        def loss(batch, preds=None):
            parts, items = plain(batch, preds)  # box, class, distribution: each times the batch size
            if not torch.is_grad_enabled() or self.ids is None:
                return parts, items
            mean = parts.detach().sum() / len(self.ids)
            return parts * self.handler.factor(mean, ids=self.ids), items

        model.loss = loss

    def plan_epoch(self):
        """Also where the trainer repeats an epoch after a NaN."""
        self.handler.set_epoch(self.epoch)

    def save_handler(self):
        torch.save(self.handler.state_dict(), self.wdir / "tamis.pt")

    def resume_training(self, ckpt):
        super().resume_training(ckpt)
        if self.resume:
            self.handler.load_state_dict(torch.load(self.wdir / "tamis.pt"))
