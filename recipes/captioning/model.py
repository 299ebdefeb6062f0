"""A captioner as ViECap has it: a CLIP that is not trained further, and a GPT-2 that writes after a prefix (transformers).

The prefix: a few vectors made of the picture's embedding, then the names of what the picture shows, as words. No package holds
CLIP's weights, so a small one is trained here, on all classes of scenes and on emoji, and kept beside the data: it knows what the
captioner has never seen, as CLIP does.
"""

import hashlib

import torch
import torch.nn.functional as F
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from recipes.kit import assets, captions, emoji

PAD, START, END, UNKNOWN = range(4)
CAPTION = 24  # words at most
NAMES, SLOT = 3, 5  # names in a prompt at most, and the places that each of them has
PROMPT = NAMES * SLOT
VERSION = 1  # of the small CLIP and what it is trained on


class Vocabulary:
    """Words and their numbers; PAD, START, END and UNKNOWN are the first four."""

    def __init__(self, texts):
        self.words = ["", "<start>", "<end>", "<unknown>", *sorted({word for text in texts for word in text.split()})]
        self.numbers = {word: k for k, word in enumerate(self.words)}

    def __len__(self):
        return len(self.words)

    def encode(self, text):
        return [self.numbers.get(word, UNKNOWN) for word in text.split()]

    def captions(self, texts):
        """[N, CAPTION + 2], filled up behind."""
        rows = [[START, *self.encode(text)[:CAPTION], END] for text in texts]
        return torch.tensor([row + [PAD] * (CAPTION + 2 - len(row)) for row in rows])

    def prompts(self, lists):
        """[N, PROMPT]. Every name has places of its own, with an END behind it: a position says which word of which name it is."""
        rows = [[(self.encode(name)[: SLOT - 1] + [END]) for name in names[:NAMES]] for names in lists]
        slots = [row + [[]] * (NAMES - len(row)) for row in rows]
        return torch.tensor([[number for name in row for number in name + [PAD] * (SLOT - len(name))] for row in slots])

    def text(self, numbers):
        """Up to the first END."""
        numbers = numbers.tolist()
        return " ".join(self.words[k] for k in numbers[: numbers.index(END) if END in numbers else None] if k > UNKNOWN)


class Clip(nn.Module):
    """Pictures and texts as unit vectors of one space; the mean of each kind is taken off, which brings the two together."""

    def __init__(self, vocabulary, size, width=128):
        super().__init__()
        self.vocabulary = vocabulary
        channels = [3, 48, 96, 128]
        layers = []
        for k, (c, d) in enumerate(zip(channels, channels[1:])):
            layers += [nn.Conv2d(c, d, 4, 4) if k == 0 else nn.Conv2d(c, d, 3, 2, 1), nn.BatchNorm2d(d), nn.ReLU()]
        # Flat, not pooled: where things are matters.
        self.image = nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * (size // 16) ** 2, width))
        self.word = nn.Embedding(len(vocabulary), width, padding_idx=PAD)
        self.text = nn.GRU(width, width, batch_first=True)
        self.scale = nn.Parameter(torch.tensor(2.5))
        self.register_buffer("means", torch.zeros(2, width))

    def encode_images(self, pixels):
        """Of bytes [N, 3, size, size]."""
        return self._unit(self.image(pixels.float() / 127.5 - 1), 0)

    def encode_texts(self, texts):
        numbers = self.vocabulary.captions(texts)[:, 1:]
        states, _ = self.text(self.word(numbers))
        ends = (numbers == END).int().argmax(1)
        return self._unit(states[torch.arange(len(texts)), ends], 1)

    def _unit(self, vectors, kind):
        return F.normalize(F.normalize(vectors, dim=1) - self.means[kind], dim=1)

    @torch.no_grad()
    def embed(self, things):
        """[N, frames, width] of captions.Captioned, or [N, 1, width] of texts."""
        if isinstance(things, list):
            return torch.cat([self.encode_texts(things[k : k + 500]) for k in range(0, len(things), 500)])[:, None]
        frames = things.pixels.flatten(0, 1)
        return torch.cat([self.encode_images(part) for part in frames.split(500)]).unflatten(0, things.pixels.shape[:2])


def clip_loss(clip, pixels, texts, wrong):
    """Each picture has to find its text among those of the batch and captions that exchange the objects, each text its picture."""
    images, found = clip.encode_images(pixels), clip.encode_texts(texts + wrong)
    likeness = clip.scale.exp() * images @ found.T
    truth = torch.arange(len(texts))
    return F.cross_entropy(likeness, truth) + F.cross_entropy(likeness[:, : len(texts)].T, truth)


def train_clip(parts, size, epochs):
    """A function of the data: always from the same seed, and leaves torch's own random numbers as they are."""
    pixels = torch.cat([part.pixels[:, 0] for part in parts])
    told = [one for part in parts for one in part.captions]
    wrong = [one for part in parts for one in (part.wrong or [None] * len(part))]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        clip = Clip(Vocabulary(text for one in told for text in one), size)
        optimizer = torch.optim.AdamW(clip.parameters(), 2e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=epochs * -(-len(told) // 128))
        for _ in range(epochs):
            for ids in torch.randperm(len(told)).split(128):
                texts = [told[k][int(torch.randint(len(told[k]), ()))] for k in ids.tolist()]
                loss = clip_loss(clip, pixels[ids], texts, [wrong[k] for k in ids.tolist() if wrong[k]])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
    clip.eval()
    with torch.no_grad():
        images = torch.cat([clip.encode_images(part) for part in pixels.split(500)])
        clip.means = torch.stack([images.mean(0), clip.embed([one[0] for one in told])[:, 0].mean(0)])
    return clip


def load_clip(args, own=None):
    """Trained before, or now. `own`: pictures of the user's to train it on, instead of scenes and emoji."""
    key = [VERSION, args.size, args.clip_scenes, args.clip_epochs, *(assets.ASSETS[name].digest for name in ("cutouts", "emoji"))]
    if own is not None:
        key.append(hashlib.sha256(own.pixels.numpy().tobytes() + repr(own.captions).encode()).hexdigest())
    sum_ = hashlib.sha256(repr(key).encode()).hexdigest()[:12]
    kept = (args.data or assets.ROOT / "data") / f"clip-{sum_}.pt"
    if kept.exists():
        state = torch.load(kept, weights_only=True)
        clip = Clip(Vocabulary(state.pop("words")), args.size).eval()
        clip.load_state_dict(state)
        return clip
    if own is None:
        scenes = captions.CaptionedScenes("all", args.clip_scenes, args.size, data=args.data).load()
        parts = [scenes, emoji.read("flat", args.size, args.clip_scenes, data=args.data)]
    clip = train_clip(parts if own is None else [own], args.size, args.clip_epochs)
    with assets.written(kept) as file:
        torch.save({**clip.state_dict(), "words": clip.vocabulary.words[UNKNOWN + 1 :]}, file)
    return clip


class Captioner(nn.Module):
    """forward: logits of the words of captions, after embeddings [N, frames, width] and prompts."""

    def __init__(self, vocabulary, args, embedding=128):
        super().__init__()
        self.vocabulary, self.length = vocabulary, args.prefix
        config = GPT2Config(
            vocab_size=len(vocabulary), n_positions=args.frames * args.prefix + PROMPT + CAPTION + 2, n_embd=args.width,
            n_layer=args.layers, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=START, eos_token_id=END,
        )
        self.gpt = GPT2LMHeadModel(config)
        # Fixed vectors for words: it can then repeat a name that no caption of the training had, as a GPT-2 that has read more can.
        nn.init.normal_(self.gpt.transformer.wte.weight, std=args.width**-0.5).requires_grad_(False)
        nn.init.normal_(self.gpt.transformer.wpe.weight, std=args.width**-0.5)
        self.project = nn.Sequential(
            nn.Linear(embedding, 2 * args.width), nn.Tanh(), nn.Linear(2 * args.width, args.prefix * args.width)
        )

    def _prefix(self, embeddings, numbers):
        """Vectors, and which of them count."""
        soft = self.project(embeddings).unflatten(2, (self.length, -1)).flatten(1, 2)
        mask = torch.cat([torch.ones(soft.shape[:2], dtype=torch.long), (numbers != PAD).long()], 1)
        return {"inputs_embeds": torch.cat([soft, self.gpt.transformer.wte(numbers)], 1), "attention_mask": mask}

    def forward(self, embeddings, prompts, captions):
        inputs = self._prefix(embeddings, torch.cat([prompts, captions[:, :-1]], 1))
        hidden = self.gpt.transformer(**inputs, use_cache=False).last_hidden_state
        return self.gpt.lm_head(hidden[:, 1 - captions.shape[1] :])

    def write(self, embeddings, prompts):
        """Captions."""
        return [self.vocabulary.text(row) for row in self.numbers(embeddings, prompts)]

    @torch.no_grad()
    def numbers(self, embeddings, prompts):
        """The most likely word, one after the other."""
        start = torch.full((len(prompts), 1), START)
        inputs, past, found = self._prefix(embeddings, torch.cat([prompts, start], 1)), None, start
        for _ in range(CAPTION + 1):
            # Positions are counted through, as in forward(): generate() would leave out the places that are filled up.
            length = inputs["attention_mask"].shape[1]
            positions = torch.arange(length - inputs["inputs_embeds"].shape[1], length)[None]
            output = self.gpt(**inputs, position_ids=positions, past_key_values=past, use_cache=True)
            past, word = output.past_key_values, output.logits[:, -1:].argmax(2)
            found = torch.cat([found, word], 1)
            if bool((found == END).any(1).all()):
                break
            mask = torch.cat([inputs["attention_mask"], torch.ones_like(word)], 1)
            inputs = {"inputs_embeds": self.gpt.transformer.wte(word), "attention_mask": mask}
        return found


def losses(logits, captions):
    """The mean loss over the words of each caption."""
    targets = captions[:, 1:]
    each = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none", ignore_index=PAD).view(targets.shape)
    return each.sum(1) / (targets != PAD).sum(1)
