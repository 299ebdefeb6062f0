"""FlexMatch: a small text model learns from a few labelled reviews, on pruned labelled and unlabelled texts.

    python -m recipes.semisupervised.flexmatch --method bls-infobatch --seed 0 --out runs/flexmatch

IMDB's reviews, good or bad; `--set dataset=FOLDER` takes train.csv and test.csv of label and text, as Yelp's are. Words have a
vocabulary of their own, made of the training texts. The strong change leaves out words; FlexMatch's paper translates the text
to another language and back. The loop, with the lines that prune, is in recipes/semisupervised/loop.py.
"""

import pathlib

import torch
from torch import nn

from recipes.kit import run, texts
from recipes.semisupervised import loop

PRESETS = {
    "quick": {
        "dataset": "reviews", "limit": 4000, "test_limit": 1000, "labels_per_class": 240, "vocabulary": 4000, "length": 128,
        "epochs": 10, "passes": 4, "prune": 0.3, "batch_size": 64, "labelled_batch_size": 32, "width": 48, "threshold": 0.9,
        "unlabelled_weight": 1.0, "learning_rate": 3e-3, "weight_decay": 0.05, "workers": 0,
    },
    "full": {
        "dataset": "reviews", "limit": 0, "test_limit": 0, "labels_per_class": 250, "vocabulary": 20000, "length": 256,
        "epochs": 100, "passes": 39, "prune": 0.3, "batch_size": 64, "labelled_batch_size": 32, "width": 256, "threshold": 0.95,
        "unlabelled_weight": 1.0, "learning_rate": 1e-3, "weight_decay": 0.05, "workers": 4,
    },
}


class FlexibleRule(loop.Rule):
    """The threshold of a class is lower while few samples are predicted as it with confidence: classes that are hard to learn."""

    def __init__(self, threshold, num_classes, num_samples):
        super().__init__(threshold)
        self.num_classes = num_classes
        self.register_buffer("predicted", torch.full((num_samples,), num_classes))  # last confident class; none yet

    def forward(self, probabilities, indices):
        confidence, classes = probabilities.max(1)
        counts = self.predicted.bincount(minlength=self.num_classes + 1)
        share = counts[:-1] / counts.max()  # as long as most have none, these are compared with
        trusted = confidence >= self.threshold * (share / (2 - share))[classes]
        if self.training:
            confident = confidence >= self.threshold
            self.predicted[torch.as_tensor(indices)[confident]] = classes[confident]
        return trusted


class Reader(nn.Module):
    """Words to vectors, a convolution over three of them, and the strongest and mean answers of each channel."""

    def __init__(self, vocabulary, width, num_classes):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width, padding_idx=texts.EMPTY)
        nn.init.normal_(self.embed.weight, std=0.1)
        self.convolve = nn.Conv1d(width, width, 3, padding=1)
        self.classify = nn.Sequential(nn.Dropout(0.3), nn.Linear(3 * width, num_classes))

    def forward(self, tokens):
        there = (tokens != texts.EMPTY).float()[:, None]
        vectors = self.embed(tokens).transpose(1, 2)
        answers = self.convolve(vectors).relu() * there
        length = there.sum(2).clamp(min=1)
        return self.classify(torch.cat([answers.amax(2), answers.sum(2) / length, vectors.sum(2) / length], 1))


def without_words(share):
    """Changes a batch of texts: that share of their words becomes unknown."""
    return lambda tokens: torch.where((torch.rand(tokens.shape) < share) & (tokens != texts.EMPTY), texts.UNKNOWN, tokens)


def load(args):
    """Training and test texts."""
    if args.dataset == "reviews":
        return texts.reviews("train", args.limit, args.data), texts.reviews("test", args.test_limit, args.data)
    folder = pathlib.Path(args.dataset)
    if not (folder / "train.csv").exists():
        raise SystemExit(f"dataset must be reviews, or a folder with train.csv and test.csv, got {args.dataset}")
    return texts.read_csv(folder / "train.csv", args.limit), texts.read_csv(folder / "test.csv", args.test_limit)


def main(argv=None):
    args = run.arguments(__doc__, PRESETS, argv)
    train_texts, test_texts = load(args)
    numbers = texts.vocabulary(train_texts, args.vocabulary)
    unlabelled_set, test_set = (texts.Texts(part, numbers, args.length) for part in (train_texts, test_texts))
    num_classes = int(unlabelled_set.labels.max()) + 1
    chosen = loop.split(unlabelled_set.labels, args.labels_per_class, num_classes)
    sets = (torch.utils.data.Subset(unlabelled_set, chosen), unlabelled_set, test_set)
    torch.manual_seed(args.seed)
    model = Reader(texts.UNKNOWN + 1 + len(numbers), args.width, num_classes)
    rule = FlexibleRule(args.threshold, num_classes, len(unlabelled_set))
    return loop.train(args, args.dataset, sets, model, rule, (without_words(0.05), without_words(0.4)), "FlexMatch, text model")


if __name__ == "__main__":
    main()
