"""Loss correction by a transition matrix, forward and backward (Patrini et al. 2017, "Making Deep Neural Networks
Robust to Label Noise: a Loss Correction Approach").

Needs nothing. What a first network predicts for samples that are surely of class i is row i of the matrix T. A second
one starts from scratch and learns by the loss corrected with T. As in the authors' code, a tenth of the samples is held
out from the first, and T is taken where their loss is lowest, before it memorises. Departures: the second learns the
given labels for as long as the first took to that point, because from its first step on the corrected loss can lose a
class of small data for good; both share the run's epochs, 75 and 225 of 300 with the learning rates of Arazo et al.
(2019); the last network counts, not the one of the lowest held-out loss. Row i is a mean over samples around the surest
30 % of a class (the 97th percentile, if there are ten), at the temperature that suits the held-out labels. Backward: T
is mixed with the identity, but only as far as its inverse needs it, and 1e-4 is added to probabilities.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..core import Batch, Learner, Method, Task, generator
from ..detect.ledger import Ledger
from ..parts import transitions
from .registry import method
from .timeline import Timeline
from .tracked import TrackedMethod, TrackedOptions

EPOCHS, DROPS, CORRECTED_FROM = 300, (100, 250), 76
SUREST = (0.1, 0.5)
"""Shares of the samples taken for a class, from the surest on, between which a row of T is their mean."""


@dataclass(frozen=True)
class LossCorrectionOptions(TrackedOptions):
    """What can be changed with `--set`."""

    held_out: float = field(
        default=0.1, metadata={"help": "share kept from the first network", "least": 0.01, "most": 0.5}
    )


@dataclass(frozen=True)
class BackwardOptions(LossCorrectionOptions):
    """What can be changed with `--set` in the backward correction."""

    largest: float = field(default=10.0, metadata={"help": "most that a sample may weigh in all", "least": 1})


class LossCorrection(TrackedMethod):
    """A first network that finds T, in epoch `ripe`, and a second one whose loss takes `matrix`: T as `prepared`."""

    records = frozenset({"losses", "mean_log_probs"})
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
        self.afresh_from, self.ripe = timeline.start(CORRECTED_FROM), 0
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
        """Which of the two networks learns, and how."""
        if epoch < self.afresh_from:
            return "first network"
        return "corrected loss" if self.corrects(epoch) else "second network"

    def corrects(self, epoch: int) -> bool:
        """Whether the second network has learned as long as the first had when it was best."""
        return epoch >= self.afresh_from + self.ripe

    def tracks(self, epoch: int) -> bool:
        """After each epoch of the first network, any of which may be its best."""
        return epoch < self.afresh_from or super().tracks(epoch)

    def epoch_begin(self, learners: Sequence[Learner], epoch: int) -> None:
        """The second network starts from scratch."""
        if epoch == self.afresh_from:
            for learner in learners:
                learner.reset()

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator) -> Tensor:
        """Learn the labels that are not held out, or all of them by the corrected loss."""
        (learner,) = learners
        logits = learner(batch.inputs).float()
        if self.corrects(epoch):
            loss = self.loss(logits, batch.labels, self.matrix).mean()
        else:
            weights = (~self.held_out[batch.index] | (epoch >= self.afresh_from)).float()
            losses = weights * F.cross_entropy(logits, batch.labels, reduction="none")
            loss = losses.sum() / weights.sum().clamp_min(1)
        learner.descend(loss)
        return loss.detach()

    def after_tracking(self, ledgers: Sequence[Ledger], epoch: int) -> None:
        """Estimate T anew whenever the first network is better than before; each of its passes counts by itself."""
        super().after_tracking(ledgers, epoch)
        (ledger,), labels = ledgers, self.labels[self.held_out]
        if epoch >= self.afresh_from or ledger.mean_log_probs is None:
            return
        log_probs = ledger.mean_log_probs.float()
        log_probs = log_probs / transitions.best_temperature(log_probs[self.held_out], labels)
        held_out_loss = F.cross_entropy(log_probs[self.held_out], labels)
        if held_out_loss < self.lowest:
            self.lowest, self.ripe = held_out_loss, epoch
            self.matrix = self.prepared(transitions.from_certain_samples(log_probs.softmax(dim=1), between=SUREST))
        ledger.restart()

    def get_extra_state(self) -> dict[str, int]:
        """The epoch of the matrix: a plain number, because steps go by it and must not wait for a GPU."""
        return {"ripe": self.ripe}

    def set_extra_state(self, state: dict[str, int]) -> None:
        """Take back what `get_extra_state` gave."""
        self.ripe = state["ripe"]


@method("forward", "predictions brought to the noise by an estimated transition matrix (Patrini et al. 2017)")
def forward(options: LossCorrectionOptions, epochs: int) -> Method:
    """Forward correction (Theorem 2): the predictions are brought to the noise."""
    return LossCorrection(options, Timeline(EPOCHS, DROPS, epochs), transitions.forward_cross_entropy)


@method("backward", "losses corrected by the inverse of an estimated transition matrix (Patrini et al. 2017)")
def backward(options: BackwardOptions, epochs: int) -> Method:
    """Backward correction (Theorem 1): the losses are brought back from the noise."""
    return LossCorrection(
        options,
        Timeline(EPOCHS, DROPS, epochs),
        transitions.backward_cross_entropy,
        prepared=lambda transition: transitions.bounded_inverse(transition, largest=options.largest),
    )
