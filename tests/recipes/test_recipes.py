"""Every recipe learns, prunes the right samples, and goes on after an interruption.

Small parts of the real data, seconds each. The margins are about half of what seed 0 reaches.
"""

import numpy as np
import pytest
import tamis
import torch
from conftest import check_resumed, command, lines
from truth import BATCH, EPOCHS, SIZE, Log, judge

from recipes.captioning import train as captioning
from recipes.classification import models, vim
from recipes.classification import train as classification
from recipes.generation import ddpm, vae
from recipes.kit import frechet, pictures


# Digits, epochs, learning rate: what each needs to learn something within seconds.
ENOUGH = {
    "resnet18": (600, 5, 0.003), "resnet50": (600, 5, 0.003), "efficientnet": (300, 4, 0.003), "vit": (600, 5, 0.001),
    "swin": (800, 6, 0.001), "vim": (250, 4, 0.003), "yolov5n-cls": (400, 4, 0.001),
}


@pytest.mark.parametrize("model", models.MODELS)
def test_every_classifier_learns_on_pruned_data(model, tmp_path):
    """An untrained model has 10 % of the digits right; after some hundred steps it is 16 % at least.

    So short a run has two epochs that can be pruned: less than the target, but a tenth of all samples.
    """
    limit, epochs, rate = ENOUGH[model]
    settings = (f"model={model}", f"limit={limit}", f"epochs={epochs}", f"learning_rate={rate}")
    classification.main(command(tmp_path, "dataset=mnist", "test_limit=200", "batch_size=8", *settings))
    found = lines(tmp_path)
    assert found[-1]["values"]["acc@1"] > 0.16
    assert sum(line["pruned"] for line in found) > 0.1 * limit * epochs


def test_a_classifier_learns_drawings_of_345_things(tmp_path):
    """By chance 1.4 % have their class among the first five."""
    settings = ("dataset=quickdraw", "model=efficientnet", "limit=1725", "test_limit=345", "epochs=3", "batch_size=16")
    classification.main(command(tmp_path, *settings, "learning_rate=0.003", method="bls-seta"))
    assert lines(tmp_path)[-1]["values"]["acc@5"] > 0.03


@pytest.mark.parametrize("model", models.MODELS)
def test_an_epoch_may_end_in_a_batch_of_one(model, tmp_path):
    """Which batch normalisation refuses where a map has one pixel; pruning makes epochs of any length."""
    settings = (f"model={model}", "limit=17", "test_limit=20", "epochs=2", "batch_size=8")
    classification.main(command(tmp_path, *settings, method="full"))
    assert len(lines(tmp_path)) == 2


def test_the_scan_of_vim_is_the_sequential_one():
    torch.manual_seed(0)
    decay = torch.rand(2, 21, 3, 4, dtype=torch.double, requires_grad=True)
    inputs = torch.randn(2, 21, 3, 4, dtype=torch.double, requires_grad=True)
    state, expected = torch.zeros(2, 3, 4, dtype=torch.double), []
    for t in range(21):
        state = decay[:, t] * state + inputs[:, t]
        expected.append(state)
    expected = torch.stack(expected, 1)
    found = vim.Scan.apply(decay, inputs)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    weights = torch.randn_like(inputs)
    ours, theirs = (torch.autograd.grad((hidden * weights).sum(), (decay, inputs)) for hidden in (found, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_a_selective_scan_looks_back_and_a_vim_block_both_ways():
    torch.manual_seed(0)
    x = torch.randn(1, 9, 8, requires_grad=True)
    for layer, sees in ((vim.SelectiveScan(8), range(5)), (vim.Block(8), range(9))):
        (gradient,) = torch.autograd.grad(layer(x)[0, 4].sum(), x)
        assert torch.nonzero(gradient[0].abs().sum(1)).flatten().tolist() == list(sees)


def test_the_vae_draws_digits(tmp_path):
    """It describes digits in less than 150 of the untrained model's 550 nats, and its drawings are nearer to them."""
    settings = ("limit=6000", "samples=400", "batch_size=64")
    vae.main(command(tmp_path / "trained", *settings, "learning_rate=0.003", "epochs=8"))
    vae.main(command(tmp_path / "untrained", *settings, "learning_rate=0", "epochs=1", method="full"))
    trained, untrained = (lines(tmp_path / name)[-1]["values"] for name in ("trained", "untrained"))
    distance = "frechet_distance_on_classifier_features"
    assert trained[distance] < 0.7 * untrained[distance]
    assert trained["negative_elbo"] < 150 < 500 < untrained["negative_elbo"]
    assert (tmp_path / "trained" / "samples.png").stat().st_size > 1000


def test_diffusion_learns_on_pruned_data(tmp_path):
    """The error of the predicted velocity falls by a tenth at least, the Frechet distance by a quarter: 27 and 48 % here."""
    small = ("limit=300", "samples=60", "batch_size=16", "width=16", "sampling_steps=8", "guidance=2")
    ddpm.main(command(tmp_path / "trained", *small, "epochs=5", "learning_rate=0.003"))
    ddpm.main(command(tmp_path / "untrained", *small, "epochs=1", "learning_rate=0", method="full"))
    trained, untrained = (lines(tmp_path / name)[-1]["values"] for name in ("trained", "untrained"))
    assert trained["velocity_error"] < 0.9 * untrained["velocity_error"]
    distance = "frechet_distance_on_classifier_features"
    assert trained[distance] < 0.75 * untrained[distance]
    assert untrained[distance] > 300, "it paints noise, which the classifier must find far from pictures (762 with this seed)"


def test_on_the_features_of_a_classifier_pictures_are_near_and_noise_is_far():
    """1 and 600 for 300 of each; a classifier of too few pictures cannot tell them."""
    known = pictures.cifar10("test", 600)
    ruler = frechet.Ruler(pictures.cifar10("train", 10_000), known)
    others = pictures.cifar10("test", 900).pixels[600:].float() / 127.5 - 1
    torch.manual_seed(0)
    assert ruler.distance(others) < 5 < 300 < ruler.distance(torch.randn(300, 3, 32, 32).clamp(-1, 1))


TINY_CAPTIONS = ("size=32", "clip_scenes=60", "clip_epochs=1", "test_limit=4", "width=16", "layers=1")
RESUMED = {
    "captioning": (captioning, (*TINY_CAPTIONS, "limit=100", "epochs=4", "task=text")),
    "classification": (classification, ("limit=64", "test_limit=50", "epochs=4", "batch_size=16")),
    "vae": (vae, ("limit=300", "samples=100", "epochs=4")),
    "ddpm": (ddpm, ("limit=64", "samples=20", "epochs=4", "batch_size=16", "width=8", "sampling_steps=2", "guidance=1")),
}


@pytest.mark.parametrize("name", RESUMED)
def test_a_resumed_recipe_is_the_one_that_was_not_interrupted(name, tmp_path, interrupt):
    check_resumed(*RESUMED[name], tmp_path, interrupt)


class Spy:
    """Logs which samples really were in the tensors of each step: every picture has one colour, which tells its index."""

    def __init__(self, monkeypatch):
        self.log, self.seen, self.handler = Log(), None, None
        plain = tamis.Handler.update

        def update(handler, loss, *more, **options):
            self.handler = handler
            self.log.see(handler.epoch, self.seen, loss)
            return plain(handler, loss, *more, **options)

        monkeypatch.setattr(tamis.Handler, "update", update)
        for name in ("cifar10", "mnist"):
            monkeypatch.setattr(pictures, name, self.make_reader(*((3, 32) if name == "cifar10" else (1, 28))))

    @staticmethod
    def make_reader(channels, size):
        def read(part, limit=0, data=None):
            count = SIZE if part == "train" else 20
            pixels = (4 * torch.arange(count, dtype=torch.uint8))[:, None, None, None].expand(-1, channels, size, size)
            return pictures.Pictures(pixels.contiguous(), torch.arange(count) % 10, [str(k) for k in range(10)])

        return read

    def see(self, images):
        middle = images.shape[-1] // 2
        self.seen = ((images[:, 0, middle, middle] + 1) * 127.5 / 4).round().long().tolist()


EXACT = (f"epochs={EPOCHS}", f"batch_size={BATCH}", "prune=0")


def test_the_classifier_scores_the_samples_it_was_trained_on(tmp_path, monkeypatch):
    spy = Spy(monkeypatch)
    make = models.make

    def watched(*arguments):
        model = make(*arguments)
        model.register_forward_pre_hook(lambda module, inputs: spy.see(inputs[0]) if module.training else None)
        return model

    monkeypatch.setattr(models, "make", watched)
    classification.main(command(tmp_path, *EXACT))
    judge(spy.log.steps, spy.handler.scores)


@pytest.mark.parametrize("recipe", [vae, ddpm])
def test_generators_score_the_samples_they_were_trained_on(recipe, tmp_path, monkeypatch):
    spy = Spy(monkeypatch)
    plain = recipe.losses

    def losses(*arguments):
        if torch.is_grad_enabled():
            spy.see(arguments[1] if recipe is vae else arguments[2])
        return plain(*arguments)

    monkeypatch.setattr(recipe, "losses", losses)
    more = ("width=8", "sampling_steps=2") if recipe is ddpm else ()
    recipe.main([*command(tmp_path, *EXACT, "samples=10", *more), "--data", str(tmp_path)])
    judge(spy.log.steps, spy.handler.scores)
    assert np.isfinite(spy.handler.scores).all()


def test_the_captioner_scores_the_captions_it_was_trained_on(tmp_path, monkeypatch):
    """Every caption is one word, which tells its index."""
    spy = Spy(monkeypatch)
    plain, first = captioning.losses, 5

    def training_set(train, clip, vocabulary):
        words = torch.full((SIZE, 3), 2)
        words[:, 0], words[:, 1] = 1, first + torch.arange(SIZE)
        return torch.utils.data.TensorDataset(torch.randn(SIZE, 1, 128), words[:, 1:2], words)

    def losses(logits, captions):
        if torch.is_grad_enabled():
            spy.seen = (captions[:, 1] - first).tolist()
        return plain(logits, captions)

    monkeypatch.setattr(captioning, "training_set", training_set)
    monkeypatch.setattr(captioning, "losses", losses)
    captioning.main(command(tmp_path, *EXACT, *TINY_CAPTIONS, "limit=100"))
    judge(spy.log.steps, spy.handler.scores)
