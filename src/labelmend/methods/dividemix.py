"""DivideMix: labels that look wrong are thrown away, and their samples learned as unlabelled ones.

Li, Socher and Hoi (2020), DivideMix: Learning with Noisy Labels as Semi-supervised Learning. Needs two networks and two
views of each sample, and no trusted ones. Departures, each with its reason:

- Every batch is divided, rather than the data set into two loaders: an epoch stays one pass over the data, and the
  networks learn from the same batch, so that they predict it once for both.
- The warm-up is the longer of the paper's two, a tenth of the run: a thirtieth is too few steps on small data.
- Targets are predicted in evaluation mode; in training mode (Released) they would depend on the rest of the batch.
- The weight of the unlabelled was chosen by noise rate; here the mixtures estimate it, and losses are always those of
  the last pass, not of five.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ..core import Batch, Learner, Mix, Task, to_device
from ..detect.ledger import Ledger
from ..mixture import noise_model
from ..parts.losses import soft_cross_entropy
from ..parts.mixing import draw_share
from ..parts.penalties import UniformPrior
from .registry import method
from .timeline import linear
from .tracked import PublishedMethod, TrackedOptions, setting

RATES, WEIGHTS = (0.2, 0.45, 0.72, 0.81), (0.0, 25.0, 25.0, 50.0)
"""Shares of wrong labels, and the unlabelled's weight for each on CIFAR-10: of 50 % redrawn labels, 45 % are wrong."""


@dataclass(frozen=True)
class DivideMixOptions(TrackedOptions):
    """What can be changed in DivideMix with `--set`."""

    track_every: int = setting(1, "epochs between two divisions of the data", least=1)
    threshold: float = setting(0.5, "least P(right) of labels in use", least=0, most=1)
    temperature: float = setting(0.5, "sharpens targets; 1 leaves them", least=1e-3)
    mixup_alpha: float = setting(4.0, "mixup draws shares from Beta(a, a)", least=1e-3)
    unlabelled_weight: float | None = setting(None, "none goes by the noise rate", least=0)
    eta: float = setting(1.0, "strength of the class-balance penalty", least=0)
    confidence_penalty: float = setting(0.0, "in the warm-up, strength of -H", least=0)


def sharpened(probabilities: Tensor, temperature: float) -> Tensor:
    """p^(1/T), normalised (Eq. 4)."""
    return (probabilities.clamp_min(1e-8).log() / temperature).softmax(dim=1)


def weight_at(rate: float, classes: int) -> float:
    """On straight lines between published ones; a mean over classes is weighted, so it grows with them, to 150."""
    return min(float(np.interp(rate, RATES, WEIGHTS)) * classes / 10, 150.0)


@method("dividemix")
class DivideMix(PublishedMethod):
    """Samples of wrong-looking labels learned as unlabelled, two networks (Li et al. 2020).

    Two networks, each of which divides the data for the other; `clean` is P(right) by network and sample.
    """

    published = (300, (150,))
    networks = views = 2
    options: DivideMixOptions
    clean: Tensor
    weight: Tensor

    def __init__(self, options: DivideMixOptions, epochs: int) -> None:
        super().__init__(options, epochs)
        self.warm_up = self.timeline.after(30)
        self.needs_fresh = (self.warm_up + 1,)
        self.ramp = linear((self.warm_up, 0.0), (self.warm_up + self.timeline.after(16), 1.0))
        self.mixtures = nn.ModuleList(noise_model("gmm") for _ in range(self.networks))

    def initial_state(self, task: Task) -> Mapping[str, Tensor]:
        """Every label counts as right until a mixture has been fitted."""
        return {"clean": torch.ones(self.networks, len(task)), "weight": torch.zeros(())}

    def phase(self, epoch: int) -> str:
        return "warm-up" if epoch <= self.warm_up else "divided"

    def after_tracking(self, ledgers: Sequence[Ledger], epoch: int) -> None:
        """Fit a Gaussian mixture to each network's losses (Sec. 3.1), and weigh the unlabelled by the noise rate."""
        super().after_tracking(ledgers, epoch)
        pairs = zip(self.mixtures, (ledger.losses for ledger in ledgers), strict=True)
        self.clean = torch.stack([1 - model.fit(own).posterior(own) for model, own in pairs])  # type: ignore[operator]
        if self.noise_tracker.trusted is not None:
            self.clean[:, self.noise_tracker.trusted] = 1.0
        fixed, rate = self.options.unlabelled_weight, 1 - float(self.clean.mean())
        self.weight = torch.full_like(self.weight, weight_at(rate, self.task.classes) if fixed is None else fixed)

    def objectives(
        self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator
    ) -> Sequence[Tensor]:
        """Each network learns by labels in the warm-up, and then from the batch as the other one divides it."""
        if epoch <= self.warm_up:
            return [self._warm_up(learner, batch) for learner in learners]
        inputs = torch.cat([batch.inputs, batch.inputs if batch.second is None else batch.second])
        targets, labelled = self.targets(batch, torch.stack([_predicted(learner, inputs) for learner in learners]))
        objectives = []
        for learner, own, used in zip(learners, targets.repeat(1, 2, 1), labelled.repeat(1, 2), strict=True):
            mix = self.mix(inputs, rng)
            logits = learner(mix.inputs(inputs)).float()
            objectives.append(self.divided(logits, mix.targets(own), used, epoch))
        return objectives

    def targets(self, batch: Batch, predictions: Tensor) -> tuple[Tensor, Tensor]:
        """Labels refined as the other network doubts them, or guesses of both; and which are labels (Eqs. 3, 4)."""
        clean = self.clean[:, batch.index].flip(0)[:, :, None]
        labelled = clean > self.options.threshold
        refined = clean * F.one_hot(batch.labels, self.task.classes) + (1 - clean) * predictions
        targets = torch.where(labelled, refined, predictions.mean(dim=0))
        return sharpened(targets.flatten(0, 1), self.options.temperature).view_as(targets), labelled[:, :, 0]

    def _warm_up(self, learner: Learner, batch: Batch) -> Tensor:
        """Cross-entropy less the entropy of the predictions (Eqs. 1, 2)."""
        logits = learner(batch.inputs).float()
        entropy = soft_cross_entropy(logits, logits.softmax(dim=1)).mean()
        return F.cross_entropy(logits, batch.labels) - self.options.confidence_penalty * entropy

    def divided(self, logits: Tensor, targets: Tensor, labelled: Tensor, epoch: int) -> Tensor:
        """Cross-entropy of labels, squares of guesses (Released: their mean over classes), balance (Eqs. 9-12)."""
        entropies = soft_cross_entropy(logits, targets)
        squares = (logits.softmax(dim=1) - targets).square().mean(dim=1)
        weight = self.ramp(epoch) * self.weight
        return _mean(entropies, labelled) + weight * _mean(squares, ~labelled) + UniformPrior(self.options.eta)(logits)

    def mix(self, inputs: Tensor, rng: torch.Generator) -> Mix:
        """Each sample with another one, of which it has the greater share and so stays what it is (Eqs. 5-8)."""
        share = draw_share(self.options.mixup_alpha, rng)
        shares = inputs.new_full((len(inputs),), max(share, 1 - share))
        return Mix(to_device(torch.randperm(len(inputs), generator=rng), inputs.device), shares, shares)


def _mean(values: Tensor, where: Tensor) -> Tensor:
    return (values * where).sum() / where.sum().clamp_min(1)


def _predicted(learner: Learner, inputs: Tensor) -> Tensor:
    with learner.evaluating():
        return learner(inputs).float().softmax(dim=1).view(2, len(inputs) // 2, -1).mean(dim=0)
