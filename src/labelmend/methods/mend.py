"""The library's own method: dynamic bootstrapping by the judge of predictions, held-out where that can be afforded.

The paper replaces a label by the network's guess as far as a mixture of losses takes it for wrong (Eq. 10). Here the
judge of predictions gives P(wrong), and the guess is what was predicted for the classes other than the given one. Two
ways to come by predictions that did not simply follow the given label:

- *One network* (`folds=1`), for images: its averaged weights, as they were over the passes so far, early enough in a
  short run that it has not memorised. Labels are corrected from a share of the run on.
- *Cross-fitting* (`folds` of 2 or more), for rows of features, which even a linear model memorises: the samples are
  divided in folds, and each fold is judged by a network that learned from the others. There are several rounds; in each
  the networks start anew, and learn labels as corrected by the rounds before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import Batch, Learner, NoiseEstimate, Step, Task, generator
from ..detect.judge import FOUND, judge_predictions
from ..detect.ledger import Ledger
from ..parts.losses import soft_cross_entropy
from .registry import method
from .timeline import Timeline
from .tracked import TrackedMethod, TrackedOptions, setting

SMALLEST = 1e-6
SMOOTHING = 0.2
"""Of the targets of one network, which would otherwise grow ever surer of single labels."""


@dataclass(frozen=True)
class MendOptions(TrackedOptions):
    """What can be changed in `mend` with `--set`."""

    track_every: int = setting(2, "with one network: epochs between two tracking passes", least=1)
    folds: int | None = setting(
        None, "networks of which each judges what it did not learn; none suits the data", least=1
    )
    rounds: int = setting(3, "with folds: how often networks start anew on corrected labels", least=1)
    corrects_from: float = setting(0.4, "with one network: share of the run without correction", least=0, most=1)
    label_smoothing: float | None = setting(
        None, "share of each target spread over all classes; none suits the folds", least=0, most=1
    )


@method("mend")
class Mend(TrackedMethod):
    """Bootstrapping by the judge, cross-fitted on rows of features: the library's own; the default for most data."""

    options: MendOptions
    fold: Tensor
    wrong: Tensor

    def __init__(self, options: MendOptions, epochs: int) -> None:
        super().__init__(Timeline(epochs, (), epochs), track_every=options.track_every)
        self.options = options
        self.epochs = epochs
        self.folds = self.networks = options.folds or 1
        self.cross_fitted = self.folds > 1
        self.rounds = min(options.rounds, epochs) if self.cross_fitted else 1
        self.smoothing = (
            (0.0 if self.cross_fitted else SMOOTHING) if options.label_smoothing is None else options.label_smoothing
        )
        self.reason: str | None = "no tracking pass yet"
        self.fitted: dict[str, float] = {}
        self.ledger: Ledger | None = None

    def initial_state(self, task: Task) -> Mapping[str, Tensor]:
        """The fold of each sample, and P(wrong) by which labels are corrected: nothing yet."""
        return {"fold": stratified_folds(task.labels.cpu(), self.folds), "wrong": torch.zeros(len(task))}

    def begin(self, task: Task, ledgers: Sequence[Ledger] = ()) -> None:
        super().begin(task, ledgers)
        self.ledger = ledgers[0] if ledgers else None

    def round(self, epoch: int) -> int:
        """The round that an epoch belongs to, from 0."""
        return (epoch - 1) * self.rounds // self.epochs

    def starts_round(self, epoch: int) -> bool:
        """Whether this epoch is the first of its round."""
        return epoch == 1 or self.round(epoch) != self.round(epoch - 1)

    def schedule_progress(self, epoch: int, done: float, epochs: int) -> float:
        """Each round goes through the whole schedule."""
        own = [other for other in range(1, self.epochs + 1) if self.round(other) == self.round(epoch)]
        return (epoch - own[0] + done) / len(own)

    def phase(self, epoch: int) -> str:
        if self.cross_fitted:
            return f"round {self.round(epoch) + 1} of {self.rounds}"
        return "corrected labels" if self.corrects(epoch) else "labels as given"

    def corrects(self, epoch: int) -> bool:
        """Whether labels are corrected in this epoch, as far as the judge has found wrong ones."""
        return self.round(epoch) > 0 if self.cross_fitted else epoch > self.options.corrects_from * self.epochs

    def epoch_begin(self, learners: Sequence[Learner], epoch: int) -> None:
        """Networks start anew in every round."""
        if epoch > 1 and self.starts_round(epoch):
            for learner in learners:
                learner.reset()

    def judged_by(self, network: int) -> Tensor | None:
        return (self.fold == network).nonzero()[:, 0] if self.cross_fitted else None

    def tracks(self, epoch: int) -> bool:
        if self.cross_fitted:
            return epoch == self.epochs or self.starts_round(epoch + 1)
        return super().tracks(epoch) or (not self.corrects(epoch) and self.corrects(epoch + 1))

    def after_tracking(self, ledgers: Sequence[Ledger], epoch: int) -> None:
        """Judge every label by what was predicted so far; labels that look clean are not corrected."""
        (ledger,) = ledgers
        if ledger.mean_probs is None:
            self.reason = "there are too many samples and classes to keep predictions"
            return
        judged = judge_predictions(self.task.labels.cpu().numpy(), ledger.mean_probs.cpu().numpy(), rough=True)
        self.reason, self.fitted = (None if judged.finding == FOUND else judged.reason), judged.fitted
        probability = torch.from_numpy(judged.probability).float() * (judged.finding == FOUND)
        self.wrong.copy_(probability)
        if self.task.trusted is not None:
            self.wrong[self.task.trusted.index] = 0.0

    def estimate(self) -> NoiseEstimate:
        rate = float(self.wrong.mean())
        if self.reason is not None:
            return NoiseEstimate(self.wrong, rate, {}, None, self.reason)
        return NoiseEstimate(self.wrong, rate, self.fitted, "predictions", None)

    def targets(self, step: Step) -> Tensor:
        """Labels, moved toward what was predicted beside them as far as they look wrong (Eq. 10), [n, C]."""
        labels = step.labels
        if self.corrects(step.epoch) and self.ledger is not None and self.ledger.mean_probs is not None:
            index = step.batch.index
            others = self.ledger.mean_probs[index] * (1 - labels)
            others = others / others.sum(dim=1, keepdim=True).clamp_min(SMALLEST)
            labels = torch.lerp(labels, others, self.wrong[index, None])
        return labels * (1 - self.smoothing) + self.smoothing / step.classes

    def objectives(
        self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator
    ) -> Sequence[Tensor]:
        """Each network's mean loss on the samples that it does not judge."""
        steps = [Step(learner, batch, epoch, rng, self.task.classes) for learner in learners]
        targets = self.targets(steps[0])
        losses = [soft_cross_entropy(step.logits, targets) for step in steps]
        if not self.cross_fitted:
            return [loss.mean() for loss in losses]
        learned = [(self.fold[batch.index] != number).float() for number in range(self.folds)]
        return [(loss * mask).sum() / mask.sum().clamp_min(1) for loss, mask in zip(losses, learned, strict=True)]


def stratified_folds(labels: Tensor, folds: int) -> Tensor:
    """The fold of each sample, every class spread evenly over the folds; depends on the labels only.

    >>> stratified_folds(torch.tensor([0, 1, 0, 1, 0, 1, 0, 1]), 2).bincount().tolist()
    [4, 4]
    """
    order = torch.randperm(len(labels), generator=generator(0, "folds"))
    by_class = order[labels[order].sort(stable=True).indices]
    fold = torch.empty(len(labels), dtype=torch.long)
    fold[by_class] = torch.arange(len(labels)) % folds
    return fold
