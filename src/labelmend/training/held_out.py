"""How well a classifier predicted the given labels of samples that it had not learned."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..detect.predictions import calibration_factor, read_predictions


@dataclass(frozen=True)
class HeldOut:
    """Calibrated log-losses [n], NaN of samples that were not held out, and their mean before the calibration.

    Calibrated is by the one factor on all scores that fits the labels best. The judge does so too, so that a classifier
    loses nothing by predictions that are right as often and only less sure, as weight decay makes them.
    """

    losses: Tensor
    uncalibrated: float

    @classmethod
    def of(cls, scores: Tensor, labels: Tensor, held: Tensor) -> "HeldOut":
        """Of class scores [n, C] and labels [n], where `held` [n].

        >>> scores, labels = torch.tensor([[8.0, 0.0], [4.0, 0.0], [0.0, 4.0], [0.0, 1.0]]), torch.tensor([0, 1, 1, 0])
        >>> sure, unsure = (HeldOut.of(scores * by, labels, labels >= 0) for by in (1, 0.25))
        >>> bool(torch.allclose(sure.losses, unsure.losses, atol=1e-3)), sure.uncalibrated > unsure.uncalibrated
        (True, True)
        """
        scores, labels = scores[held], labels[held]
        predictions = read_predictions(labels.cpu().numpy(), scores.softmax(dim=1).cpu().numpy())
        losses = torch.full((len(held),), math.nan, device=scores.device)
        losses[held] = F.cross_entropy(calibration_factor(predictions) * scores, labels, reduction="none")
        return cls(losses, float(F.cross_entropy(scores, labels)))

    @property
    def mean(self) -> float:
        """The mean calibrated log-loss."""
        return float(self.losses.nanmean())

    def on(self, device: torch.device) -> "HeldOut":
        """The same, kept on this device."""
        return HeldOut(self.losses.to(device), self.uncalibrated)

    def clearly_better(self, other: "HeldOut", errors: float) -> bool:
        """Whether its losses are less by more than so many standard errors of the difference."""
        gain = other.losses - self.losses
        gain = gain[gain.isfinite()]
        return float(gain.mean()) > errors * float(gain.std()) / math.sqrt(len(gain))
