"""Early-learning regularisation (Liu et al. 2020, "Early-Learning Regularization Prevents Memorization of Noisy
Labels").

Needs nothing. The memory of what each sample was taken for pulls against labels that contradict it, and since networks
learn right labels first, it is mostly right. Departures: the library's optimiser and weight decay. The published
settings for CIFAR-10 are the defaults; for 100 classes the authors take strength 7 and inertia 0.9. ELR+, with two
networks, averaged weights and mixup, is not here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..core import Batch, Learner, Method, Step, Task
from ..detect.ledger import Ledger
from ..parts.losses import soft_cross_entropy
from .registry import method
from .timeline import Timeline
from .tracked import TrackedMethod, TrackedOptions

EPOCHS, DROPS = 120, (40, 80)
SMALLEST = 1e-4


@dataclass(frozen=True)
class ElrOptions(TrackedOptions):
    """What can be changed with `--set`."""

    strength: float = field(default=3.0, metadata={"help": "weight of the penalty, lambda", "least": 0})
    inertia: float = field(
        default=0.7, metadata={"help": "share of the memory that stays, beta", "least": 0, "most": 1}
    )


def disagreement(probabilities: Tensor, memory: Tensor) -> Tensor:
    """log(1 - <p, t>) of each sample, which falls as the prediction comes to agree with the memory (Eq. 6)."""
    return (1 - (probabilities * memory).sum(dim=1)).log()


class EarlyLearning(TrackedMethod):
    """Cross-entropy, and a penalty for leaving what was predicted early."""

    memory: Tensor
    per_sample = ("memory",)

    def __init__(self, options: ElrOptions, timeline: Timeline) -> None:
        super().__init__(timeline.rate, track_every=options.track_every)
        self.strength, self.inertia = options.strength, options.inertia
        self.register_buffer("memory", torch.zeros(0))

    def begin(self, task: Task, ledgers: Sequence[Ledger] = ()) -> None:
        """Nothing is remembered yet."""
        super().begin(task, ledgers)
        self.memory = torch.zeros(len(task), task.classes, device=task.labels.device)

    def remember(self, index: Tensor, probabilities: Tensor) -> Tensor:
        """Move the memory of these samples toward what is predicted now, and give it (Eq. 8)."""
        self.memory[index] = self.memory[index].lerp(probabilities, 1 - self.inertia)
        return self.memory[index]

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator) -> Tensor:
        """Learn from one batch, by the given labels and the memory."""
        (learner,) = learners
        step = Step(learner, batch, epoch, rng, self.classes)
        probabilities = step.logits.softmax(dim=1).clamp(SMALLEST, 1 - SMALLEST)
        seen = probabilities.detach()
        memory = self.remember(batch.index, seen / seen.sum(dim=1, keepdim=True))
        losses = soft_cross_entropy(step.logits, step.labels) + self.strength * disagreement(probabilities, memory)
        loss = losses.mean()
        learner.descend(loss)
        return loss.detach()


@method("elr", "a memory of early predictions keeps the network from memorising (Liu et al. 2020)")
def elr(options: ElrOptions, epochs: int) -> Method:
    """Early-learning regularisation."""
    return EarlyLearning(options, Timeline(EPOCHS, DROPS, epochs))
