"""Every recipe learns, prunes the right samples, and goes on after an interruption.

Small parts of the real data, seconds each. The margins are about half of what seed 0 reaches.
"""

import numpy as np
import pytest
import tamis
import torch
from conftest import Interrupted, lines, without_times
from truth import BATCH, EPOCHS, SIZE, Log, judge

from recipes.classification import models, vim
from recipes.classification import train as classification
from recipes.generation import ddpm, vae
from recipes.kit import pictures


def command(out, *settings, method="bls-infobatch", seed=0):
    changes = [part for setting in settings for part in ("--set", setting)]
    return ["--out", str(out), "--method", method, "--seed", str(seed), *changes]


SMALL_CIFAR = ("limit=800", "test_limit=500", "epochs=6", "batch_size=32")


@pytest.mark.parametrize("model", models.MODELS)
def test_every_classifier_learns_on_pruned_data(model, tmp_path):
    """An untrained model has 10 % of CIFAR-10's test pictures right; 6 epochs on 800 pictures make it 17 % at least."""
    classification.main(command(tmp_path, *SMALL_CIFAR, f"model={model}"))
    found = lines(tmp_path)
    assert found[-1]["values"]["acc@1"] > 0.17 and found[-1]["values"]["acc@5"] > 0.6
    assert sum(line["pruned"] for line in found) == pytest.approx(0.3 * 4800, rel=0.05)


def test_drawings_of_345_things_are_learnt(tmp_path):
    """By chance 0.3 % are right."""
    classification.main(command(tmp_path, "dataset=quickdraw", "limit=3450", "test_limit=690", "epochs=6"))
    assert lines(tmp_path)[-1]["values"]["acc@5"] > 0.06


def test_the_scan_of_vim_is_the_sequential_one():
    torch.manual_seed(0)
    decay, inputs = torch.rand(2, 21, 3, 4, dtype=torch.double), torch.randn(2, 21, 3, 4, dtype=torch.double, requires_grad=True)
    state, expected = torch.zeros(2, 3, 4, dtype=torch.double), []
    for t in range(21):
        state = decay[:, t] * state + inputs[:, t]
        expected.append(state)
    expected = torch.stack(expected, 1)
    torch.testing.assert_close(vim.scan(decay, inputs), expected, rtol=1e-12, atol=1e-12)
    weights = torch.randn_like(inputs)
    (ours,) = torch.autograd.grad((vim.scan(decay, inputs) * weights).sum(), inputs)
    (theirs,) = torch.autograd.grad((expected * weights).sum(), inputs)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_a_selective_scan_looks_back_and_a_vim_block_both_ways():
    torch.manual_seed(0)
    x = torch.randn(1, 9, 8, requires_grad=True)
    for layer, sees in ((vim.SelectiveScan(8), range(5)), (vim.Block(8), range(9))):
        (gradient,) = torch.autograd.grad(layer(x)[0, 4].sum(), x)
        assert torch.nonzero(gradient[0].abs().sum(1)).flatten().tolist() == list(sees)


SMALL_VAE = ("limit=2000", "samples=400", "epochs=6")


def test_the_vae_draws_digits(tmp_path):
    """Its distance to real digits falls to a third of the untrained model's, and samples.png shows them."""
    vae.main(command(tmp_path / "trained", *SMALL_VAE))
    vae.main(command(tmp_path / "untrained", *SMALL_VAE, "learning_rate=0"))
    trained, untrained = (lines(tmp_path / name)[-1]["values"] for name in ("trained", "untrained"))
    distance = "frechet_distance_on_classifier_features"
    assert 3 * trained[distance] < untrained[distance]
    assert trained["negative_elbo"] < 250 < 500 < untrained["negative_elbo"]
    assert (tmp_path / "trained" / "samples.png").stat().st_size > 1000


@pytest.mark.parametrize("guidance", ["0", "2"])
def test_diffusion_learns_on_pruned_data(guidance, tmp_path):
    """The noise is predicted better than by nothing (1), and the pictures are nearer to CIFAR-10's than an untrained model's."""
    small = ("limit=400", "samples=60", "epochs=4", "batch_size=32", "width=16", "sampling_steps=8", f"guidance={guidance}")
    ddpm.main(command(tmp_path / "trained", *small))
    ddpm.main(command(tmp_path / "untrained", *small[:2], "epochs=1", *small[3:], "learning_rate=0", method="full"))
    trained, untrained = (lines(tmp_path / name)[-1]["values"] for name in ("trained", "untrained"))
    assert trained["noise_error"] < 0.6 < 0.95 < untrained["noise_error"]
    distance = "frechet_distance_on_classifier_features"
    assert trained[distance] < 0.9 * untrained[distance]


RESUMED = {
    "classification": (classification, SMALL_CIFAR[1:] + ("limit=200",)),
    "vae": (vae, ("limit=300", "samples=100", "epochs=6")),
    "ddpm": (ddpm, ("limit=64", "samples=20", "epochs=4", "batch_size=16", "width=8", "sampling_steps=2", "guidance=1")),
}


@pytest.mark.parametrize("name", RESUMED)
def test_a_resumed_recipe_is_the_one_that_was_not_interrupted(name, tmp_path, interrupt):
    recipe, settings = RESUMED[name]
    recipe.main(command(tmp_path / "whole", *settings, method="ogs-infobatch"))
    restore = interrupt(2)
    with pytest.raises(Interrupted):
        recipe.main(command(tmp_path / "cut", *settings, method="ogs-infobatch"))
    restore()
    recipe.main(command(tmp_path / "cut", *settings, method="ogs-infobatch"))
    assert without_times(tmp_path / "cut") == without_times(tmp_path / "whole")


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
