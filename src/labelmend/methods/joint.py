"""Joint optimisation (Tanaka et al. 2018, "Joint Optimization Framework for Learning with Noisy Labels").

First the network and soft labels are learned by turns, at a high learning rate that does not let the network memorise:
after a warm-up, a sample's label is the mean of what was predicted for it in the last epochs. Two penalties keep all
labels from becoming one class, or none. Then a network starts afresh on the final labels. Needs no trusted samples.
Departures: both stages share the run's epochs, 200 and 120 of 320; the class prior is uniform, as in the authors'
experiments.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..core import Learner, Step, Task
from ..parts.losses import soft_cross_entropy
from ..parts.penalties import UniformPrior
from .registry import method
from .tracked import PublishedMethod, TrackedOptions, setting

RELABELLED_FROM, AFRESH_FROM = 71, 201


@dataclass(frozen=True)
class JointOptions(TrackedOptions):
    """What can be changed with `--set`."""

    window: int = setting(10, "epochs whose predictions make a label", least=1)
    prior: float = setting(1.2, "weight of the class-balance penalty, alpha", least=0)
    entropy: float = setting(0.8, "weight of the entropy penalty, beta", least=0)


@method("joint")
class JointOptimisation(PublishedMethod):
    """Network and soft labels learned by turns, then afresh on the labels found (Tanaka et al. 2018)."""

    published = (320, (240, 280))
    per_sample = ("history",)
    options: JointOptions
    history: Tensor
    targets: Tensor

    def __init__(self, options: JointOptions, epochs: int) -> None:
        super().__init__(options, epochs)
        self.relabels_from = self.timeline.start(RELABELLED_FROM)
        self.afresh_from = self.timeline.start(AFRESH_FROM)

    def initial_state(self, task: Task) -> Mapping[str, Tensor]:
        history = torch.zeros(len(task), self.options.window, task.classes, dtype=torch.float16)
        return {"history": history, "targets": F.one_hot(task.labels, task.classes).float()}

    def phase(self, epoch: int) -> str:
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

    def objective(self, step: Step) -> Tensor:
        """Cross-entropy against the current labels, with penalties while these are still being found (Eqs. 2, 5, 6)."""
        loss = soft_cross_entropy(step.logits, self.targets[step.batch.index]).mean()
        if step.epoch >= self.afresh_from:
            return loss
        probabilities = step.logits.softmax(dim=1)
        self.history[step.batch.index, step.epoch % self.options.window] = probabilities.detach().half()
        loss = loss + UniformPrior(self.options.prior)(step.logits)
        return loss + self.options.entropy * soft_cross_entropy(step.logits, probabilities).mean()
