"""Gold loss correction (Hendrycks et al. 2018, "Using Trusted Data to Train Deep Networks on Labels Corrupted by Severe
Noise").

Needs trusted samples, some of each class. A first network learns the given labels of all others; its mean prediction
for the trusted samples of class i is row i of the corruption matrix C. A second one starts from scratch on all samples,
with the loss of predictions that C was applied to where labels are not trusted, and the plain loss where they are.
Departures: the two networks share the run's epochs, half each, where the original had 75 for each; a class without
trusted samples is taken to keep its labels; each network's learning rate falls to a tenth after one and two thirds of
its epochs, because the original's cosine lets small data be memorised.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..core import Batch, Learner, Method, Task, Trusted
from ..detect.ledger import Ledger
from ..parts.transitions import forward_cross_entropy, from_known_samples
from .registry import method
from .timeline import Timeline
from .tracked import TrackedMethod, TrackedOptions

EPOCHS, CORRECTED_FROM = 150, 76


def mean_predictions(learner: Learner, trusted: Trusted) -> Tensor:
    """The corruption matrix C: what a network makes of the trusted samples of each class, on average."""
    with learner.evaluating():
        seen = [(learner(batch.inputs).float().softmax(dim=1), batch.labels) for batch in trusted.sweep()]
    probabilities, labels = (torch.cat(parts) for parts in zip(*seen, strict=True))
    return from_known_samples(probabilities, labels)


class GoldLossCorrection(TrackedMethod):
    """A first network that finds C by the trusted samples, and a second one whose loss is corrected with it."""

    matrix: Tensor
    is_trusted: Tensor

    def __init__(self, options: TrackedOptions, epochs: int) -> None:
        self.epochs, self.corrects_from = epochs, Timeline(EPOCHS, (), epochs).start(CORRECTED_FROM)
        super().__init__(self._thirds, track_every=options.track_every, needs_fresh=(self.corrects_from,))
        self.trusted: Trusted | None = None
        self.register_buffer("matrix", torch.zeros(0))
        self.register_buffer("is_trusted", torch.zeros(0, dtype=torch.bool), persistent=False)

    def begin(self, task: Task, ledgers: Sequence[Ledger] = ()) -> None:
        """Nothing is known of the noise yet."""
        super().begin(task, ledgers)
        if task.trusted is None:
            raise ValueError("gold loss correction needs trusted samples, but the task has none; give it some")
        self.trusted = task.trusted
        self.matrix = torch.eye(task.classes, device=task.labels.device)
        self.is_trusted = torch.zeros(len(task), dtype=torch.bool, device=task.labels.device)
        self.is_trusted[task.trusted.index.to(task.labels.device)] = True

    def phase(self, epoch: int) -> str:
        """Which of the two networks learns."""
        return "first network" if epoch < self.corrects_from else "corrected loss"

    def epoch_begin(self, learners: Sequence[Learner], epoch: int) -> None:
        """The first network gives C; the second one starts from scratch, and so does what is recorded of it."""
        if epoch != self.corrects_from or self.trusted is None:
            return
        (learner,) = learners
        (ledger,) = self.noise_tracker.ledgers
        self.matrix = mean_predictions(learner, self.trusted)
        learner.reset()
        ledger.restart()

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator) -> Tensor:
        """Learn the labels that are not trusted; then all, those that are not by the corrected loss."""
        (learner,) = learners
        logits, trusted = learner(batch.inputs).float(), self.is_trusted[batch.index]
        losses = F.cross_entropy(logits, batch.labels, reduction="none")
        if epoch < self.corrects_from:
            loss = (losses * ~trusted).sum() / (~trusted).sum().clamp_min(1)
        else:
            corrected = forward_cross_entropy(logits, batch.labels, self.matrix)
            loss = torch.where(trusted, losses, corrected).mean()
        learner.descend(loss)
        return loss.detach()

    def _thirds(self, epoch: int) -> float:
        """1, 0.1 and 0.01 in the thirds of each network's epochs."""
        first = 1 if epoch < self.corrects_from else self.corrects_from
        length = (self.corrects_from if first == 1 else self.epochs + 1) - first
        return float(0.1 ** (3 * (epoch - first) // length))


@method("glc", "as forward, with the matrix that trusted samples show (Hendrycks et al. 2018)", needs_trusted=True)
def glc(options: TrackedOptions, epochs: int) -> Method:
    """Gold loss correction."""
    return GoldLossCorrection(options, epochs)
