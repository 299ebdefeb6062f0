"""Image classification on pruned data: ResNet-18 and -50, EfficientNet, ViT, Swin (timm), Vim, YOLOv5n-cls (ultralytics).

    python -m recipes.classification.train --method bls-infobatch --seed 0 --out runs/r18
    python -m recipes.classification.train --set model=vim --set dataset=quickdraw --out runs/vim

Data sets: cifar10, mnist, quickdraw; a folder with CIFAR-100's train.bin and test.bin; a folder with train/CLASS/*.jpg and
val/CLASS/*.jpg, as ImageNet has it. The lines that prune are marked with #>.
"""

import math
import pathlib

import tamis
import torch
import torch.nn.functional as F

from recipes.classification import models
from recipes.kit import augment, pictures, run

PRESETS = {
    "quick": {
        "model": "resnet18", "dataset": "cifar10", "size": 32, "small": 1, "limit": 3000, "test_limit": 2000, "epochs": 10,
        "prune": 0.3, "batch_size": 64, "learning_rate": 2e-3, "weight_decay": 0.02, "workers": 0,
    },
    "full": {
        "model": "resnet18", "dataset": "cifar10", "size": 32, "small": 0, "limit": 0, "test_limit": 0, "epochs": 200,
        "prune": 0.3, "batch_size": 128, "learning_rate": 1e-3, "weight_decay": 0.05, "workers": 4,
    },
}
METRICS = [
    {"name": "acc@1", "unit": "fraction", "direction": "higher", "headline": True},
    {"name": "acc@5", "unit": "fraction", "direction": "higher"},
]


def load(args):
    """Training and test set."""
    readers = {"cifar10": pictures.cifar10, "mnist": pictures.mnist, "quickdraw": pictures.quickdraw}
    if args.dataset in readers:
        read = readers[args.dataset]
        return read("train", args.limit, args.data), read("test", args.test_limit, args.data)
    folder = pathlib.Path(args.dataset)
    if (folder / "train.bin").exists():
        return pictures.cifar100(folder, "train", args.limit), pictures.cifar100(folder, "test", args.test_limit)
    if not folder.is_dir():
        raise SystemExit(f"dataset must be {', '.join(readers)}, or a folder of pictures, got {args.dataset}")
    return pictures.ImageFolder(folder / "train", args.size), pictures.ImageFolder(folder / "val", args.size)


@torch.no_grad()
def evaluate(model, dataset):
    model.eval()
    correct = torch.zeros(2)
    for images, labels in torch.utils.data.DataLoader(dataset, 250):
        best = model(images).topk(5).indices == labels[:, None]
        correct += torch.stack([best[:, 0].sum(), best.sum()])
    model.train()
    top1, top5 = (correct / len(dataset)).tolist()
    return {"acc@1": top1, "acc@5": top5}


@torch.no_grad()
def sample_losses(model, dataset):
    """The loss of every sample alone, without augmentation."""
    model.eval()
    batches = torch.utils.data.DataLoader(dataset, 250)
    return torch.cat([F.cross_entropy(model(images), labels, reduction="none") for images, labels in batches])


def main(argv=None):
    args = run.arguments(__doc__, PRESETS, argv)
    train_set, test_set = load(args)
    torch.manual_seed(args.seed)
    channels, size = train_set[0][0].shape[:2]
    model = models.make(args.model, len(train_set.classes), channels, size, bool(args.small))
    optimizer = torch.optim.AdamW(model.parameters(), args.learning_rate, weight_decay=args.weight_decay)

    handler = tamis.prune(train_set, args.policy, epochs=args.epochs, options=args.options, **args.score)  #>
    lone = args.model == "yolov5n-cls"  #> normalises over the batch alone, and a pruned epoch may end in a batch of one
    loader = handler.loader(args.batch_size, drop_last=lone, num_workers=args.workers)  #> instead of a shuffling DataLoader
    if args.watches:  #> methods ogs-...
        handler.watch(model)  #>
    schedule = tamis.lr_by_progress(  #> follows the samples; a count of steps would end too early
        lambda t: min(1.0, 10 * t + 0.02) * 0.5 * (1 + math.cos(math.pi * t)), handler, optimizer=optimizer
    )

    folder = run.Folder(args, handler, data=args.dataset, model=args.model, metrics=METRICS)
    for _ in folder.epochs(model=model, optimizer=optimizer):
        model.train()
        for images, labels in loader:
            loss = F.cross_entropy(model(augment.weak(images, mirror=args.dataset not in ("mnist", "quickdraw"))), labels)
            loss = handler.update(loss)  #>
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        folder.end_epoch(lambda: evaluate(model, test_set))
    if args.record:
        folder.record_true_losses(sample_losses(model, train_set))
    return folder


if __name__ == "__main__":
    main()
