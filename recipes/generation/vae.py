"""A variational autoencoder that draws digits (MNIST), trained on pruned data.

    python -m recipes.generation.vae --method bls-infobatch --seed 0 --out runs/vae

Measured by the Frechet distance to the test digits on the features of a classifier of digits (not the FID: recipes/kit/frechet.py),
and by the negative ELBO of the test digits. samples.png in the folder shows what the model draws. The lines that prune are
marked with #>.
"""

import math

import tamis
import torch
import torch.nn.functional as F
from torch import nn

from recipes.kit import frechet, grids, pictures, run

PRESETS = {
    "quick": {
        "limit": 6000, "epochs": 10, "prune": 0.3, "batch_size": 64, "learning_rate": 2e-3, "width": 400, "latent": 20,
        "samples": 1000, "workers": 0,
    },
    "full": {
        "limit": 0, "epochs": 100, "prune": 0.3, "batch_size": 128, "learning_rate": 1e-3, "width": 400, "latent": 20,
        "samples": 10000, "workers": 4,
    },
}
METRICS = [
    {"name": "frechet_distance_on_classifier_features", "direction": "lower", "headline": True},
    {"name": "negative_elbo", "unit": "nats", "direction": "lower"},
]


class Vae(nn.Module):
    """forward: logits of the pixels, mean and logarithm of the variance of the code."""

    def __init__(self, width, latent):
        super().__init__()
        self.latent = latent
        self.encode = nn.Sequential(nn.Flatten(), nn.Linear(784, width), nn.ReLU(), nn.Linear(width, 2 * latent))
        self.decode = nn.Sequential(nn.Linear(latent, width), nn.ReLU(), nn.Linear(width, 784))

    def forward(self, images):
        mean, log_variance = self.encode(images).chunk(2, dim=1)
        code = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        return self.decode(code), mean, log_variance

    @torch.no_grad()
    def draw(self, count):
        """Digits in [-1, 1]."""
        return self.decode(torch.randn(count, self.latent)).sigmoid().view(-1, 1, 28, 28) * 2 - 1


def losses(outputs, images):
    """The negative ELBO of each picture."""
    logits, mean, log_variance = outputs
    pixels = images.flatten(1) / 2 + 0.5
    error = F.binary_cross_entropy_with_logits(logits, pixels, reduction="none").sum(1)
    divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1)
    return error + divergence


@torch.no_grad()
def sample_losses(model, dataset):
    """The loss of every sample alone."""
    batches = torch.utils.data.DataLoader(dataset, 500)
    return torch.cat([losses(model(images), images) for images, _ in batches])


def evaluate(model, test_set, ruler, args, folder):
    images = model.draw(args.samples)
    grids.save(images[:100], folder.path / "samples.png")
    elbo = float(sample_losses(model, test_set).mean())
    return {"frechet_distance_on_classifier_features": ruler.distance(images), "negative_elbo": elbo}


def main(argv=None):
    args = run.arguments(__doc__, PRESETS, argv)
    train_set = pictures.mnist("train", args.limit, args.data)
    test_set = pictures.mnist("test", args.samples, args.data)
    ruler = frechet.Ruler(train_set, test_set, args.data)
    torch.manual_seed(args.seed)
    model = Vae(args.width, args.latent)
    optimizer = torch.optim.Adam(model.parameters(), args.learning_rate)

    handler = tamis.prune(train_set, args.policy, epochs=args.epochs, options=args.options, **args.score)  #>
    loader = handler.loader(args.batch_size, num_workers=args.workers)  #> instead of DataLoader(train_set, shuffle=True)
    if args.watches:  #> methods ogs-...
        handler.watch(model)  #> the reconstruction and the code: both are in the loss
    schedule = tamis.lr_by_progress(lambda t: 0.5 * (1 + math.cos(math.pi * t)), handler, optimizer=optimizer)  #>

    folder = run.Folder(args, handler, data="mnist", model="vae", metrics=METRICS)
    for _ in folder.epochs(model=model, optimizer=optimizer):
        for images, _ in loader:
            loss = losses(model(images), images).mean()
            loss = handler.update(loss)  #>
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        folder.end_epoch(lambda: evaluate(model, test_set, ruler, args, folder))
    if args.record:
        folder.record_true_losses(sample_losses(model, train_set))
    return folder


if __name__ == "__main__":
    main()
