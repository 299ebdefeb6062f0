"""Diffusion models that paint CIFAR-10's pictures (diffusers), trained on pruned data: DDPM, and with classifier-free guidance.

    python -m recipes.generation.ddpm --method bls-infobatch --seed 0 --out runs/ddpm
    python -m recipes.generation.ddpm --set guidance=2 --out runs/ddpm-cfg

Measured by the Frechet distance to the test pictures on the features of a classifier of CIFAR-10 (not the FID:
recipes/kit/frechet.py). samples.png in the folder shows what the model paints. The loss of one picture depends above all on the
noise level that was drawn for it; `--set time_step=500` holds it fixed, to see what scores know then. The lines that prune are
marked with #>.
"""

import math

import tamis
import torch
from diffusers import DDIMScheduler, DDPMScheduler, UNet2DModel

from recipes.kit import frechet, grids, pictures, run

PRESETS = {
    "quick": {
        "limit": 1000, "epochs": 10, "prune": 0.3, "batch_size": 16, "learning_rate": 3e-3, "width": 32, "patch": 2,
        "guidance": 0.0, "time_step": -1, "sampling_steps": 15, "samples": 300, "workers": 0,
    },
    "full": {
        "limit": 0, "epochs": 500, "prune": 0.3, "batch_size": 128, "learning_rate": 2e-4, "width": 128, "patch": 1,
        "guidance": 0.0, "time_step": -1, "sampling_steps": 50, "samples": 10000, "workers": 4,
    },
}
METRICS = [
    {"name": "frechet_distance_on_classifier_features", "direction": "lower", "headline": True},
    {"name": "velocity_error", "direction": "lower"},
]
# Velocities, a mixture of picture and noise: a model that predicts the noise alone paints noise until it is nearly right.
NOISES = {"num_train_timesteps": 1000, "prediction_type": "v_prediction"}
NO_CLASS = 10  # what the guided model sees in the place of a class
DROPPED = 0.1  # of the classes, so that it learns to do without


class Patched(torch.nn.Module):
    """diffusers' UNet on patches of side x side pixels as channels: cheaper where pictures are small and processors slow."""

    def __init__(self, args):
        super().__init__()
        self.side = args.patch
        widths = (args.width, 2 * args.width, 2 * args.width)[: 3 if args.patch == 1 else 2]
        self.unet = UNet2DModel(
            sample_size=32 // self.side, in_channels=3 * self.side**2, out_channels=3 * self.side**2, layers_per_block=1,
            norm_num_groups=8, block_out_channels=widths,
            down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D")[: len(widths)],
            up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D")[-len(widths) :],
            num_class_embeds=NO_CLASS + 1 if args.guidance else None,
        )

    def forward(self, images, steps, labels=None):
        """The predicted velocity."""
        patches = torch.nn.functional.pixel_unshuffle(images, self.side)
        return torch.nn.functional.pixel_shuffle(self.unet(patches, steps, labels).sample, self.side)


def losses(model, noises, images, labels, args):
    """The squared error of the predicted velocity, of each picture."""
    noise = torch.randn_like(images)
    steps = torch.randint(0, noises.config.num_train_timesteps, (len(images),))
    if args.time_step >= 0:
        steps = torch.full_like(steps, args.time_step)
    if args.guidance:
        labels = torch.where(torch.rand(len(labels)) < DROPPED, NO_CLASS, labels)
    predicted = model(noises.add_noise(images, noise, steps), steps, labels if args.guidance else None)
    return (predicted - noises.get_velocity(images, noise, steps)).square().flatten(1).mean(1)


@torch.no_grad()
def paint(model, args, count):
    """Pictures in [-1, 1]; with guidance of all classes in turn."""
    scheduler = DDIMScheduler(**NOISES, clip_sample=True)
    scheduler.set_timesteps(args.sampling_steps)
    done = []
    for part in torch.arange(count).split(100):
        images, labels = torch.randn(len(part), 3, 32, 32), part % NO_CLASS
        for step in scheduler.timesteps:
            if args.guidance:
                free = model(images, step, torch.full_like(labels, NO_CLASS))
                velocity = free + args.guidance * (model(images, step, labels) - free)
            else:
                velocity = model(images, step)
            images = scheduler.step(velocity, step, images).prev_sample
        done.append(images)
    return torch.cat(done)


@torch.no_grad()
def sample_losses(model, noises, dataset, args, repeats=8):
    """The mean loss of every sample over several noises, the same for all models."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        batches = list(torch.utils.data.DataLoader(dataset, 250))
        rounds = [torch.cat([losses(model, noises, *batch, args) for batch in batches]) for _ in range(repeats)]
    return torch.stack(rounds).mean(0)


def evaluate(model, noises, test_set, ruler, args, folder, is_last):
    """Painting is slow: only after the last epoch."""
    model.eval()
    values = {"velocity_error": float(sample_losses(model, noises, test_set, args, repeats=1).mean())}
    if is_last:
        images = paint(model, args, args.samples)
        grids.save(images[:50], folder.path / "samples.png")
        values["frechet_distance_on_classifier_features"] = ruler.distance(images)
    model.train()
    return values


def main(argv=None):
    args = run.arguments(__doc__, PRESETS, argv)
    train_set = pictures.cifar10("train", args.limit, args.data)
    test_set = pictures.cifar10("test", 2 * args.samples, args.data)
    ruler = frechet.Ruler(pictures.cifar10("train", 10_000, args.data), test_set, args.data)
    torch.manual_seed(args.seed)
    model, noises = Patched(args), DDPMScheduler(**NOISES)
    optimizer = torch.optim.AdamW(model.parameters(), args.learning_rate)

    power = {"power": 2} if args.watches else {}  #> for squared errors: the score is then the sample's loss
    handler = tamis.prune(train_set, args.policy, epochs=args.epochs, options=args.options, **args.score, **power)  #>
    loader = handler.loader(args.batch_size, num_workers=args.workers)  #> instead of DataLoader(train_set, shuffle=True)
    if args.watches:  #> methods ogs-...
        handler.watch(model)  #>
    schedule = tamis.lr_by_progress(  #>
        lambda t: min(1.0, 20 * t + 0.02) * 0.5 * (1 + math.cos(math.pi * t)), handler, optimizer=optimizer
    )

    name = "ddpm with classifier-free guidance" if args.guidance else "ddpm"
    folder = run.Folder(args, handler, data="cifar10", model=name, metrics=METRICS)
    for epoch in folder.epochs(model=model, optimizer=optimizer):
        for images, labels in loader:
            loss = losses(model, noises, images, labels, args).mean()
            loss = handler.update(loss)  #>
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        is_last = epoch == handler.epochs - 1
        folder.end_epoch(lambda is_last=is_last: evaluate(model, noises, test_set, ruler, args, folder, is_last))
    if args.record:
        folder.record_true_losses(sample_losses(model.eval(), noises, train_set, args))
    return folder


if __name__ == "__main__":
    main()
