"""Depth from several views, as Ada-MVS does: a cost volume, then a second one with intervals of each pixel's own.

    python -m recipes.stereo.adamvs --method bls-infobatch --seed 0 --out runs/adamvs

Trained on rendered views of real terrain, tested on other continents; a real stereo pair is a check after the last epoch. Depths
are in units of the renderer (recipes/kit/terrain.py). depths.png in the folder shows reference, truth and result. The lines that
prune are marked with #>.
"""

import math

import tamis
import torch
import torch.nn.functional as F
from torch import nn

from recipes.kit import grids, run, terrain

PRESETS = {
    "quick": {
        "limit": 160, "test_limit": 80, "size": 32, "views": 3, "epochs": 10, "prune": 0.3, "batch_size": 8,
        "learning_rate": 4e-3, "width": 8, "planes": 24, "fine_planes": 8, "workers": 0,
    },
    "full": {
        "limit": 20_000, "test_limit": 1000, "size": 192, "views": 5, "epochs": 30, "prune": 0.3, "batch_size": 8,
        "learning_rate": 1e-3, "width": 32, "planes": 48, "fine_planes": 16, "workers": 4,
    },
}
INTERVAL = 0.25  # units: what errors are counted in
METRICS = [
    {"name": "below_3_intervals", "unit": "fraction", "direction": "higher", "headline": True},
    {"name": "below_0.6_units", "unit": "fraction", "direction": "higher"},
    {"name": "mean_error", "unit": "units", "direction": "lower"},
    {"name": "real_pair_mean_error", "unit": "units", "direction": "lower"},
]
NEAR, FAR = terrain.HEIGHT - terrain.TALLEST, terrain.HEIGHT


def layers(kind, norm, *widths):
    made = [(kind(a, b, 3, padding=1, bias=False), norm(b), nn.ReLU()) for a, b in zip(widths, widths[1:])]
    return nn.Sequential(*(layer for group in made for layer in group))


class Matcher(nn.Module):
    """From a cost volume to the probability of each plane at each pixel."""

    def __init__(self, width):
        super().__init__()
        self.weigh = nn.Sequential(nn.Conv3d(width, 1, 1), nn.Sigmoid())
        self.body = nn.Sequential(layers(nn.Conv3d, nn.BatchNorm3d, width, width, width), nn.Conv3d(width, 1, 3, padding=1))

    def forward(self, features, planes, cameras):
        """`features` [N, views, C, h, w], `planes` [N, D, h, w] of depths, `cameras` in pixels of these features."""
        reference, total, weights = features[:, 0, :, None], 0.0, 0.0
        for view in range(1, features.shape[1]):
            gap = (reference - warp(features[:, view], planes, cameras[:, view])).square()
            weight = self.weigh(gap)  # of a view at a plane and pixel: less where it is hidden or leaves the picture
            total, weights = total + weight * gap, weights + weight
        return self.body(total / (weights + 1e-3)).squeeze(1).softmax(1)


def warp(features, planes, cameras):
    """What a view has at the place of each pixel of the reference, for each plane: [N, C, D, h, w]."""
    count, depths, height, width = planes.shape
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    places = torch.stack([columns, rows], -1) + terrain.shift(cameras[:, None, None, None], planes)
    places = (2 * places + 1) / torch.tensor([width, height]) - 1
    found = F.grid_sample(features, places.flatten(1, 2), padding_mode="border", align_corners=False)
    return found.view(count, -1, depths, height, width)


class AdaMvs(nn.Module):
    """forward: depth at half the size and at full size."""

    def __init__(self, width, planes, fine_planes):
        super().__init__()
        self.planes, self.fine_planes = planes, fine_planes
        self.fine = layers(nn.Conv2d, nn.BatchNorm2d, 3, width, width)
        self.coarse = layers(nn.Conv2d, nn.BatchNorm2d, width, 2 * width, width)
        self.matchers = nn.ModuleList([Matcher(width), Matcher(width)])

    def forward(self, pictures, cameras):
        count, views, _, height, width = pictures.shape
        fine = self.fine(pictures.flatten(0, 1))
        coarse = self.coarse(F.avg_pool2d(fine, 2)).unflatten(0, (count, views))
        planes = torch.linspace(NEAR, FAR, self.planes)[None, :, None, None].expand(count, -1, height // 2, width // 2)
        shares = self.matchers[0](coarse, planes, cameras / 2)
        first = (shares * planes).sum(1)
        deviation = (shares * (planes - first[:, None]).square()).sum(1).sqrt()
        # The adaptive interval: narrow where the first stage is sure.
        reach = (1.5 * deviation).clamp(INTERVAL, 6.0).detach()
        middle, reach = (F.interpolate(x[:, None], (height, width), mode="bilinear") for x in (first.detach(), reach))
        planes = middle + reach * torch.linspace(-1, 1, self.fine_planes)[:, None, None]
        shares = self.matchers[1](fine.unflatten(0, (count, views)), planes, cameras)
        return first, (shares * planes).sum(1)


def losses(outputs, depths):
    """Of each sample: the error of both stages, those below an interval squared."""
    coarse = F.avg_pool2d(depths[:, None], 2)[:, 0]
    each = [F.smooth_l1_loss(out, truth, reduction="none", beta=INTERVAL) for out, truth in zip(outputs, (coarse, depths))]
    return sum(error.flatten(1).mean(1) for error in each)


@torch.no_grad()
def sample_losses(model, dataset):
    """The loss of every sample alone."""
    model.eval()
    batches = torch.utils.data.DataLoader(dataset, 20)
    return torch.cat([losses(model(pictures, cameras), depths) for pictures, depths, cameras in batches])


@torch.no_grad()
def evaluate(model, test_set, args, folder, is_last):
    model.eval()
    results = torch.cat([model(pictures, cameras)[1] for pictures, _, cameras in torch.utils.data.DataLoader(test_set, 20)])
    error = (results - test_set.depths).abs()
    values = {
        "below_3_intervals": float((error < 3 * INTERVAL).float().mean()), "below_0.6_units": float((error < 0.6).float().mean()),
        "mean_error": float(error.mean()),
    }
    if is_last:
        pictures, depth, cameras = terrain.motorcycle(data=args.data)
        values["real_pair_mean_error"] = float((model(pictures[None], cameras[None])[1][0] - depth).abs().nanmean())
        shown = torch.cat([test_set.depths[:8], results[:8]])[:, None].expand(-1, 3, -1, -1)
        shown = 1 - 2 * (shown - NEAR) / (FAR - NEAR)
        grids.save(torch.cat([test_set.pixels[:8, 0].float() / 127.5 - 1, shown]), folder.path / "depths.png", columns=8)
    model.train()
    return values


def main(argv=None):
    args = run.arguments(__doc__, PRESETS, argv)
    train_set = terrain.rendered("train", args.limit, args.size, args.views, data=args.data)
    test_set = terrain.rendered("test", args.test_limit, args.size, args.views, data=args.data)
    torch.manual_seed(args.seed)
    model = AdaMvs(args.width, args.planes, args.fine_planes)
    optimizer = torch.optim.AdamW(model.parameters(), args.learning_rate, weight_decay=0.01)

    handler = tamis.prune(train_set, args.policy, epochs=args.epochs, options=args.options, **args.score)  #>
    loader = handler.loader(args.batch_size, num_workers=args.workers)  #> instead of DataLoader(train_set, shuffle=True)
    if args.watches:  #> methods ogs-...
        handler.watch(model)  #> both depths: they are both in the loss
    schedule = tamis.lr_by_progress(lambda t: 0.5 * (1 + math.cos(math.pi * t)), handler, optimizer=optimizer)  #>

    folder = run.Folder(args, handler, data="rendered terrain", model="Ada-MVS-style cascade", metrics=METRICS)
    for epoch in folder.epochs(model=model, optimizer=optimizer):
        model.train()
        for pictures, depths, cameras in loader:
            loss = losses(model(pictures, cameras), depths).mean()
            loss = handler.update(loss)  #>
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        is_last = epoch == handler.epochs - 1
        folder.end_epoch(lambda is_last=is_last: evaluate(model, test_set, args, folder, is_last))
    if args.record:
        folder.record_true_losses(sample_losses(model, train_set))
    return folder


if __name__ == "__main__":
    main()
