"""Loss correction by a transition matrix, forward and backward (Patrini et al. 2017, "Making Deep Neural Networks
Robust to Label Noise: a Loss Correction Approach").

Needs nothing. The network first learns the given labels; what it predicts for samples that are surely of class i is row
i of the matrix T. Then it learns by the loss corrected with T. As in the authors' code, a tenth of the samples is held
out, and the network of the lowest loss on their given labels counts, in either stage: else T and the end of the run are
of one that has memorised. The last epoch goes back to it and learns nothing.
Departures: the corrected loss goes on from the first stage, after 75 of 300 epochs and with learning rates as when Arazo
et al. (2019) ran it, because from scratch it loses classes of small data for good. Row i is a mean over samples around
the surest 30% of a class (the 97th percentile, if there are 10), not one sample, of predictions at the temperature that
suits the held-out labels best. Backward: T is mixed with the identity, as the authors can, but only as far as its inverse
needs it, and 1e-4 is added to probabilities, which they bound at 1e-7.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
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
HIGHEST = torch.finfo(torch.float32).max


@dataclass(frozen=True)
class LossCorrectionOptions(WatchedOptions):
    """What can be changed with `--set`."""

    track_every: int = field(default=1, metadata={"help": "epochs between two tracking passes", "least": 1})
    held_out: float = field(
        default=0.1, metadata={"help": "share of the samples that are not learned", "least": 0.01, "most": 0.5}
    )


@dataclass(frozen=True)
class BackwardOptions(LossCorrectionOptions):
    """What can be changed with `--set` in the backward correction."""

    largest: float = field(
        default=10.0, metadata={"help": "most that a sample may weigh: row sum of |inverse of T|", "least": 1}
    )


CorrectedLoss = Callable[[Tensor, Tensor, Tensor], Tensor]


def flat_state(network: nn.Module) -> Tensor:
    """All weights and statistics of a network, in a row."""
    return torch.cat([values.detach().flatten().float() for values in network.state_dict().values()])


def restore(learner: Learner, flat: Tensor) -> None:
    """Put back what `flat_state` gave; no momentum."""
    values = list(learner.network.state_dict().values())
    with torch.no_grad():
        for value, kept in zip(values, flat.split([value.numel() for value in values]), strict=True):
            value.copy_(kept.view_as(value))
    learner.optimiser.state.clear()


class LossCorrection(Watched):
    """A first stage that finds T, and a second one that learns by the loss corrected with it.

    `matrix` is what the loss takes: T as `prepared`. `best` are the weights of the `lowest` held-out loss of a stage.
    """

    records = frozenset({"losses", "beliefs"})
    matrix: Tensor
    lowest: Tensor
    improved: Tensor
    best: Tensor

    def __init__(
        self, options: LossCorrectionOptions, epochs: int, loss: CorrectedLoss, *, prepared: Callable[[Tensor], Tensor]
    ) -> None:
        timeline = Timeline(EPOCHS, DROPS, epochs)
        super().__init__(timeline.rate, track_every=options.track_every, needs_fresh=(epochs,))
        self.options, self.epochs, self.loss, self.prepared = options, epochs, loss, prepared
        self.corrects_from = timeline.start(CORRECTED_FROM)
        for name in ("matrix", "lowest", "improved", "best"):
            self.register_buffer(name, torch.zeros(0))

    def begin(self, task: Task, ledgers: Sequence[Ledger] = ()) -> None:
        """No noise is known of yet, and some samples are held out."""
        super().begin(task, ledgers)
        device, samples = task.labels.device, len(task)
        self.labels = task.labels
        self.matrix = torch.eye(task.classes, device=device)
        self.lowest = torch.tensor(HIGHEST, device=device)
        self.improved = torch.tensor(False, device=device)
        chosen = torch.randperm(samples, generator=generator(0, "held out"))
        self.held_out = (chosen < max(1, round(self.options.held_out * samples))).to(device)

    def phase(self, epoch: int) -> str:
        """Which stage it is in."""
        if epoch < self.corrects_from:
            return "given labels"
        return "best epoch" if self._is_over(epoch) else "corrected loss"

    def tracks(self, epoch: int) -> bool:
        """After each epoch of the first stage, and as often as was asked for in the second."""
        return epoch < self.corrects_from or super().tracks(epoch)

    def epoch_begin(self, learners: Sequence[Learner], epoch: int) -> None:
        """Keep a network that was better than those before; after each stage, go back to its best."""
        (learner,), (ledger,) = learners, self.suspicion.ledgers
        if self.improved:
            self.best = flat_state(learner.network)
            self.improved = torch.zeros_like(self.improved)
        if epoch == self.corrects_from or self._is_over(epoch):
            restore(learner, self.best)
            ledger.restart()
            self.lowest = torch.full_like(self.lowest, HIGHEST)

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator) -> Tensor:
        """Learn the labels that are not held out by the loss of the stage, if it is not over."""
        (learner,) = learners
        if self._is_over(epoch):
            with learner.evaluating():
                return self.loss(learner(batch.inputs).float(), batch.labels, self.matrix).mean()
        logits, weights = learner(batch.inputs).float(), (~self.held_out[batch.index]).float()
        if epoch < self.corrects_from:
            losses = F.cross_entropy(logits, batch.labels, reduction="none")
        else:
            losses = self.loss(logits, batch.labels, self.matrix)
        loss = (weights * losses).sum() / weights.sum().clamp_min(1)
        learner.descend(loss)
        return loss.detach()

    def epoch_end(self, ledgers: Sequence[Ledger], epoch: int) -> None:
        """See whether the network is better than before; if it is in the first stage, T is estimated anew."""
        super().epoch_end(ledgers, epoch)
        (ledger,), held_out, labels = ledgers, self.held_out, self.labels[self.held_out]
        if ledger.beliefs is None:
            return
        first, beliefs = epoch < self.corrects_from, ledger.beliefs.float()
        losses = ledger.losses[held_out] if first else self.loss(beliefs[held_out], labels, self.matrix)
        self.improved = losses.mean() < self.lowest
        self.lowest = torch.minimum(losses.mean(), self.lowest)
        if first and self.improved:
            posteriors = (beliefs / best_temperature(beliefs[held_out], labels)).softmax(dim=1)
            self.matrix = self.prepared(from_certain_samples(posteriors, between=SUREST))

    def _is_over(self, epoch: int) -> bool:
        return epoch == self.epochs > self.corrects_from

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """The network's size is not known before there is one to keep."""
        self.best = torch.empty_like(state[f"{prefix}best"], device=self.matrix.device)
        super()._load_from_state_dict(state, prefix, *rest)


@method("forward", "the loss of predictions that an estimate of the noise was applied to (Patrini et al. 2017)")
def forward(options: LossCorrectionOptions, epochs: int) -> Method:
    """Forward correction (Theorem 2): the predictions are brought to the noise."""
    return LossCorrection(options, epochs, forward_cross_entropy, prepared=lambda transition: transition)


@method("backward", "losses that an estimate of the noise is inverted on (Patrini et al. 2017)")
def backward(options: BackwardOptions, epochs: int) -> Method:
    """Backward correction (Theorem 1): the losses are brought back from the noise."""
    return LossCorrection(
        options,
        epochs,
        backward_cross_entropy,
        prepared=lambda transition: bounded_inverse(transition, largest=options.largest),
    )
