"""Gold loss correction (Hendrycks et al. 2018, "Using Trusted Data to Train Deep Networks on Labels Corrupted by Severe
Noise").

Needs trusted samples, some of each class. A first network learns the given labels of all others; its mean prediction
for the trusted samples of class i is row i of the corruption matrix C. A second one starts from scratch on all samples,
with the loss of predictions that C was applied to where labels are not trusted, and the plain loss where they are.
Departures: the two networks share the run's epochs, half each, where the original had 75 for each; a class without
trusted samples is taken to keep its labels; each network's learning rate falls to a tenth after one and two thirds of
its epochs, because the original's cosine lets small data be memorised.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..core import Learner, Step, Task, Trusted
from ..parts.transitions import forward_cross_entropy, from_known_samples
from .registry import method
from .tracked import PublishedMethod, TrackedOptions, require_trusted

CORRECTED_FROM = 76


def mean_predictions(learner: Learner, trusted: Trusted) -> Tensor:
    """The corruption matrix C: what a network makes of the trusted samples of each class, on average."""
    with learner.evaluating():
        seen = [(learner(batch.inputs).float().softmax(dim=1), batch.labels) for batch in trusted.sweep()]
    probabilities, labels = (torch.cat(parts) for parts in zip(*seen, strict=True))
    return from_known_samples(probabilities, labels)


@method("glc", needs_trusted=True)
class GoldLossCorrection(PublishedMethod):
    """As forward, with the matrix that trusted samples show (Hendrycks et al. 2018)."""

    published = (150, ())
    matrix: Tensor

    def __init__(self, options: TrackedOptions, epochs: int) -> None:
        super().__init__(options, epochs)
        self.corrects_from = self.timeline.start(CORRECTED_FROM)
        self.needs_fresh = (self.corrects_from,)

    def initial_state(self, task: Task) -> Mapping[str, Tensor]:
        require_trusted(task)
        return {"matrix": torch.eye(task.classes)}

    def rate(self, epoch: int) -> float:
        """1, 0.1 and 0.01 in the thirds of each network's epochs."""
        first = 1 if epoch < self.corrects_from else self.corrects_from
        length = (self.corrects_from if first == 1 else self.timeline.epochs + 1) - first
        return float(0.1 ** (3 * (epoch - first) // length))

    def phase(self, epoch: int) -> str:
        return "first network" if epoch < self.corrects_from else "corrected loss"

    def epoch_begin(self, learners: Sequence[Learner], epoch: int) -> None:
        """The first network gives C; the second one starts from scratch, and so does what is recorded of it."""
        if epoch != self.corrects_from:
            return
        (learner,), (ledger,) = learners, self.noise_tracker.ledgers
        self.matrix = mean_predictions(learner, require_trusted(self.task))
        learner.reset()
        ledger.restart()

    def objective(self, step: Step) -> Tensor:
        """The loss of labels that are not trusted; for the second network of all, corrected where not trusted."""
        trusted = torch.isin(step.batch.index, require_trusted(self.task).index.to(step.batch.index.device))
        losses = F.cross_entropy(step.logits, step.batch.labels, reduction="none")
        if step.epoch < self.corrects_from:
            return (losses * ~trusted).sum() / (~trusted).sum().clamp_min(1)
        corrected = forward_cross_entropy(step.logits, step.batch.labels, self.matrix)
        return torch.where(trusted, losses, corrected).mean()
