"""A recipe: parts put together into an objective, which is always cross-entropy on mixed targets."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from ..core import Mix, Step
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
