"""Joint optimisation (Tanaka et al. 2018, "Joint Optimization Framework for Learning with Noisy Labels").

Needs nothing. First the network and soft labels are learned by turns, at a high learning rate that does not let the
network memorise: after a warm-up, a sample's label is the mean of what was predicted for it in the last epochs. Two
penalties keep all labels from becoming one class, or none. Then a network starts afresh on the final labels.
Departures: both stages share the run's epochs, 200 and 120 of 320; the class prior is uniform, as in the authors'
experiments.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..core import Batch, Learner, Method, Step, Task
from ..detect.ledger import Ledger
from ..parts.losses import soft_cross_entropy
from ..parts.penalties import UniformPrior
from .registry import method
from .timeline import Timeline
from .tracked import TrackedMethod, TrackedOptions

EPOCHS, AFRESH_FROM, DROPS = 320, 201, (240, 280)
RELABELLED_FROM = 71


@dataclass(frozen=True)
class JointOptions(TrackedOptions):
    """What can be changed with `--set`."""

    window: int = field(default=10, metadata={"help": "epochs whose predictions make a label", "least": 1})
    prior: float = field(default=1.2, metadata={"help": "weight of the class-balance penalty, alpha", "least": 0})
    entropy: float = field(default=0.8, metadata={"help": "weight of the entropy penalty, beta", "least": 0})


class JointOptimisation(TrackedMethod):
    """Network and labels by turns, then a fresh network on the labels."""

    history: Tensor
    targets: Tensor
    per_sample = ("history",)

    def __init__(self, options: JointOptions, timeline: Timeline) -> None:
        super().__init__(timeline.rate, track_every=options.track_every)
        self.options = options
        self.relabels_from = timeline.start(RELABELLED_FROM)
        self.afresh_from = timeline.start(AFRESH_FROM)
        self.balance = UniformPrior(options.prior)
        self.register_buffer("history", torch.zeros(0))
        self.register_buffer("targets", torch.zeros(0))

    def begin(self, task: Task, ledgers: Sequence[Ledger] = ()) -> None:
        """The labels start as they were given."""
        super().begin(task, ledgers)
        shape, device = (len(task), self.options.window, task.classes), task.labels.device
        self.history = torch.zeros(shape, dtype=torch.float16, device=device)
        self.targets = torch.nn.functional.one_hot(task.labels, task.classes).float()

    def phase(self, epoch: int) -> str:
        """Which of the three it is in."""
        if epoch >= self.afresh_from:
            return "afresh on the final labels"
        return "network and labels by turns" if epoch >= self.relabels_from else "warm-up"

    def epoch_begin(self, learners: Sequence[Learner], epoch: int) -> None:
        """New labels from the last epochs' predictions (Eq. 4, soft); at the last stage, a new network."""
        if self.relabels_from <= epoch <= self.afresh_from:
            recent = min(epoch - 1, self.options.window)
            self.targets = self.history.float().sum(dim=1) / recent
        if epoch == self.afresh_from:
            for learner in learners:
                learner.reset()

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator) -> Tensor:
        """Learn the labels of the moment; while they are still being found, note what is predicted (Eqs. 2, 5, 6)."""
        (learner,) = learners
        step = Step(learner, batch, epoch, rng, self.classes)
        loss = soft_cross_entropy(step.logits, self.targets[batch.index]).mean()
        if epoch < self.afresh_from:
            probabilities = step.logits.softmax(dim=1)
            self.history[batch.index, epoch % self.options.window] = probabilities.detach().half()
            loss = loss + self.balance(step.logits)
            loss = loss + self.options.entropy * soft_cross_entropy(step.logits, probabilities).mean()
        learner.descend(loss)
        return loss.detach()


@method("joint", "network and soft labels learned by turns, then afresh on the labels found (Tanaka et al. 2018)")
def joint(options: JointOptions, epochs: int) -> Method:
    """Joint optimisation of network and labels."""
    return JointOptimisation(options, Timeline(EPOCHS, DROPS, epochs))
