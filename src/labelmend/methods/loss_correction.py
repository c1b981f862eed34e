"""Loss correction by a transition matrix, forward and backward (Patrini et al. 2017, "Making Deep Neural Networks
Robust to Label Noise: a Loss Correction Approach").

Needs nothing. A first network learns the given labels, and what it predicts for samples that are surely of class i is
row i of the matrix T. A second one starts from scratch with the loss corrected by T. As in the authors' code, a tenth
of the samples is held out from the first network, and T is taken where their loss is lowest, before it memorises.
Departures: both networks share the run's epochs, 75 and 225 of 300 with the learning rates of Arazo et al. (2019), and
the second is the last one, not the one of the lowest held-out loss. Row i is a mean over samples around the surest 30 %
of a class (the 97th percentile, if there are ten), not one sample, at the temperature that suits the held-out labels
best. Backward: T is mixed with the identity, as the authors can, but only as far as its inverse needs it, and 1e-4 is
added to probabilities, which they bound at 1e-7.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..core import Batch, Learner, Ledger, Method, Task, generator
from ..parts.transitions import (
    backward_cross_entropy,
    best_temperature,
    bounded_inverse,
    forward_cross_entropy,
    from_certain_samples,
)
from .registry import method
from .timeline import Timeline
from .watched import Watched, WatchedOptions

EPOCHS, DROPS, CORRECTED_FROM = 300, (100, 250), 76
SUREST = (0.1, 0.5)
"""Shares of the samples taken for a class, from the surest on, between which a row of T is their mean."""


@dataclass(frozen=True)
class LossCorrectionOptions(WatchedOptions):
    """What can be changed with `--set`."""

    held_out: float = field(
        default=0.1, metadata={"help": "share of the samples kept from the first network", "least": 0.01, "most": 0.5}
    )


@dataclass(frozen=True)
class BackwardOptions(LossCorrectionOptions):
    """What can be changed with `--set` in the backward correction."""

    largest: float = field(
        default=10.0, metadata={"help": "most that a sample may weigh: row sum of |inverse of T|", "least": 1}
    )


class LossCorrection(Watched):
    """A first network that finds T, and a second one that learns by the loss corrected with it.

    `matrix` is what the loss takes: T as `prepared`.
    """

    records = frozenset({"losses", "beliefs"})
    matrix: Tensor
    lowest: Tensor

    def __init__(
        self,
        options: LossCorrectionOptions,
        timeline: Timeline,
        loss: Callable[[Tensor, Tensor, Tensor], Tensor],
        *,
        prepared: Callable[[Tensor], Tensor] = lambda transition: transition,
    ) -> None:
        super().__init__(timeline.rate, track_every=options.track_every)
        self.options, self.loss, self.prepared = options, loss, prepared
        self.corrects_from = timeline.start(CORRECTED_FROM)
        self.register_buffer("matrix", torch.zeros(0))
        self.register_buffer("lowest", torch.zeros(()))

    def begin(self, task: Task, ledgers: Sequence[Ledger] = ()) -> None:
        """No noise is known of yet, and some samples are held out."""
        super().begin(task, ledgers)
        device, samples = task.labels.device, len(task)
        self.labels = task.labels
        self.matrix = torch.eye(task.classes, device=device)
        self.lowest = torch.tensor(torch.finfo(torch.float32).max, device=device)
        chosen = torch.randperm(samples, generator=generator(0, "held out"))
        self.held_out = (chosen < max(1, round(self.options.held_out * samples))).to(device)

    def phase(self, epoch: int) -> str:
        """Which of the two networks learns."""
        return "first network" if epoch < self.corrects_from else "corrected loss"

    def tracks(self, epoch: int) -> bool:
        """After each epoch of the first network, any of which may be its best."""
        return epoch < self.corrects_from or super().tracks(epoch)

    def epoch_begin(self, learners: Sequence[Learner], epoch: int) -> None:
        """The second network starts from scratch."""
        if epoch == self.corrects_from:
            for learner in learners:
                learner.reset()

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator) -> Tensor:
        """Learn the labels that are not held out, or all of them by the corrected loss."""
        (learner,) = learners
        logits = learner(batch.inputs).float()
        if epoch < self.corrects_from:
            weights = (~self.held_out[batch.index]).float()
            losses = weights * F.cross_entropy(logits, batch.labels, reduction="none")
            loss = losses.sum() / weights.sum().clamp_min(1)
        else:
            loss = self.loss(logits, batch.labels, self.matrix).mean()
        learner.descend(loss)
        return loss.detach()

    def epoch_end(self, ledgers: Sequence[Ledger], epoch: int) -> None:
        """Estimate T anew whenever the first network is better than before; each of its passes counts by itself."""
        super().epoch_end(ledgers, epoch)
        (ledger,), labels = ledgers, self.labels[self.held_out]
        if epoch >= self.corrects_from or ledger.beliefs is None:
            return
        beliefs = ledger.beliefs.float()
        beliefs = beliefs / best_temperature(beliefs[self.held_out], labels)
        held_out_loss = F.cross_entropy(beliefs[self.held_out], labels)
        if held_out_loss < self.lowest:
            self.lowest = held_out_loss
            self.matrix = self.prepared(from_certain_samples(beliefs.softmax(dim=1), between=SUREST))
        ledger.restart()


@method("forward", "predictions brought to the noise by an estimated transition matrix (Patrini et al. 2017)")
def forward(options: LossCorrectionOptions, epochs: int) -> Method:
    """Forward correction (Theorem 2): the predictions are brought to the noise."""
    return LossCorrection(options, Timeline(EPOCHS, DROPS, epochs), forward_cross_entropy)


@method("backward", "losses corrected by the inverse of an estimated transition matrix (Patrini et al. 2017)")
def backward(options: BackwardOptions, epochs: int) -> Method:
    """Backward correction (Theorem 1): the losses are brought back from the noise."""
    return LossCorrection(
        options,
        Timeline(EPOCHS, DROPS, epochs),
        backward_cross_entropy,
        prepared=lambda transition: bounded_inverse(transition, largest=options.largest),
    )
