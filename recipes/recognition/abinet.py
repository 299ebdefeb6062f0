"""Reading words in pictures, as ABINet does: a vision model, a language model that corrects it, and that again.

    python -m recipes.recognition.abinet --method bls-infobatch --seed 0 --out runs/abinet
    python -m recipes.recognition.abinet --set test_words=FOLDER --out runs/abinet      # tested on IIIT5K's folder

Trained on words rendered in hundreds of fonts; words and fonts of the test part are unseen. Case does not count. The loss is a sum
of what vision, language and both together say in each round, over words of different lengths: one number for a batch. As ABINet
does, it starts from a reader that was trained before, on `pretrain` other pictures (0: from scratch), once for all runs.
samples.png in the folder shows words of the test part. The lines that prune are marked with #>.
"""

import hashlib
import math
import pathlib

import tamis
import torch
import torch.nn.functional as F
from torch import nn

from recipes.kit import assets, grids, lettering, run

PRESETS = {
    "quick": {
        "pretrain": 12_000, "pretrain_epochs": 6, "limit": 3000, "longest": 4, "test_limit": 1000, "test_words": "", "epochs": 10,
        "prune": 0.3, "batch_size": 64, "learning_rate": 1e-3, "width": 64, "rounds": 2, "workers": 0,
    },
    "full": {
        "pretrain": 0, "pretrain_epochs": 0, "limit": 500_000, "longest": 12, "test_limit": 5000, "test_words": "", "epochs": 10,
        "prune": 0.3, "batch_size": 384, "learning_rate": 1e-3, "width": 512, "rounds": 3, "workers": 4,
    },
}
METRICS = [
    {"name": "word_accuracy", "unit": "fraction", "direction": "higher", "headline": True},
    {"name": "word_accuracy_of_vision_alone", "unit": "fraction", "direction": "higher"},
    {"name": "character_accuracy", "unit": "fraction", "direction": "higher"},
]
CLASSES = len(lettering.ALPHABET) + 1
PLACES = lettering.LONGEST + 1
VERSION = 1  # of the reader that runs start from


def encoder(width):
    return nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True)


class Vision(nn.Module):
    """Convolutions down to a row of columns, a transformer over them, and one question for each place of the word.

    Words fill the width: where a place is depends on how many there are. So the whole picture has a say in the questions.
    """

    def __init__(self, width):
        super().__init__()
        def convolve(inputs, outputs, size, **options):
            return [nn.Conv2d(inputs, outputs, size, bias=False, **options), nn.BatchNorm2d(outputs), nn.ReLU()]

        body = nn.Sequential(
            *convolve(1, width // 4, 5, stride=2, padding=2),
            *convolve(width // 4, width // 2, 3, padding=1), nn.MaxPool2d(2),
            *convolve(width // 2, width, 3, padding=1), nn.MaxPool2d((2, 1)),
            *convolve(width, width, (lettering.HEIGHT // 8, 3), padding=(0, 1)),
        )
        self.body = body.to(memory_format=torch.channels_last)  # faster on a CPU
        self.where = nn.Parameter(torch.randn(lettering.WIDTH // 4, width) * 0.1)
        self.mix = encoder(width)
        self.questions = nn.Linear(2 * width, PLACES * width)
        nn.init.normal_(self.questions.bias, std=0.5)
        self.look = nn.MultiheadAttention(width, 4, batch_first=True)

    def forward(self, images):
        columns = self.mix(self.body(images).flatten(2).transpose(1, 2) + self.where)
        whole = torch.cat([columns.mean(1), columns.amax(1)], 1)
        return self.look(self.questions(whole).unflatten(1, (PLACES, -1)), columns, columns, need_weights=False)[0]


class Language(nn.Module):
    """Says what stands at each place from the characters at all other places (ABINet's bidirectional cloze network)."""

    def __init__(self, width):
        super().__init__()
        self.embed = nn.Linear(CLASSES, width, bias=False)
        self.where = nn.Parameter(torch.randn(PLACES, width) * 0.5)
        self.look = nn.MultiheadAttention(width, 4, batch_first=True)
        self.think = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.register_buffer("itself", torch.eye(PLACES, dtype=torch.bool))

    def forward(self, probabilities):
        keys = self.embed(probabilities) + self.where
        queries = self.where.expand(len(keys), -1, -1)
        seen = self.look(queries, keys, keys, attn_mask=self.itself, need_weights=False)[0]
        return seen + self.think(seen)


class Reader(nn.Module):
    """forward: logits [N, PLACES, CLASSES] of vision, and of language and both in each round."""

    def __init__(self, width, rounds):
        super().__init__()
        self.rounds = rounds
        self.vision, self.language = Vision(width), Language(width)
        self.heads = nn.ModuleDict({name: nn.Linear(width, CLASSES) for name in ("vision", "language", "both")})
        self.gate = nn.Linear(2 * width, width)

    def forward(self, images):
        seen = self.vision(images)
        found = [self.heads["vision"](seen)]
        for _ in range(self.rounds):
            # As in ABINet, the correction does not train what it corrects.
            said = self.language(found[-1].softmax(2).detach())
            share = self.gate(torch.cat([seen, said], 2)).sigmoid()
            found += [self.heads["language"](said), self.heads["both"](share * seen + (1 - share) * said)]
        return found


def losses(outputs, targets):
    """Of each word: cross-entropies of vision, language and both, the latter two as means over the rounds."""
    def loss(logits):
        each = F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=lettering.IGNORED, reduction="none")
        return each.sum(1) / (targets != lettering.IGNORED).sum(1)

    rounds = (len(outputs) - 1) // 2
    return loss(outputs[0]) + sum(map(loss, outputs[1:])) / rounds


def pretrained(args):
    """The weights to start from, trained now or before: a function of the settings, whatever the run's seed and method."""
    key = [VERSION, args.pretrain, args.pretrain_epochs, args.longest, args.width, args.rounds, lettering.VERSION]
    key += [assets.ASSETS[name].digest for name in ("fonts", "words")]
    kept = (args.data or assets.ROOT / "data") / f"reader-{hashlib.sha256(repr(key).encode()).hexdigest()[:12]}.pt"
    if not kept.exists():
        words = lettering.rendered("train", args.pretrain, args.longest, seed=1, data=args.data)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = Reader(args.width, args.rounds)
            optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01)
            steps = args.pretrain_epochs * -(-len(words) // 64)
            schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps, pct_start=0.1)
            for _ in range(args.pretrain_epochs):
                for images, targets in torch.utils.data.DataLoader(words, 64, shuffle=True):
                    optimizer.zero_grad()
                    losses(model(images), targets).mean().backward()
                    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                    optimizer.step()
                    schedule.step()
        with assets.written(kept) as file:
            torch.save(model.state_dict(), file)
    return torch.load(kept, weights_only=True)


@torch.no_grad()
def sample_losses(model, dataset):
    """The loss of every sample alone."""
    model.eval()
    return torch.cat([losses(model(images), targets) for images, targets in torch.utils.data.DataLoader(dataset, 250)])


@torch.no_grad()
def evaluate(model, dataset):
    model.eval()
    read, seen, right, count = [], [], 0, 0
    for images, targets in torch.utils.data.DataLoader(dataset, 250):
        outputs = model(images)
        read += lettering.decode(outputs[-1].argmax(2))
        seen += lettering.decode(outputs[0].argmax(2))
        there = targets > 0
        right, count = right + int((outputs[-1].argmax(2) == targets)[there].sum()), count + int(there.sum())
    model.train()
    whole, alone = (sum(a == b for a, b in zip(words, dataset.texts)) / len(dataset) for words in (read, seen))
    return {"word_accuracy": whole, "word_accuracy_of_vision_alone": alone, "character_accuracy": right / count}


def main(argv=None):
    args = run.arguments(__doc__, PRESETS, argv)
    train_set = lettering.rendered("train", args.limit, args.longest, data=args.data)
    if args.test_words:
        test_set = lettering.iiit5k(pathlib.Path(args.test_words))
    else:
        test_set = lettering.rendered("test", args.test_limit, args.longest, data=args.data)
    torch.manual_seed(args.seed)
    model = Reader(args.width, args.rounds)
    if args.pretrain:
        model.load_state_dict(pretrained(args))
    optimizer = torch.optim.AdamW(model.parameters(), args.learning_rate, weight_decay=0.01)

    handler = tamis.prune(train_set, args.policy, epochs=args.epochs, options=args.options, **args.score)  #>
    loader = handler.loader(args.batch_size, num_workers=args.workers)  #> instead of DataLoader(train_set, shuffle=True)
    if args.watches:  #> methods ogs-...
        handler.watch(model)  #> all of its logits: they are all in the loss
    schedule = tamis.lr_by_progress(  #>
        lambda t: min(1.0, 20 * t + 0.02) * 0.5 * (1 + math.cos(math.pi * t)), handler, optimizer=optimizer
    )

    folder = run.Folder(args, handler, data="rendered words", model="ABINet-style reader", metrics=METRICS)
    grids.save(test_set.pixels[:60].float() / 127.5 - 1, folder.path / "samples.png", columns=6, scale=1)
    for _ in folder.epochs(model=model, optimizer=optimizer):
        model.train()
        for images, targets in loader:
            loss = losses(model(images), targets).mean()
            loss = handler.update(loss)  #>
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            schedule.step()
        folder.end_epoch(lambda: evaluate(model, test_set))
    if args.record:
        folder.record_true_losses(sample_losses(model, train_set))
    return folder


if __name__ == "__main__":
    main()
