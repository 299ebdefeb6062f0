"""Semi-supervised training on pruned data: the loop of FixMatch, FlexMatch and Dash.

A few samples have labels. Of the others the model's own prediction on a weakly changed copy is the target for a strongly changed
copy, where a rule trusts it. Both sets are pruned, each by a handler of its own: the labelled one by the cross-entropy, the
unlabelled one by the scalar consistency loss. The lines that prune are marked with #>.
"""

import math

import tamis
import torch
import torch.nn.functional as F
from torch import nn

from recipes.kit import run
from recipes.kit.together import together

METRICS = [
    {"name": "accuracy", "unit": "fraction", "direction": "higher", "headline": True},
    {"name": "trusted", "unit": "fraction", "direction": "higher"},
    {"name": "trusted_and_right", "unit": "fraction", "direction": "higher"},
]


class Rule(nn.Module):
    """Says which predictions are trusted; FixMatch's: those above a fixed confidence. Its state is in its buffers."""

    def __init__(self, threshold):
        super().__init__()
        self.threshold = threshold

    def forward(self, probabilities, indices):
        """Of each sample whether it is trusted; `indices` are those in the unlabelled set."""
        return probabilities.max(1).values >= self.threshold

    def end_epoch(self, labelled_loss):
        """`labelled_loss`: its mean over the epoch."""


def split(labels, per_class, num_classes):
    """Indices of the first samples of each class: those that have a label."""
    chosen = [torch.nonzero(labels == k).flatten()[:per_class] for k in range(num_classes)]
    return torch.cat(chosen).sort().values.tolist()


class Consistency:
    """The loss of unlabelled samples. `views`: the functions that change a batch weakly and strongly."""

    def __init__(self, model, rule, views):
        self.model, self.rule, (self.weak, self.strong) = model, rule, views

    def targets(self, inputs, indices):
        """The predicted class of each sample, and 1 where it is trusted."""
        with torch.no_grad():
            probabilities = self.model(self.weak(inputs)).softmax(1)
            return probabilities.argmax(1), self.rule(probabilities, indices).float()

    def losses(self, inputs, indices, watch=lambda outputs: outputs):
        targets, trusted = self.targets(inputs, indices)
        return F.cross_entropy(watch(self.model(self.strong(inputs))), targets, reduction="none") * trusted, targets, trusted


@torch.no_grad()
def accuracy(model, dataset):
    model.eval()
    right = sum(int((model(inputs).argmax(1) == labels).sum()) for inputs, labels in torch.utils.data.DataLoader(dataset, 250))
    model.train()
    return right / len(dataset)


@torch.no_grad()
def sample_losses(consistency, dataset, repeats=4):
    """The mean consistency loss of every sample over several changes, the same for all models."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        batches = list(zip(torch.arange(len(dataset)).split(250), torch.utils.data.DataLoader(dataset, 250)))
        rounds = [torch.cat([consistency.losses(inputs, indices)[0] for indices, (inputs, _) in batches]) for _ in range(repeats)]
    return torch.stack(rounds).mean(0)


def train(args, data, sets, model, rule, views, name):
    """Trains on `sets`: labelled, unlabelled (whose labels only tell how many trusted predictions are right) and test set."""
    labelled_set, unlabelled_set, test_set = sets
    optimizer = torch.optim.AdamW(model.parameters(), args.learning_rate, weight_decay=args.weight_decay)
    consistency = Consistency(model, rule, views)

    unlabelled = tamis.prune(unlabelled_set, args.policy, epochs=args.epochs, options=args.options, **args.score)  #>
    labelled = tamis.prune(labelled_set, args.policy, epochs=args.epochs * args.passes, options=args.options)  #>
    loader = unlabelled.loader(args.batch_size, num_workers=args.workers)  #>
    labelled_loader = labelled.loader(args.labelled_batch_size)  #>
    schedule = tamis.lr_by_progress(lambda t: math.cos(7 / 16 * math.pi * t), unlabelled, optimizer=optimizer)  #>
    watch = {one: one.watch if one.needs == "output-gradients" else lambda outputs: outputs for one in (unlabelled, labelled)}  #>

    folder = run.Folder(args, unlabelled, others={"labelled": labelled}, data=data, model=name, metrics=METRICS)
    for _ in folder.epochs(model=model, optimizer=optimizer, rule=rule):
        model.train()
        seen, trusted_all, right, labelled_losses = 0, 0.0, 0.0, []
        for batch, due in together(loader, labelled_loader, args.passes):
            inputs, hidden = batch
            losses, targets, trusted = consistency.losses(inputs, batch.indices, watch[unlabelled])
            loss = args.unlabelled_weight * unlabelled.update(losses.mean())  #> the scalar loss of the unlabelled batch
            for inputs, labels in due:
                outputs = watch[labelled](model(views[0](inputs)))
                supervised = F.cross_entropy(outputs, labels)
                labelled_losses.append(supervised.item())
                loss = loss + labelled.update(supervised)  #> and that of the labelled one: each on its own handler
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            seen += len(targets)
            trusted_all += float(trusted.sum())
            right += float((trusted * (targets == hidden)).sum())
        rule.end_epoch(sum(labelled_losses) / max(1, len(labelled_losses)))
        shares = {"trusted": trusted_all / seen, "trusted_and_right": right / seen}
        folder.end_epoch(lambda shares=shares: {"accuracy": accuracy(model, test_set), **shares})
    if args.record:
        model.eval()
        rule.eval()
        folder.record_true_losses(sample_losses(consistency, unlabelled_set))
    return folder
