"""Early-learning regularisation (Liu et al. 2020, "Early-Learning Regularization Prevents Memorization of Noisy
Labels").

A memory of what was predicted for each sample pulls against labels that contradict it; since networks learn right
labels first, the memory is mostly right. Needs no trusted samples. Departures: the library's optimiser and weight
decay. The published settings for CIFAR-10 are the defaults; for 100 classes the authors take strength 7 and inertia
0.9. ELR+, with two networks, averaged weights and mixup, is not implemented.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import Step, Task
from ..parts.losses import soft_cross_entropy
from .registry import method
from .tracked import PublishedMethod, TrackedOptions, setting

SMALLEST = 1e-4


@dataclass(frozen=True)
class ElrOptions(TrackedOptions):
    """What can be changed with `--set`."""

    strength: float = setting(3.0, "weight of the penalty, lambda", least=0)
    inertia: float = setting(0.7, "share of the memory that stays, beta", least=0, most=1)


def disagreement(probabilities: Tensor, memory: Tensor) -> Tensor:
    """log(1 - <p, t>) of each sample, which falls as the prediction comes to agree with the memory (Eq. 6)."""
    return (1 - (probabilities * memory).sum(dim=1)).log()


@method("elr")
class EarlyLearning(PublishedMethod):
    """A memory of early predictions keeps the network from memorising (Liu et al. 2020)."""

    published = (120, (40, 80))
    per_sample = ("memory",)
    options: ElrOptions
    memory: Tensor

    def initial_state(self, task: Task) -> Mapping[str, Tensor]:
        return {"memory": torch.zeros(len(task), task.classes)}

    def remember(self, index: Tensor, probabilities: Tensor) -> Tensor:
        """Move the memory of these samples toward what is predicted now, and return it (Eq. 8)."""
        self.memory[index] = self.memory[index].lerp(probabilities, 1 - self.options.inertia)
        return self.memory[index]

    def objective(self, step: Step) -> Tensor:
        probabilities = step.logits.softmax(dim=1).clamp(SMALLEST, 1 - SMALLEST)
        seen = probabilities.detach()
        memory = self.remember(step.batch.index, seen / seen.sum(dim=1, keepdim=True))
        penalty = self.options.strength * disagreement(probabilities, memory)
        return (soft_cross_entropy(step.logits, step.labels) + penalty).mean()
