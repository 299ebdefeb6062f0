"""The same jobs in plain numpy, scikit-learn and torch, the way research code does them.

Each function does what tamis's core does for one batch or one epoch: a list of kept indices, numpy's
choice and shuffle, scikit-learn's KMeans with n_init=10, groups collected in Python.
"""

import time

import numpy as np
import torch


class PythonBatchLoss:
    """Moving average of batch losses, with the weights that scale the loss."""

    def __init__(self, num_samples, alpha=0.7):
        self.scores = np.zeros(num_samples, dtype=np.float32)
        self.weights = np.ones(num_samples, dtype=np.float32)
        self.alpha = alpha

    def update(self, indices, loss):
        batch = indices.numpy()
        value = loss.item()
        self.scores[batch] = self.alpha * self.scores[batch] + (1 - self.alpha) * value
        return loss * float(self.weights[batch].mean())


class PythonSampleLoss:
    """The last loss of every sample, with the weights that scale the losses: the authors' update of InfoBatch."""

    def __init__(self, num_samples):
        self.scores = torch.full((num_samples,), 3.0)
        self.weights = torch.ones(num_samples)

    def update(self, indices, losses):
        weights = self.weights[indices].to(losses.device)
        values = losses.detach().clone()
        self.scores[indices.cpu().long()] = values.cpu()
        losses.mul_(weights)
        return losses.mean()


def infobatch_plan(scores, prune_ratio=0.5):
    """Indices and weights of the next epoch by InfoBatch."""
    below = scores < scores.mean()
    easy = np.where(below)[0]
    kept = list(np.where(np.invert(below))[0])
    chosen = np.random.choice(easy, int((1 - prune_ratio) * len(easy)), replace=False)
    weights = np.ones(len(scores), dtype=np.float32)
    if len(chosen) > 0:
        weights[chosen] = 1 / (1 - prune_ratio)
        kept.extend(chosen)
    np.random.shuffle(kept)
    return kept, weights


def torch_infobatch_plan(scores, prune_ratio=0.5):
    """The same with torch's operations instead of numpy's and lists."""
    values = torch.from_numpy(scores)
    below = values < values.mean()
    easy = below.nonzero().squeeze(1)
    chosen = easy[torch.randperm(len(easy))[:int((1 - prune_ratio) * len(easy))]]
    weights = torch.ones(len(values))
    weights[chosen] = 1 / (1 - prune_ratio)
    kept = torch.cat([(~below).nonzero().squeeze(1), chosen])
    return kept[torch.randperm(len(kept))], weights


def seta_plan(scores, prune_ratio=0.5, num_groups=10, window_scale=0.5, step=1):
    """Indices of the next epoch by SeTa."""
    from sklearn.cluster import KMeans

    subset = np.random.choice(len(scores), int((1 - prune_ratio) * len(scores)), replace=False)
    means = KMeans(n_clusters=num_groups, n_init=10).fit(scores[subset].reshape(-1, 1))
    groups = {group: [] for group in range(num_groups)}
    for index, group in zip(subset, means.labels_):
        groups[group].append(index)
    order = np.argsort(means.cluster_centers_.ravel())
    window = round(num_groups * window_scale)
    start = step % (num_groups - window + 1)
    kept = [index for group in order[start:start + window] for index in groups[group]]
    np.random.shuffle(kept)
    return kept


def seconds(function, repeats):
    """The least time of some calls."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def update_seconds(num_samples, batch_size, calls=2000):
    """Median time of one update."""
    job = PythonBatchLoss(num_samples)
    generator = torch.Generator().manual_seed(1)
    batches = [torch.randint(num_samples, (batch_size,), generator=generator) for _ in range(calls)]
    loss = torch.tensor(1.5)
    times = []
    for batch in batches:
        start = time.perf_counter()
        job.update(batch, loss)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def randperm_seconds(num_samples, repeats):
    return seconds(lambda: torch.randperm(num_samples), repeats)


def torch_state_seconds(scores, path, repeats):
    """torch.save (synced, as tamis's is) and torch.load of the scores and one float weight each."""
    import os

    state = {"scores": torch.from_numpy(scores), "weights": torch.ones(len(scores))}

    def save():
        with open(path, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())

    saved = seconds(save, repeats)
    loaded = seconds(lambda: torch.load(path), repeats)
    os.remove(path)
    return saved, loaded
