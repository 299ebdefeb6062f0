#!/usr/bin/env python3
"""What the gradients of a detector's outputs say about each image, by several rules.

A small YOLO is trained on scenes of one to six pictures of clothes (Fashion-MNIST) pasted on a dark ground. In the last epoch
the gradients of the head's outputs, boxes and scores, are read in every step, and rules that make one number per image of them are
compared (Spearman) with

- same pass: the loss of the image's part of the outputs by itself, in the same forward pass;
- at the end: the loss of the image alone, when training is over, with the running statistics of the batch norms.

The loss of a batch is divided by the sum of the target scores of all its images: an image's part of it grows with its objects, the
loss of the image by itself does not.

Needs ultralytics (AGPL): use .venv-frameworks, see `make test-frameworks`.

  .venv-frameworks/bin/python benchmarks/python/detection.py --json benchmarks/results/detection.json
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
from importlib.metadata import version

import fidelity
import results

SIZE = 96
PARTS = ("boxes", "scores")


def scenes(args, seed):
    """Images [N, 3, SIZE, SIZE] in [0, 1], and of each its targets [objects, 5]: class, then x, y, width, height."""
    import numpy as np
    import torch

    random = np.random.default_rng(seed)
    pixels = fidelity.images(args.images, 6000).view(-1, 28, 28).numpy()
    labels = fidelity.idx_bytes(args.images, "train-labels-idx1-ubyte", 8)
    images, targets = np.zeros((args.scenes, SIZE, SIZE), np.float32), []
    for image in images:
        image += random.uniform(0, 0.3, (SIZE, SIZE))
        objects = []
        for place in random.choice(9, random.integers(1, 7), replace=False):  # a grid of 3 x 3 cells of 32 pixels
            index = int(random.integers(len(pixels)))
            cloth = pixels[index] * random.uniform(0.5, 1.0)
            ys, xs = np.nonzero(cloth > 0.05)
            top, left = (place // 3) * 32 + random.integers(0, 5), (place % 3) * 32 + random.integers(0, 5)
            cell = image[top : top + 28, left : left + 28]
            np.maximum(cell, cloth, out=cell)
            x0, x1, y0, y1 = xs.min() + left, xs.max() + left + 1, ys.min() + top, ys.max() + top + 1
            objects.append([labels[index], (x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0])
        found = torch.tensor(np.array(objects), dtype=torch.float32)
        found[:, 1:] /= SIZE
        targets.append(found)
    return torch.from_numpy(images)[:, None].expand(-1, 3, -1, -1), targets


def batch_of(targets, ids):
    import torch

    found = [targets[i] for i in ids]
    places = torch.cat([torch.full((len(one),), float(k)) for k, one in enumerate(found)])
    joined = torch.cat(found)
    return {"batch_idx": places, "cls": joined[:, :1], "bboxes": joined[:, 1:]}


def heads(outputs):
    """The dicts of boxes and scores: one, or two of a model with two heads."""
    outputs = outputs[1] if isinstance(outputs, tuple) else outputs
    return [outputs] if "boxes" in outputs else [outputs["one2many"], outputs["one2one"]]


def one_image(outputs, k):
    """The part of the outputs that belongs to image k."""
    if isinstance(outputs, dict):
        return {key: one_image(value, k) for key, value in outputs.items()}
    if isinstance(outputs, list):
        return [one_image(value, k) for value in outputs]
    return outputs[k : k + 1].detach()


def rules(gradients):
    """{rule: one number per image} of the gradients of (boxes, scores) of every head, each [images, channels, anchors]."""
    found = {}
    of_anchor = {part: [head[part].norm(dim=1) for head in gradients] for part in PARTS}  # [images, anchors]
    total = lambda parts, power: sum((norms**power).sum(1) for part in parts for norms in of_anchor[part])  # noqa: E731
    # Only anchors that were matched to an object have a gradient of their box.
    positives = sum((norms > 0).sum(1) for norms in of_anchor["boxes"]).clamp(min=1)
    found["norm of all (the score)"] = total(PARTS, 2).sqrt()
    found["norm of all, power 2"] = total(PARTS, 2)
    found["sum of the anchors' norms"] = total(PARTS, 1)
    found["sum of the anchors' norms / positive anchors"] = total(PARTS, 1) / positives
    found["norm of all / root of the positive anchors"] = (total(PARTS, 2) / positives).sqrt()
    for part in PARTS:
        found[f"{part}: sum of the anchors' norms / positive anchors"] = total([part], 1) / positives
        found[f"{part}: norm / root of the positive anchors"] = (total([part], 2) / positives).sqrt()
    found["1 / positive anchors"] = 1 / positives
    return found


def measure(args, name, seed):
    import torch
    from ultralytics.cfg import get_cfg
    from ultralytics.nn.tasks import DetectionModel

    torch.manual_seed(seed)
    images, targets = scenes(args, seed)
    model = DetectionModel(f"{name}.yaml", nc=10, verbose=False)
    model.args = get_cfg(overrides={"epochs": args.epochs})
    criterion = model.init_criterion()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, weight_decay=5e-4)
    same_pass, scores = torch.zeros(args.scenes), {}
    model.train()
    for epoch in range(args.epochs):
        optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - epoch / args.epochs)
        is_last = epoch == args.epochs - 1
        for ids in torch.randperm(args.scenes).split(args.batch):
            outputs = model(images[ids])
            watched = [head[part] for head in heads(outputs) for part in PARTS]
            loss = criterion(outputs, batch_of(targets, ids))[0].sum() / len(ids)
            optimizer.zero_grad()
            if is_last:
                for tensor in watched:
                    tensor.retain_grad()
            loss.backward()
            optimizer.step()
            if not is_last:
                continue
            gradients = [{part: head[part].grad for part in PARTS} for head in heads(outputs)]
            for rule, values in rules(gradients).items():
                scores.setdefault(rule, torch.zeros(args.scenes))[ids] = loss.detach() * values / values.mean()
            for k, i in enumerate(ids):
                same_pass[i] = criterion(one_image(outputs, k), batch_of(targets, [int(i)]))[0].sum()
    model.eval()
    with torch.no_grad():
        alone = [criterion(model(images[i : i + 1]), batch_of(targets, [i]))[0].sum() for i in range(args.scenes)]
    at_end = torch.stack(alone)
    counts = torch.tensor([float(len(one)) for one in targets])
    scores["the loss itself, same pass"] = same_pass
    columns = {"same pass": same_pass, "at the end": at_end, "number of objects": counts}
    print(f"{name}, seed {seed}: mean loss of an image {at_end.mean():.2f}", flush=True)
    return [{"model": name, "seed": seed, "rule": rule, "with": column,
             "spearman": fidelity.spearman(values.numpy(), with_.numpy())}
            for rule, values in scores.items() for column, with_ in columns.items()]


def table(result):
    rows = result["rows"]
    columns = list(dict.fromkeys((row["model"], row["with"]) for row in rows))
    lines = ["| rule | " + " | ".join(f"{model}, {column}" for model, column in columns) + " |",
             "|---|" + "--:|" * len(columns)]
    for rule in dict.fromkeys(row["rule"] for row in rows):
        cells = []
        for column in columns:
            values = [row["spearman"] for row in rows if row["rule"] == rule and (row["model"], row["with"]) == column]
            cells.append(f"{statistics.mean(values):.2f} [{min(values):.2f}, {max(values):.2f}]")
        lines.append(f"| {rule} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", default=fidelity.IMAGES)
    parser.add_argument("--models", nargs="+", default=["yolo11n", "yolo26n"])
    parser.add_argument("--scenes", type=int, default=192)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--json", type=pathlib.Path, help="file for the result")
    args = parser.parse_args()
    # Settings of its own, so that nothing is written into the home folder or sent anywhere.
    os.environ["YOLO_CONFIG_DIR"] = tempfile.mkdtemp()

    import torch
    from ultralytics.utils import SETTINGS

    SETTINGS.update({"sync": False})
    torch.set_num_threads(1)
    settings = {key: getattr(args, key) for key in ("scenes", "epochs", "batch", "learning_rate", "seeds")}
    result = results.header() | {"versions": {"torch": torch.__version__, "ultralytics": version("ultralytics")},
                                 "settings": settings}
    result["rows"] = [row for name in args.models for seed in args.seeds for row in measure(args, name, seed)]
    print(table(result))
    if args.json:
        results.write(args.json, result)


if __name__ == "__main__":
    sys.exit(main())
