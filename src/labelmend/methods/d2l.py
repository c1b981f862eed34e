"""Dimensionality-driven learning: Ma et al. 2018, "Dimensionality-Driven Learning with Noisy Labels". Needs nothing.

While a network learns what classes have in common, its features fill fewer and fewer dimensions; when it begins to
memorise wrong labels, they fill more again. That turning point is looked for, and after it labels give way to the
network's own predictions, the faster the more the dimensions have grown.

Departures. An epoch's dimensionality is that of its training batches, in place of an extra pass over 1,280 samples. The
network does not go back to the epoch before the turning point, which would put a second network into every checkpoint.
Small networks memorise in the first fifth of a run, not after a third: so the turning point is looked for from epoch 2
of 120 on, not 10, and labels give way 8 times as fast as by i / T. As published, both gain nothing on digits.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..core import Batch, Learner, Method, Task
from ..detect.ledger import Ledger
from ..parts.dimensionality import local_dimension
from ..parts.losses import soft_cross_entropy
from ..parts.targets import hard
from .registry import method
from .timeline import Timeline
from .tracked import TrackedMethod, TrackedOptions

PUBLISHED = (120, (40, 80), 2)
"""Epochs, learning-rate drops, and the first epochs in which no turning point is looked for; Released: 10."""
FEWEST = 8
"""In a batch with fewer samples, neighbours say nothing of dimensions."""


@dataclass(frozen=True)
class D2LOptions(TrackedOptions):
    """What can be changed in dimensionality-driven learning with `--set`."""

    neighbours: int = field(
        default=20, metadata={"help": "neighbours that measure dimensionality, at most a batch less one", "least": 2}
    )
    pace: float = field(
        default=8.0, metadata={"help": "lambda is this multiple of the share of epochs that is over", "least": 0}
    )
    window: int = field(default=5, metadata={"help": "epochs that a turning point is measured against", "least": 2})


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


class DimensionalityDriven(TrackedMethod):
    """Plain cross-entropy up to the turning point, labels adapted by the predicted class after it."""

    per_sample = ("local",)
    local: Tensor
    dimensions: Tensor
    alpha: Tensor

    def __init__(self, options: D2LOptions, epochs: int) -> None:
        published, drops, first = PUBLISHED
        timeline = Timeline(published, drops, epochs)
        super().__init__(timeline.rate, track_every=options.track_every)
        self.options = options
        self.first = timeline.after(first)
        self.register_buffer("local", torch.zeros(0))
        self.register_buffer("dimensions", torch.zeros(epochs))
        self.register_buffer("alpha", torch.ones(()))

    def begin(self, task: Task, ledgers: Sequence[Ledger] = ()) -> None:
        """Once, before the first epoch."""
        super().begin(task, ledgers)
        self.local = torch.zeros(len(task), device=task.labels.device)

    def phase(self, epoch: int) -> str:
        """Whether the labels are learned as they are given."""
        return "given labels" if float(self.alpha) == 1 else "adapted labels"

    def epoch_begin(self, learners: Sequence[Learner], epoch: int) -> None:
        """Note the dimensionality of the epoch before, and set how far the labels are believed in this one."""
        if epoch > 1:
            self.dimensions[epoch - 2] = self.local.mean()
            known = self.dimensions[: epoch - 1].tolist()
            if turning_point(known, self.first, self.options.window) is not None:
                self.alpha.fill_(trust(known, self.options.pace * len(known) / len(self.dimensions)))

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator) -> Tensor:
        """Cross-entropy against y* = alpha y + (1 - alpha) z, z the predicted class, hard as in the released code."""
        (learner,) = learners
        with learner.features() as seen:
            logits = learner(batch.inputs).float()
        if len(batch) >= FEWEST:
            self.local[batch.index] = local_dimension(seen[0].detach(), self.options.neighbours)
        given = F.one_hot(batch.labels, self.classes).to(logits.dtype)
        targets = torch.lerp(hard(logits.detach(), epoch), given, self.alpha)
        loss = soft_cross_entropy(logits, targets).mean()
        learner.descend(loss)
        return loss.detach()


@method("d2l", "labels give way to predictions when features begin to fill more dimensions (Ma et al. 2018)")
def d2l(options: D2LOptions, epochs: int) -> Method:
    """Dimensionality-driven learning."""
    return DimensionalityDriven(options, epochs)
