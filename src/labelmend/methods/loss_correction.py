"""Loss correction by a transition matrix, forward and backward (Patrini et al. 2017, "Making Deep Neural Networks
Robust to Label Noise: a Loss Correction Approach").

What a first network predicts for samples that are surely of class i is row i of the matrix T. A second one starts from
scratch and learns by the loss corrected with T. As in the authors' code, a tenth of the samples is held out from the
first, and T is taken where their loss is lowest, before it memorises. Needs no trusted samples. Departures: the
second learns the given labels for as long as the first took to that point, because from its first step on the corrected
loss can lose a class of small data for good; both share the run's epochs, 75 and 225 of 300 with the learning rates of
Arazo et al. (2019); the last network counts, not the one of the lowest held-out loss. Row i is a mean over samples
around the surest 30 % of a class (the 97th percentile, if there are ten), at the temperature that suits the held-out
labels. Backward: T is mixed with the identity, but only as far as its inverse needs it, and 1e-4 is added to
probabilities.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..core import Learner, Step, Task, generator
from ..detect.ledger import Ledger
from ..parts import transitions
from .registry import method
from .tracked import PublishedMethod, TrackedOptions, setting

CORRECTED_FROM = 76
SUREST = (0.1, 0.5)
"""Shares of the samples taken for a class, from the surest on, between which a row of T is their mean."""


@dataclass(frozen=True)
class LossCorrectionOptions(TrackedOptions):
    """What can be changed with `--set`."""

    held_out: float = setting(0.1, "share kept from the first network", least=0.01, most=0.5)


@dataclass(frozen=True)
class BackwardOptions(LossCorrectionOptions):
    """What can be changed with `--set` in the backward correction."""

    largest: float = setting(10.0, "most that a sample may weigh in all", least=1)


class LossCorrection(PublishedMethod):
    """A first network that finds T, in epoch `ripe`, and a second one whose loss takes `matrix`: T as `prepared`.

    `ripe` is a plain number, because steps go by it and must not wait for a GPU.
    """

    published = (300, (100, 250))
    records = frozenset({"losses", "mean_log_probs"})
    options: LossCorrectionOptions
    matrix: Tensor
    lowest: Tensor
    loss: Callable[[Tensor, Tensor, Tensor], Tensor]

    def __init__(self, options: LossCorrectionOptions, epochs: int) -> None:
        super().__init__(options, epochs)
        self.afresh_from, self.ripe = self.timeline.start(CORRECTED_FROM), 0

    def initial_state(self, task: Task) -> Mapping[str, Tensor]:
        chosen = torch.randperm(len(task), generator=generator(0, "held out"))
        self.held_out = (chosen < max(1, round(self.options.held_out * len(task)))).to(task.labels.device)
        return {"matrix": torch.eye(task.classes), "lowest": torch.tensor(torch.finfo(torch.float32).max)}

    def prepared(self, transition: Tensor) -> Tensor:
        """What the loss takes of T: by default, T itself."""
        return transition

    def phase(self, epoch: int) -> str:
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

    def objective(self, step: Step) -> Tensor:
        """The loss of the labels that are not held out, or the corrected loss of all of them."""
        labels, index = step.batch.labels, step.batch.index
        if self.corrects(step.epoch):
            return self.loss(step.logits, labels, self.matrix).mean()
        weights = (~self.held_out[index] | (step.epoch >= self.afresh_from)).float()
        losses = weights * F.cross_entropy(step.logits, labels, reduction="none")
        return losses.sum() / weights.sum().clamp_min(1)

    def after_tracking(self, ledgers: Sequence[Ledger], epoch: int) -> None:
        """Estimate T again whenever the first network is better than before; each of its passes counts by itself."""
        super().after_tracking(ledgers, epoch)
        (ledger,), labels = ledgers, self.task.labels[self.held_out]
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
        return {"ripe": self.ripe}

    def set_extra_state(self, state: dict[str, int]) -> None:
        self.ripe = state["ripe"]


@method("forward")
class ForwardCorrection(LossCorrection):
    """Predictions brought to the noise by an estimated transition matrix (Patrini et al. 2017, Theorem 2)."""

    loss = staticmethod(transitions.forward_cross_entropy)


@method("backward")
class BackwardCorrection(LossCorrection):
    """Losses corrected by the inverse of an estimated transition matrix (Patrini et al. 2017, Theorem 1)."""

    options: BackwardOptions
    loss = staticmethod(transitions.backward_cross_entropy)

    def prepared(self, transition: Tensor) -> Tensor:
        return transitions.bounded_inverse(transition, largest=self.options.largest)
