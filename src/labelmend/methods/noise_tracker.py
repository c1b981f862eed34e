"""What is believed of each sample: the noise model, and the probabilities it gave after the last epoch."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ..core import NoiseEstimate, Step, Task
from ..detect.ledger import Ledger
from ..mixture import FAR_APART, GaussianMixture, NoiseModel, noise_model


def far_apart() -> NoiseModel:
    """The model of the log-odds of other classes, used where it finds two groups far apart."""
    return NoiseModel(GaussianMixture(iterations="converged"), FAR_APART)


class NoiseTracker(nn.Module):
    """P(wrong) of each sample and what the network took it for, renewed by every tracking pass.

    Where a model of `rival_log_odds` is given and finds two groups far apart, it decides in place of the mixture of
    losses.
    """

    probability: Tensor

    def __init__(self, model: NoiseModel, *, rival_log_odds: NoiseModel | None = None, floor: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.rival_log_odds = rival_log_odds
        self.floor = floor
        self.ledgers: Sequence[Ledger] = ()
        self.trusted: Tensor | None = None
        self.register_buffer("probability", torch.zeros(0))

    @classmethod
    def usual(cls) -> "NoiseTracker":
        """A beta mixture of losses, until the log-odds of other classes form two groups."""
        return cls(noise_model("bmm"), rival_log_odds=far_apart())

    def begin(self, task: Task, ledgers: Sequence[Ledger]) -> None:
        """Everybody counts as clean until a mixture has been fitted, and trusted samples always."""
        self.ledgers = ledgers
        self.trusted = None if task.trusted is None else task.trusted.index
        self.probability = torch.zeros(len(task), device=task.labels.device)

    def update(self, ledgers: Sequence[Ledger]) -> None:
        """Refit the mixture on the losses of all samples and judge each one again (Eqs. 4-9)."""
        losses = torch.stack([ledger.losses for ledger in ledgers]).mean(dim=0)
        self.probability = self.model.fit(losses).posterior(losses)
        if self.rival_log_odds is not None:
            rival_log_odds = torch.stack([ledger.rival_log_odds for ledger in ledgers]).mean(dim=0)
            if not self.rival_log_odds.fit(rival_log_odds).degenerate:
                self.probability = self.rival_log_odds.posterior(rival_log_odds)
        if self.trusted is not None:
            self.probability[self.trusted] = 0.0

    def predictions(self, step: Step) -> Tensor:
        """What the tracking passes took each sample for, as logits, in place of a pass of the step's own.

        Past the paper: several passes together follow wrong labels less than the current network does.
        """
        (ledger,) = self.ledgers
        if ledger.mean_log_probs is not None:
            return ledger.mean_log_probs[step.batch.index].float()
        return F.one_hot(ledger.guesses[step.batch.index].long(), step.classes).float()

    def stored(self, step: Step) -> Tensor:
        """P(wrong) from each sample's loss in the last tracking pass: w in Eqs. 10 and 13."""
        return self._bounded(self.probability[step.batch.index])

    def current(self, step: Step) -> Tensor:
        """P(wrong) from the loss that the network has now, on this view. Released: w is taken so."""
        return self._bounded(self.model.posterior(step.clean_losses()))

    def estimate(self) -> NoiseEstimate:
        """Rate, per-sample probability, and which mixture decided, with its parameters."""
        rate = float(self.probability.mean())
        for name, model in (("rival_log_odds", self.rival_log_odds), ("losses", self.model)):
            if model is not None and not model.degenerate:
                return NoiseEstimate(self.probability, rate, model.described(), name, None)
        return NoiseEstimate(self.probability, rate, {}, None, self.model.verdict)

    def _bounded(self, probability: Tensor) -> Tensor:
        return probability.clamp(self.floor, 1 - self.floor)
