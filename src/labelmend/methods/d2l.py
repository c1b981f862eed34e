"""Dimensionality-driven learning: Ma et al. 2018, "Dimensionality-Driven Learning with Noisy Labels".

While a network learns what classes have in common, its features fill fewer and fewer dimensions; when it begins to
memorise wrong labels, they fill more again. That turning point is looked for, and after it labels give way to the
network's own predictions, the faster the more the dimensions have grown. Needs no trusted samples.

Departures. An epoch's dimensionality is that of its training batches, in place of an extra pass over 1,280 samples. The
network does not go back to the epoch before the turning point, which would put a second network into every checkpoint.
Small networks memorise in the first fifth of a run, not after a third: so the turning point is looked for from epoch 2
of 120 on, not 10, and labels give way 8 times as fast as by i / T. As published, both gain nothing on digits.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import Learner, Step, Task
from ..parts.losses import soft_cross_entropy
from ..parts.targets import hard
from .registry import method
from .tracked import PublishedMethod, TrackedOptions, setting

UNSEARCHED = 2
"""First published epochs in which no turning point is looked for; Released: 10."""
FEWEST = 8
"""In a batch with fewer samples, neighbours say nothing of dimensions."""


@dataclass(frozen=True)
class D2LOptions(TrackedOptions):
    """What can be changed in dimensionality-driven learning with `--set`."""

    neighbours: int = setting(20, "neighbours that measure dimensionality, at most a batch less one", least=2)
    pace: float = setting(8.0, "lambda is this multiple of the share of epochs that is over", least=0)
    window: int = setting(5, "epochs that a turning point is measured against", least=2)


def local_dimension(features: Tensor, neighbours: int = 20) -> Tensor:
    """Local intrinsic dimensionality of each row among the others, [n] (Ma et al. 2018, Amsaleg et al. 2015).

    The maximum-likelihood estimate -1 / mean(log(r_i / r_k)) from the distances r to the k nearest rows; a batch of n
    has at most n - 1. Where the distances are all alike they say nothing, and the estimate is 0. It is too high by the
    factor k / (k - 2) where density is even, and too low where neighbourhoods reach past the edge of the data.
    """
    apart = torch.cdist(features.float(), features.float(), compute_mode="donot_use_mm_for_euclid_dist")
    apart.fill_diagonal_(float("inf"))
    nearest = apart.topk(min(neighbours, len(features) - 1), largest=False).values.clamp_min(1e-12)
    spread = (nearest[:, -1:] / nearest).log().mean(dim=1)
    return torch.where(spread > 1e-6, 1 / spread, 0.0)


def turning_point(dimensions: Sequence[float], first: int, window: int) -> int | None:
    """The first epoch, counted from 0, that is two standard deviations above the epochs of the window before it.

    It is looked for when `first` epochs and a window are over; None where there is none.
    """
    for epoch in range(first + window, len(dimensions)):
        before = torch.tensor(dimensions[epoch - window : epoch], dtype=torch.float64)
        if dimensions[epoch] - before.mean() > 2 * before.std(correction=0):
            return epoch
    return None


def trust(dimensions: Sequence[float], progress: float) -> float:
    """The share of the given label, alpha = exp(-lambda LID_i / min LID_j, j < i), by the epochs so far."""
    return math.exp(-progress * dimensions[-1] / max(min(dimensions[:-1]), 1e-12))


@method("d2l")
class DimensionalityDriven(PublishedMethod):
    """Labels give way to predictions when features begin to fill more dimensions (Ma et al. 2018)."""

    published = (120, (40, 80))
    per_sample = ("local",)
    options: D2LOptions
    local: Tensor
    dimensions: Tensor
    alpha: Tensor

    def initial_state(self, task: Task) -> Mapping[str, Tensor]:
        epochs = self.timeline.epochs
        return {"local": torch.zeros(len(task)), "dimensions": torch.zeros(epochs), "alpha": torch.ones(())}

    def phase(self, epoch: int) -> str:
        return "given labels" if float(self.alpha) == 1 else "adapted labels"

    def epoch_begin(self, learners: Sequence[Learner], epoch: int) -> None:
        """Note the dimensionality of the epoch before, and set how far the labels are believed in this one."""
        if epoch > 1:
            self.dimensions[epoch - 2] = self.local.mean()
            known = self.dimensions[: epoch - 1].tolist()
            if turning_point(known, self.timeline.after(UNSEARCHED), self.options.window) is not None:
                self.alpha.fill_(trust(known, self.options.pace * len(known) / len(self.dimensions)))

    def objective(self, step: Step) -> Tensor:
        """Cross-entropy against y* = alpha y + (1 - alpha) z, z the predicted class, hard as in the released code."""
        with step.learner.features() as seen:
            logits = step.logits
        if len(step.batch) >= FEWEST:
            self.local[step.batch.index] = local_dimension(seen[0].detach(), self.options.neighbours)
        targets = torch.lerp(hard(logits.detach(), step.epoch), step.labels, self.alpha)
        return soft_cross_entropy(logits, targets).mean()
