#!/usr/bin/env python3
"""How well the score output-gradient follows the per-sample loss, for losses of several kinds.

Small models on real data, trained on one core. The scores of the last epoch are compared (Spearman) with the loss that
each sample had in the same forward pass, and with its loss when training is over:

- cnn: a classifier of Fashion-MNIST.
- vae: a variational autoencoder on Fashion-MNIST, squared error plus KL divergence; its reconstruction is watched, or
  all of its outputs.
- ddpm: a denoising network on Fashion-MNIST at one time step, squared error; every sample has a noise of its own.
- gpt: a causal transformer over the bytes of Python's standard library; its logits are watched, or its last hidden
  state, the input of the head. Of blocks of one length; of lines, padded, with the usual mean over all tokens of the
  batch; and of lines with the mean over the tokens of each line.

Figures are means over the seeds, with the least and the greatest of them.

  benchmarks/python/fidelity.py --images FOLDER      tables (FOLDER: Fashion-MNIST's idx files, gzipped or not)
  benchmarks/python/fidelity.py --json benchmarks/results/fidelity.json
"""

import argparse
import gzip
import os
import pathlib
import statistics
import sys

import results

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEBIAN = pathlib.Path("/usr/share/datasets/fashion-mnist")
IMAGES = DEBIAN if DEBIAN.exists() else ROOT / "data" / "fashion-mnist"


def spearman(a, b):
    import numpy as np

    def ranks(values):
        _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
        return (np.cumsum(counts) - (counts - 1) / 2)[index]  # ties share their rank

    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


class Indexed:
    """Gives the indices of a batch; the tensors are taken by them."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return index


def idx_bytes(folder, name, offset):
    import numpy as np

    found = sorted(pathlib.Path(folder).glob(name + "*"))
    if not found:
        sys.exit(f"fidelity.py: {folder} must hold {name}(.gz)")
    raw = found[0].read_bytes()
    raw = gzip.decompress(raw) if found[0].suffix == ".gz" else raw
    return np.frombuffer(raw, np.uint8, offset=offset)


def images(folder, count):
    """[count, 784] in [0, 1]."""
    import numpy as np
    import torch

    pixels = idx_bytes(folder, "train-images-idx3-ubyte", 16).reshape(-1, 784)[:count]
    return torch.from_numpy(pixels.astype(np.float32) / 255)


def text(count, length, is_padded):
    """Bytes of the standard library, [count, length]: lines of 8 bytes at least, padded with 0, or blocks."""
    import random

    import torch

    found = []
    for path in sorted(pathlib.Path(os.__file__).parent.glob("*.py")):
        content = path.read_bytes()
        if is_padded:
            found += [line.strip()[:length] for line in content.splitlines() if len(line.strip()) >= 8]
        else:
            found += [content[k : k + length] for k in range(0, len(content) - length, length)]
    random.Random(0).shuffle(found)
    tokens = torch.zeros(count, length, dtype=torch.long)
    for row, line in zip(tokens, found, strict=False):
        row[: len(line)] = torch.tensor(list(line))
    return tokens


class Task:
    """A model, its loss per sample, and the watches that are compared: name, options, options of the score."""

    epochs = 3
    batch = 128
    learning_rate = 2e-3
    rules = {1: {"power": 1.0}, 2: {"power": 2.0}}


def cnn(args):
    import torch
    import torch.nn.functional as F
    from torch import nn

    class CnnTask(Task):
        data = images(args.images, args.samples).view(-1, 1, 28, 28)
        labels = torch.from_numpy(idx_bytes(args.images, "train-labels-idx1-ubyte", 8)[: args.samples].astype("int64"))
        model = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 49, 10))
        watches = {"logits": (lambda m: m, {})}
        rules = {**Task.rules, "cross-entropy": {"cross_entropy": 1}}
        losses_named = ("cross-entropy",)

        def losses(self, ids):
            return (F.cross_entropy(self.model(self.data[ids]), self.labels[ids], reduction="none"),)

    return CnnTask()


def vae(args):
    import torch
    from torch import nn

    class Vae(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 32))
            self.decode = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 784), nn.Sigmoid())

        def forward(self, x):
            mean, log_variance = self.encode(x).chunk(2, 1)
            return self.decode(mean + torch.randn_like(mean) * (log_variance / 2).exp()), mean, log_variance

    class VaeTask(Task):
        data = images(args.images, args.samples)
        model = Vae()
        watches = {"reconstruction": (lambda m: m.decode, {}), "all outputs": (lambda m: m, {})}
        losses_named = ("squared error + KL", "squared error")

        def losses(self, ids):
            target = self.data[ids]
            output, mean, log_variance = self.model(target)
            error = ((output - target) ** 2).sum(1)
            divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1)
            return error + divergence, error

    return VaeTask()


def ddpm(args):
    import torch
    from torch import nn

    class DdpmTask(Task):
        data = images(args.images, args.samples).view(-1, 1, 28, 28) * 2 - 1
        noise = torch.randn(args.samples, 1, 28, 28)
        model = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.SiLU(),
            nn.Conv2d(32, 32, 3, padding=1), nn.SiLU(), nn.ConvTranspose2d(32, 16, 2, stride=2), nn.SiLU(),
            nn.Conv2d(16, 1, 3, padding=1))
        watches = {"output": (lambda m: m, {})}
        losses_named = ("squared error",)

        def losses(self, ids):
            kept = 0.6  # what is left of the image at the time step
            noisy = kept**0.5 * self.data[ids] + (1 - kept) ** 0.5 * self.noise[ids]
            return (((self.model(noisy) - self.noise[ids]) ** 2).mean((1, 2, 3)),)

    return DdpmTask()


def gpt(args):
    import torch.nn.functional as F
    from torch import nn

    class Gpt(nn.Module):
        def __init__(self, length, width=64):
            super().__init__()
            self.tokens, self.places = nn.Embedding(256, width), nn.Embedding(length, width)
            layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True,
                                               norm_first=True)
            self.body = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(width), enable_nested_tensor=False)
            self.head = nn.Linear(width, 256, bias=False)
            self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

        def forward(self, x):
            hidden = self.tokens(x) + self.places.weight
            return self.head(self.body(hidden, mask=self.mask, is_causal=True))

    class GptTask(Task):
        batch = 32
        data = text(args.samples, 49, is_padded=args.task != "gpt-blocks")
        model = Gpt(48)
        watches = {"logits": (lambda m: m, {}), "logits, per token": (lambda m: m, {"per_token": True}),
                   "input": (lambda m: m.head, {"at": "input"}),
                   "input, per token": (lambda m: m.head, {"at": "input", "per_token": True})}

        def tokens(self, ids):
            inputs, targets = self.data[ids, :-1], self.data[ids, 1:]
            logits = self.model(inputs)
            found = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=0, reduction="none")
            return found.view(targets.shape), (targets != 0).sum(1)

    class MeanOfLines(GptTask):
        losses_named = ("mean of its tokens", "sum of its tokens")

        def losses(self, ids):
            tokens, counts = self.tokens(ids)
            return tokens.sum(1) / counts, tokens.sum(1)

    class MeanOfTokens(GptTask):
        """As frameworks do it: the mean over all tokens of the batch."""

        losses_named = ("sum of its tokens", "mean of its tokens")

        def losses(self, ids):
            tokens, counts = self.tokens(ids)
            scale = len(ids) / counts.sum()
            return tokens.sum(1) * scale, tokens.sum(1) / counts

    return MeanOfTokens() if args.task == "gpt-tokens" else MeanOfLines()


def measure(task):
    """[{watched, rule: the power or "cross-entropy", loss, when, spearman}]"""
    import numpy as np
    import torch

    import tamis

    size = len(task.data)
    handlers = {}
    for name, (module_of, options) in task.watches.items():
        for rule, given in task.rules.items():
            handler = tamis.prune(Indexed(size), "none", epochs=task.epochs, score="output-gradient", **given)
            handler.watch(module_of(task.model), **options)
            handlers[name, rule] = handler
    optimizer = torch.optim.AdamW(task.model.parameters(), lr=task.learning_rate)
    driver = next(iter(handlers.values()))
    loader = driver.loader(task.batch)
    at_visit = np.zeros((len(task.losses_named), size))
    for epoch in range(task.epochs):
        for group in optimizer.param_groups:
            group["lr"] = task.learning_rate * (1 - epoch / task.epochs)
        for ids in loader:
            losses = task.losses(ids)
            loss = losses[0].mean()
            for handler in handlers.values():
                assert handler.update(loss, ids=ids) is loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for row, values in zip(at_visit, losses, strict=True):
                row[ids.numpy()] = values.detach().numpy()
    with torch.no_grad():
        parts = [task.losses(ids) for ids in torch.arange(size).split(task.batch)]
    at_end = [torch.cat(values).numpy() for values in zip(*parts, strict=True)]
    columns = [(k, name, when, values[k]) for k, name in enumerate(task.losses_named)
               for when, values in (("same pass", at_visit), ("at the end", at_end))]
    scores = {key: handler.scores for key, handler in handlers.items()}
    assert all(np.isfinite(found).all() for found in scores.values())
    assert all(handler.num_skipped_observations == 0 for handler in handlers.values())
    rows = [{"watched": watched, "rule": rule, "loss": name, "when": when, "spearman": spearman(found, values)}
            for (watched, rule), found in scores.items() for _, name, when, values in columns]
    ceiling = {"watched": "the loss itself, same pass", "rule": None}
    return rows + [ceiling | {"loss": name, "when": when, "spearman": spearman(at_visit[k], values)}
                   for k, name, when, values in columns]


def table(rows):
    """Of one task."""
    columns = list(dict.fromkeys((row["loss"], row["when"]) for row in rows))
    lines = ["| watched | rule | " + " | ".join(f"{name}, {when}" for name, when in columns) + " |",
             "|---|--:|" + "--:|" * len(columns)]
    for watched, rule in dict.fromkeys((row["watched"], row["rule"]) for row in rows):
        cells = []
        for name, when in columns:
            values = [row["spearman"] for row in rows
                      if (row["watched"], row["rule"], row["loss"], row["when"]) == (watched, rule, name, when)]
            cells.append(f"{statistics.mean(values):.3f} [{min(values):.3f}, {max(values):.3f}]")
        lines.append(f"| {watched} | {'' if rule is None else rule} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


TASKS = {"cnn": cnn, "vae": vae, "ddpm": ddpm, "gpt-blocks": gpt, "gpt-tokens": gpt, "gpt-lines": gpt}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda p: ROOT / p, default=ROOT / "build")
    parser.add_argument("--images", default=IMAGES)
    parser.add_argument("--samples", type=int, default=6000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--tasks", nargs="*", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--json", type=pathlib.Path, help="file for the result")
    args = parser.parse_args()
    sys.path.insert(0, str(args.build / "python"))

    import torch

    torch.set_num_threads(1)
    result = results.header() | {"versions": {"torch": torch.__version__}, "seeds": args.seeds, "samples": args.samples,
                                 "tasks": {}}
    for name in args.tasks:
        args.task = name
        rows = result["tasks"][name] = []
        for seed in args.seeds:
            torch.manual_seed(seed)
            rows += [row | {"seed": seed} for row in measure(TASKS[name](args))]
        print(f"{name}:\n\n{table(rows)}\n", flush=True)
        if args.json:  # what there is: all tasks take a while
            results.write(args.json, result)


if __name__ == "__main__":
    main()
