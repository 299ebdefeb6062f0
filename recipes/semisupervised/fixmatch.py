"""FixMatch: a Wide ResNet learns CIFAR-10 from a few labels, on pruned labelled and unlabelled pictures.

    python -m recipes.semisupervised.fixmatch --method bls-infobatch --seed 0 --out runs/fixmatch

The full preset is WRN-28-2 with 25 labels a class; the quick one is shallower, on a part of the data. The loop, with the lines
that prune, is in recipes/semisupervised/loop.py.
"""

import torch
from torch import nn

from recipes.kit import augment, pictures, run
from recipes.semisupervised import loop

PRESETS = {
    "quick": {
        "limit": 2000, "test_limit": 1000, "labels_per_class": 40, "epochs": 10, "passes": 4, "prune": 0.3, "batch_size": 56,
        "labelled_batch_size": 48, "depth": 10, "width": 1, "threshold": 0.8, "unlabelled_weight": 1.0, "learning_rate": 4e-3,
        "weight_decay": 0.02, "workers": 0,
    },
    "full": {
        "limit": 0, "test_limit": 0, "labels_per_class": 25, "epochs": 1000, "passes": 28, "prune": 0.3, "batch_size": 448,
        "labelled_batch_size": 64, "depth": 28, "width": 2, "threshold": 0.95, "unlabelled_weight": 1.0, "learning_rate": 1e-3,
        "weight_decay": 0.02, "workers": 4,
    },
}


class Block(nn.Module):
    """Two convolutions after normalisation, and the way around them."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.before = nn.Sequential(nn.BatchNorm2d(inputs), nn.LeakyReLU(0.1))
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.LeakyReLU(0.1),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
        )
        self.around = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        x = self.before(x)
        return self.body(x) + self.around(x)


def wide_resnet(depth, width, num_classes):
    """WRN-depth-width: three groups of (depth - 4) / 6 blocks, with 16, 32 and 64 times width channels."""
    count, rest = divmod(depth - 4, 6)
    if rest or count < 1:
        raise ValueError(f"wide_resnet: depth must be 6 n + 4, such as 10, 16 or 28, got {depth}")
    widths = [16, 16 * width, 32 * width, 64 * width]
    blocks = [
        Block(widths[group] if k == 0 else widths[group + 1], widths[group + 1], 2 if k == 0 and group > 0 else 1)
        for group in range(3)
        for k in range(count)
    ]
    last = widths[-1]
    ends = [nn.BatchNorm2d(last), nn.LeakyReLU(0.1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(last, num_classes)]
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), *blocks, *ends)


def main(argv=None):
    args = run.arguments(__doc__, PRESETS, argv)
    unlabelled_set = pictures.cifar10("train", args.limit, args.data)
    chosen = loop.split(unlabelled_set.labels, args.labels_per_class, len(unlabelled_set.classes))
    sets = (torch.utils.data.Subset(unlabelled_set, chosen), unlabelled_set, pictures.cifar10("test", args.test_limit, args.data))
    torch.manual_seed(args.seed)
    model, rule = wide_resnet(args.depth, args.width, len(unlabelled_set.classes)), loop.Rule(args.threshold)
    name = f"FixMatch, WRN-{args.depth}-{args.width}"
    return loop.train(args, "cifar10", sets, model, rule, (augment.weak, augment.strong), name)


if __name__ == "__main__":
    main()
