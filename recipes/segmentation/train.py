"""Instance segmentation on pruned data: YOLOv5n with ultralytics' segmentation head, by ultralytics' own trainer.

    python -m recipes.segmentation.train --method bls-infobatch --seed 0 --out runs/yolo-seg

Data as for recipes/detection, with masks. Measured by pycocotools: mean average precision of masks and of boxes. The lines that
prune are marked with #>.
"""

import tamis
import yaml

from recipes.detection.train import PRESETS, Unmeasured, load, overrides, train
from recipes.kit import coco, run, yolo
from ultralytics.models.yolo.segment import SegmentationTrainer  # after recipes.kit.yolo, which gives it settings of its own

METRICS = [
    {"name": "mask_mAP.5", "unit": "fraction", "direction": "higher", "headline": True},
    {"name": "mask_mAP.5:.95", "unit": "fraction", "direction": "higher"},
    {"name": "box_mAP.5", "unit": "fraction", "direction": "higher"},
    {"name": "box_mAP.5:.95", "unit": "fraction", "direction": "higher"},
    {"name": "loss", "direction": "lower"},
]


def write_model(folder):
    """YOLOv5n with a head for masks, of which ultralytics has the parts, but no file."""
    config = yolo.yaml_model_load("yolov5n.yaml")
    inputs = config["head"][-1][0]
    config["head"][-1] = [inputs, 1, "Segment", ["nc", 32, 256]]
    path = folder / "yolov5n-seg.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return str(path)


def main(argv=None):
    args = run.arguments(__doc__, PRESETS, argv)
    train_part, val_part, name = load(args, masks=True)
    data = yolo.write_folder(args.out / "data", train=train_part, val=val_part, masks=True)
    config = write_model(args.out)

    class Trainer(yolo.Pruned, Unmeasured, SegmentationTrainer):  #> Pruned in front of the trainer
        watches = args.watches  #> methods ogs-...

        def prune(self, dataset):  #>
            return tamis.prune(dataset, args.policy, epochs=self.epochs, options=args.options, **args.score)  #>

    def evaluate(model):
        found = list(yolo.detections(model, config, val_part, args.size, masks=True))
        values = {}
        for kind, word in (("segm", "mask"), ("bbox", "box")):
            measured = coco.mean_average_precision(val_part.path, found, kind)
            values |= {f"{word}_{metric}": value for metric, value in measured.items()}
        return values

    return train(Trainer, args, overrides(args, config, data), name, "yolov5n-seg", METRICS, evaluate)


if __name__ == "__main__":
    main()
