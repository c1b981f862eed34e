"""What is believed of each sample: the noise model, and the probabilities it gave after the last epoch."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..core import Ledger, NoiseEstimate, Step, Task
from ..mixture import NoiseModel


class Suspicion(nn.Module):
    """P(wrong) of each sample, refitted on the ledger's losses after every `refit_every` epochs.

    Where there is a model of `gaps` and it finds two humps far apart, it decides in place of the losses' mixture.
    """

    probability: Tensor

    def __init__(
        self, model: NoiseModel, *, gaps: NoiseModel | None = None, floor: float = 0.0, refit_every: int = 1
    ) -> None:
        super().__init__()
        self.model = model
        self.gaps = gaps
        self.floor = floor
        self.refit_every = refit_every
        self.register_buffer("probability", torch.zeros(0))

    def begin(self, task: Task) -> None:
        """Everybody counts as clean until a mixture has been fitted."""
        self.probability = torch.zeros(len(task), device=task.labels.device)

    def update(self, ledgers: Sequence[Ledger], epoch: int) -> None:
        """Refit the mixture on the losses of all samples and judge each one anew (Eqs. 4-9)."""
        losses = torch.stack([ledger.losses for ledger in ledgers]).mean(dim=0)
        if self.model.degenerate or epoch % self.refit_every == 0:
            self.model.fit(losses)
        self.probability = self.model.posterior(losses)
        if self.gaps is not None:
            gaps = torch.stack([ledger.gaps for ledger in ledgers]).mean(dim=0)
            if not self.gaps.fit(gaps).degenerate:
                self.probability = self.gaps.posterior(gaps)

    def stored(self, step: Step) -> Tensor:
        """P(wrong) from each sample's loss in the last tracking pass: w in Eqs. 10 and 13."""
        return self._bounded(self.probability[step.batch.index])

    def current(self, step: Step) -> Tensor:
        """P(wrong) from the loss that the network has now, on this view. Released: w is taken so."""
        return self._bounded(self.model.posterior(step.clean_losses()))

    def estimate(self) -> NoiseEstimate:
        """Rate, per-sample probability, the mixture's parameters and the verdict."""
        rate = float(self.probability.mean())
        known = {} if self.model.degenerate else self.model.described()
        return NoiseEstimate(self.probability, rate, known, self.model.verdict)

    def _bounded(self, probability: Tensor) -> Tensor:
        return probability.clamp(self.floor, 1 - self.floor)
