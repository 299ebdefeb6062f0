"""Dash: a small convolutional network learns spoken syllables from a few labels, on pruned labelled and unlabelled clips.

    python -m recipes.semisupervised.dash --method bls-infobatch --seed 0 --out runs/dash

Clips of gcin-voice, to be told apart by their finals; `--set dataset=FOLDER` takes ESC-50 (meta/esc50.csv and audio). Both
speakers are in both parts. The loop, with the lines that prune, is in recipes/semisupervised/loop.py.
"""

import pathlib

import torch
from torch import nn

from recipes.kit import run, sounds
from recipes.semisupervised import loop

PRESETS = {
    "quick": {
        "dataset": "syllables", "labels_per_class": 10, "epochs": 10, "passes": 4, "prune": 0.3, "batch_size": 48,
        "labelled_batch_size": 36, "width": 16, "factor": 1.0001, "decay": 1.27, "unlabelled_weight": 1.0,
        "learning_rate": 4e-3, "weight_decay": 0.02, "workers": 0,
    },
    "full": {
        "dataset": "syllables", "labels_per_class": 10, "epochs": 200, "passes": 4, "prune": 0.3, "batch_size": 48,
        "labelled_batch_size": 36, "width": 64, "factor": 1.0001, "decay": 1.27, "unlabelled_weight": 1.0,
        "learning_rate": 1e-3, "weight_decay": 0.02, "workers": 4,
    },
}


class DashRule(loop.Rule):
    """Trusts a prediction whose own loss is at most the labelled loss of the first epoch, which shrinks with every epoch.

    The first epoch is the warm-up: nothing is trusted.
    """

    def __init__(self, factor, decay, least=0.05):
        super().__init__(0.0)
        self.factor, self.decay, self.least = factor, decay, least
        self.register_buffer("level", torch.tensor(0.0))

    def forward(self, probabilities, indices):
        return -probabilities.max(1).values.log() <= self.level

    def end_epoch(self, labelled_loss):
        is_first = self.level == 0
        self.level.fill_(max(self.least, self.factor * labelled_loss if is_first else float(self.level) / self.decay))


class Listener(nn.Sequential):
    """Convolutions over bands and time."""

    def __init__(self, width, num_classes):
        layers, widths = [], [1, width, 2 * width, 4 * width]
        for inputs, outputs in zip(widths, widths[1:]):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]
        super().__init__(*layers, nn.AdaptiveAvgPool2d((5, 2)), nn.Flatten(), nn.Dropout(0.2), nn.Linear(40 * width, num_classes))


def weak(spectrograms):
    """Moves each clip by up to two frames and makes it a little louder or softer."""
    count, _, _, frames = spectrograms.shape
    places = (torch.arange(frames) + torch.randint(-2, 3, (count, 1))).clamp(0, frames - 1)
    moved = spectrograms.gather(3, places[:, None, None].expand(spectrograms.shape))
    return moved + 0.1 * torch.randn(count, 1, 1, 1)


def strong(spectrograms):
    """weak(), then noise, and up to a quarter of the bands and of the frames silent, as SpecAugment does."""
    changed = weak(spectrograms) + 0.3 * torch.randn_like(spectrograms)
    for dim in (2, 3):
        size = spectrograms.shape[dim]
        start, width = torch.rand(2, len(changed), 1)
        places = torch.arange(size) / size
        hidden = (places >= 0.8 * start) & (places < 0.8 * start + 0.25 * width)
        changed = changed.masked_fill(hidden[:, None, :, None] if dim == 2 else hidden[:, None, None], 0.0)
    return changed


def load(args):
    """Training and test clips."""
    if args.dataset == "syllables":
        return sounds.syllables("train", args.data), sounds.syllables("test", args.data)
    folder = pathlib.Path(args.dataset)
    if not (folder / "meta" / "esc50.csv").exists():
        raise SystemExit(f"dataset must be syllables, or a folder with ESC-50's meta/esc50.csv, got {args.dataset}")
    return sounds.esc50(folder, "train"), sounds.esc50(folder, "test")


def main(argv=None):
    args = run.arguments(__doc__, PRESETS, argv)
    unlabelled_set, test_set = load(args)
    chosen = loop.split(unlabelled_set.labels, args.labels_per_class, len(unlabelled_set.classes))
    sets = (torch.utils.data.Subset(unlabelled_set, chosen), unlabelled_set, test_set)
    torch.manual_seed(args.seed)
    model, rule = Listener(args.width, len(unlabelled_set.classes)), DashRule(args.factor, args.decay)
    return loop.train(args, args.dataset, sets, model, rule, (weak, strong), "Dash, convolutions over spectrograms")


if __name__ == "__main__":
    main()
