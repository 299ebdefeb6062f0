"""Captions for pictures and films, as ViECap writes them (a CLIP and a GPT-2 with a prefix, transformers), trained on pruned data.

    python -m recipes.captioning.train --method bls-infobatch --seed 0 --out runs/captions
    python -m recipes.captioning.train --set task=text --out runs/zero-shot
    python -m recipes.captioning.train --set train=coco/train.json --set val=coco/val.json --out runs/coco

Tasks: image; video; text, trained on captions alone, whose embeddings with some noise stand in for those of pictures; cross,
trained on texts about emoji, tested on scenes and on emoji of another style. Data: composed scenes (recipes/kit/captions.py);
emoji (--set dataset=emoji); two files of captions in COCO's format with a folder `images` beside each. A sample is one caption.

The names of what is in a picture are given as words in front of its caption: the true ones (entities=known), or the two that the
CLIP finds nearest (detected). Measured by pycocoevalcap; the tests "near" and "out" show objects whose classes were not in the
training. captions.json in the folder has what the model writes. The lines that prune are marked with #>.
"""

import json
import math
import pathlib

import tamis
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from recipes.captioning.model import PAD, Captioner, Vocabulary, load_clip, losses
from recipes.kit import caption_scores, captions, emoji, run

QUICK = {
    "task": "image", "dataset": "scenes", "train": "", "val": "", "entities": "known", "meteor": 0, "limit": 3200,
    "test_limit": 150, "size": 64, "frames": 6, "clip_scenes": 3000, "clip_epochs": 12, "noise": 0.05, "width": 64, "layers": 2,
    "prefix": 4, "epochs": 10, "prune": 0.3, "batch_size": 64, "learning_rate": 4e-3, "workers": 0,
}
PRESETS = {
    "quick": QUICK,
    "full": {
        **QUICK, "meteor": 1, "limit": 50000, "test_limit": 1000, "clip_scenes": 20000, "clip_epochs": 30, "width": 256,
        "layers": 6, "epochs": 30, "learning_rate": 1e-3,
    },
}
TASKS = ("image", "text", "cross", "video")
PER_SCENE = len(captions.PICTURE)


def load(args):
    """What to train on: captions.Captioned, or texts with entities; {name: test set}; the name of the data."""
    if args.task not in TASKS:
        raise SystemExit(f"task must be one of {', '.join(TASKS)}, got {args.task}")
    args.frames = args.frames if args.task == "video" else 1
    if bool(args.train) != bool(args.val):
        raise SystemExit(f"train and val must be given together, got train={args.train} and val={args.val}")
    if args.train:
        train, val = (captions.read(pathlib.Path(path), args.size) for path in (args.train, args.val))
        return train, {"val": val}, pathlib.Path(args.train).stem
    if args.dataset == "emoji" and args.task in ("image", "video"):
        style = "film" if args.task == "video" else "flat"
        whole = emoji.read(style, args.size, args.limit, args.frames, args.data)
        train, test = whole[: len(whole) * 4 // 5], whole[len(whole) * 4 // 5 :]
        return train, by_domain(train, test), f"emoji ({style})"
    if args.dataset != "scenes":
        raise SystemExit(f"dataset must be scenes or, for the tasks image and video, emoji, got {args.dataset}")
    scenes = captions.CaptionedScenes("train", args.limit // PER_SCENE, args.size, frames=args.frames, data=args.data)
    if args.task == "cross":
        drawn = emoji.read("3d", args.size, args.test_limit, data=args.data)
        tests = {"scenes": scenes.of("all", args.test_limit).load(), "3d": drawn}
        return emoji.texts(args.limit, data=args.data), tests, "texts about emoji"
    tests = {domain: scenes.of(domain, args.test_limit).load() for domain in ("in", "near", "out")}
    if args.task == "text":
        return captions.template_texts(args.limit, data=args.data), tests, "texts (templates, WordNet)"
    return scenes.load(), tests, "moving scenes (composed)" if args.task == "video" else "scenes (composed)"


def by_domain(train, test):
    """Emoji are in the domain if their labels have no word that the training has not, and out of it if they have no other."""
    seen = {word for told in train.captions for text in told for word in text.split()}
    chosen = {"in": [], "near": [], "out": []}
    for k, (label, *_) in enumerate(test.captions):
        share = sum(word in seen for word in label.split()) / len(label.split())
        chosen["in" if share == 1 else "near" if share else "out"].append(k)
    return {name: test.choose(ids) for name, ids in chosen.items() if len(ids) > 1}


def training_set(train, clip, vocabulary):
    """A sample: embeddings of the picture's frames, or of the caption itself; prompt; caption."""
    if isinstance(train, list):
        texts, entities = map(list, zip(*train))
        return TensorDataset(clip.embed(texts), vocabulary.prompts(entities), vocabulary.captions(texts))
    owners = torch.tensor([k for k, told in enumerate(train.captions) for _ in told])
    texts = [text for told in train.captions for text in told]
    return TensorDataset(clip.embed(train)[owners], vocabulary.prompts(train.entities)[owners], vocabulary.captions(texts))


def test_sets(tests, clip, vocabulary, args):
    """{name: (embeddings, prompts, lists of references)}."""
    names = sorted({name for part in tests.values() for one in part.entities for name in one})
    ready = {}
    for key, part in tests.items():
        embeddings, entities = clip.embed(part), part.entities
        if args.entities == "detected":
            nearest = (embeddings.mean(1) @ clip.embed([f"a picture of {name}" for name in names])[:, 0].T).topk(2).indices
            entities = [[names[k] for k in row] for row in nearest.tolist()]
        ready[key] = embeddings, vocabulary.prompts(entities), part.captions
    return ready


def trimmed(texts):
    return texts[:, : int((texts != PAD).sum(1).max())]


@torch.no_grad()
def sample_losses(model, dataset):
    """The loss of every sample alone, without noise."""
    return torch.cat([losses(model(*prefix, trimmed(texts)), trimmed(texts)) for *prefix, texts in DataLoader(dataset, 250)])


def evaluate(model, tests, args, folder, is_last):
    """The loss of the first references; writing is slower: only after the last epoch."""
    told = {key: model.vocabulary.captions([one[0] for one in references]) for key, (_, _, references) in tests.items()}
    sets = [TensorDataset(*tests[key][:2], texts) for key, texts in told.items()]
    values = {"loss": float(torch.cat([sample_losses(model, part) for part in sets]).mean())}
    if not is_last:
        return values
    written = {key: model.write(*prefix) for key, (*prefix, _) in tests.items()}
    references = {key: references for key, (_, _, references) in tests.items()}
    for key, found in written.items():
        scores = caption_scores.measure(found, references[key])
        values |= {f"{name}_{key}": value for name, value in scores.items()}
    if args.task != "cross":
        every = [sum(parts.values(), []) for parts in (written, references)]
        values |= caption_scores.measure(*every, meteor=has_meteor(args))
    shown = {key: [{"written": a, "references": b} for a, b in zip(found, references[key])] for key, found in written.items()}
    (folder.path / "captions.json").write_text(json.dumps(shown, indent=1) + "\n")
    return values


def has_meteor(args):
    return bool(args.meteor) and caption_scores.has_meteor()


def metrics(args, tests):
    """The headline is CIDEr: over all tests, or, across domains, on scenes."""
    parts = [f"_{key}" for key in tests] + ([] if args.task == "cross" else [""])
    found = [{"name": f"CIDEr{part}", "direction": "higher"} for part in parts]
    next(m for m in found if m["name"] in ("CIDEr", "CIDEr_scenes"))["headline"] = True
    found += [{"name": f"BLEU-4{part}", "unit": "fraction", "direction": "higher"} for part in parts]
    if has_meteor(args) and args.task != "cross":
        found.append({"name": "METEOR", "unit": "fraction", "direction": "higher"})
    return [*found, {"name": "loss", "direction": "lower"}]


def main(argv=None):
    args = run.arguments(__doc__, PRESETS, argv)
    train, tests, name = load(args)
    clip = load_clip(args, own=train if args.train else None)
    texts = [text for text, _ in train] if isinstance(train, list) else sum(train.captions, [])
    entities = [names for _, names in train] if isinstance(train, list) else train.entities
    vocabulary = Vocabulary([*texts, *sum(entities, []), *(n for part in tests.values() for one in part.entities for n in one)])
    train_set, tests = training_set(train, clip, vocabulary), test_sets(tests, clip, vocabulary, args)
    noise = args.noise if isinstance(train, list) else 0.0
    torch.manual_seed(args.seed)
    model = Captioner(vocabulary, args)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], args.learning_rate)

    handler = tamis.prune(train_set, args.policy, epochs=args.epochs, options=args.options, **args.score)  #>
    loader = handler.loader(args.batch_size, num_workers=args.workers)  #> instead of DataLoader(train_set, shuffle=True)
    if args.watches:  #> methods ogs-...
        handler.watch(model)  #>
    schedule = tamis.lr_by_progress(  #>
        lambda t: min(1.0, 10 * t + 0.02) * 0.5 * (1 + math.cos(math.pi * t)), handler, optimizer=optimizer
    )

    folder = run.Folder(args, handler, data=name, model="small clip and gpt-2", metrics=metrics(args, tests))
    for epoch in folder.epochs(model=model, optimizer=optimizer):
        for embeddings, prompts, told in loader:
            embeddings = F.normalize(embeddings + noise * torch.randn_like(embeddings), dim=2)
            loss = losses(model(embeddings, prompts, trimmed(told)), trimmed(told)).mean()
            loss = handler.update(loss)  #>
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        is_last = epoch == handler.epochs - 1
        folder.end_epoch(lambda is_last=is_last: evaluate(model, tests, args, folder, is_last))
    if args.record:
        folder.record_true_losses(sample_losses(model, train_set))
    return folder


if __name__ == "__main__":
    main()
