"""A recipe: parts put together into an optimisation step (design: every objective is CE on mixed targets)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import Batch, Learner, Mix, Step
from ..parts.losses import soft_cross_entropy
from ..parts.mixing import unmixed
from ..parts.targets import given


@dataclass(frozen=True)
class Recipe:
    """Four slots, each a part: what to learn, how to mix, how to measure, and what to add."""

    name: str
    targets: Callable[[Step], Tensor] = given
    mixing: Callable[[Step], Mix | None] = unmixed
    loss: Callable[[Tensor, Tensor], Tensor] = soft_cross_entropy
    penalty: Callable[[Tensor], Tensor] | None = None

    def objective(self, step: Step) -> Tensor:
        """Mean loss of the batch plus the penalty, with gradients (Eqs. 1, 10, 12, 13, 14)."""
        step.mix = self.mixing(step)
        targets = self.targets(step)
        if step.mix is not None:
            targets = step.mix.targets(targets)
        loss = self.loss(step.logits, targets).mean()
        return loss if self.penalty is None else loss + self.penalty(step.logits)

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator, classes: int) -> Tensor:
        """One optimisation step; gives the objective, detached."""
        (learner,) = learners
        objective = self.objective(Step(learner, batch, epoch, rng, classes))
        learner.descend(objective)
        return objective.detach()
