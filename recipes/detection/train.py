"""Object detection on pruned data: YOLOv5n by ultralytics' own trainer.

    python -m recipes.detection.train --method bls-infobatch --seed 0 --out runs/yolo
    python -m recipes.detection.train --set train=coco/train.json --set val=coco/val.json --out runs/coco

Data: composed scenes (recipes/kit/scenes.py), whose validation part has other cut-outs than the training part, or two annotation
files in COCO's format with a folder `images` beside each. Measured by pycocotools. The lines that prune are marked with #>.
"""

import pathlib

import tamis

from recipes.kit import assets, coco, run, scenes, yolo
from ultralytics.models.yolo.detect import DetectionTrainer  # after recipes.kit.yolo, which gives it settings of its own

PRESETS = {
    "quick": {
        "train": "", "val": "", "limit": 500, "val_limit": 150, "size": 64, "epochs": 10, "prune": 0.3, "batch_size": 16,
        "learning_rate": 2e-3, "workers": 0,
    },
    "full": {
        "train": "", "val": "", "limit": 20000, "val_limit": 1000, "size": 256, "epochs": 100, "prune": 0.3, "batch_size": 32,
        "learning_rate": 1e-3, "workers": 4,
    },
}
METRICS = [
    {"name": "mAP.5", "unit": "fraction", "direction": "higher", "headline": True},
    {"name": "mAP.5:.95", "unit": "fraction", "direction": "higher"},
    {"name": "loss", "direction": "lower"},
]


def load(args, masks=False):
    """The checked annotations of both parts, and the name of the data."""
    if args.train:
        files, name = (pathlib.Path(args.train), pathlib.Path(args.val)), pathlib.Path(args.train).stem
    else:
        folder = (args.data or assets.ROOT / "data") / "scenes"
        parts = (("train", args.limit), ("val", args.val_limit))
        files = [
            scenes.write(scenes.Scenes(part, count, args.size, data=args.data), folder / f"{part}-{count}-{args.size}")
            for part, count in parts
        ]
        name = "scenes (composed)"
    train, val = (coco.read(file, masks=masks) for file in files)
    return train, val, name


def overrides(args, config, data):
    """Settings of ultralytics. Mosaics and mixtures are off: a loss then belongs to one picture of the data set."""
    still = dict.fromkeys(("mosaic", "mixup", "copy_paste", "erasing"), 0.0)
    return {
        "model": config, "data": str(data), "epochs": args.epochs, "batch": args.batch_size, "nbs": args.batch_size,
        "imgsz": args.size, "device": "cpu", "workers": args.workers, "optimizer": "AdamW", "lr0": args.learning_rate,
        "warmup_epochs": 1.0, "cos_lr": True, "seed": args.seed, "val": False, "plots": False, "amp": False, "verbose": False,
        "pretrained": False, "exist_ok": True,
        "project": str(args.out.resolve().parent), "name": args.out.name, **still,
    }


class Unmeasured:
    """Leaves out ultralytics' own validation: pycocotools measures."""

    def validate(self):
        return {}, 0.0

    def final_eval(self):
        pass


def train(trainer_class, args, settings, name, model, metrics, evaluate):
    """Runs the trainer and writes the folder of the run. `evaluate(model)`: the metrics after the last epoch."""
    last = args.out / "weights" / "last.pt"
    if last.exists() and (args.out / run.CHECKPOINT).exists():
        if run.is_finished(args.out):
            return None
        settings["resume"] = str(last)
    trainer = trainer_class(overrides=settings)

    def start(trainer):
        trainer.folder = run.Folder(args, trainer.handler, data=name, model=model, metrics=metrics)
        trainer.folder.follow(trainer.start_epoch)

    def end_epoch(trainer):
        values = {"loss": sum(map(float, trainer.tloss.values()))}
        if trainer.epoch == trainer.epochs - 1:
            trainer.folder.end_epoch(lambda: values | evaluate(trainer.ema.ema))
            if args.record:
                trainer.folder.record_true_losses(yolo.sample_losses(trainer))
        else:
            trainer.folder.end_epoch(lambda: values)

    trainer.add_callback("on_train_start", start)
    trainer.add_callback("on_train_epoch_start", lambda trainer: trainer.folder.start_epoch())
    # Before the model is saved: after a crash between the two, the epoch is trained and its line written again.
    trainer.add_callback("on_train_epoch_end", end_epoch)
    trainer.train()
    return trainer


def main(argv=None):
    args = run.arguments(__doc__, PRESETS, argv)
    train_part, val_part, name = load(args)
    data = yolo.write_folder(args.out / "data", train=train_part, val=val_part, masks=False)

    class Trainer(yolo.Pruned, Unmeasured, DetectionTrainer):  #> Pruned in front of the trainer
        watches = args.watches  #> methods ogs-...

        def prune(self, dataset):  #>
            return tamis.prune(dataset, args.policy, epochs=self.epochs, options=args.options, **args.score)  #>

    def evaluate(model):
        found = list(yolo.detections(model, "yolov5n.yaml", val_part, args.size, masks=False))
        return coco.mean_average_precision(val_part.path, found, "bbox")

    return train(Trainer, args, overrides(args, "yolov5n.yaml", data), name, "yolov5n", METRICS, evaluate)


if __name__ == "__main__":
    main()
