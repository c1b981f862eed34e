"""Iterative detection: Wang et al. 2018, "Iterative Learning with Open-set Noisy Labels".

A wrong label is an outlier among the samples of its given class, whatever the sample really shows: another class of the
set or none of them. So outliers are looked for in the network's features, time after time as these get better; between
times, the network learns to put them away from the clean samples of their class, and learns little from their labels.
Needs no trusted samples.

Departures. Noisy is what a beta mixture takes for it, in place of half of each class (Released); it is a mixture of the
cumulative scores, because that of losses loses sight of labels as they are memorised. Pairs are all those of a batch,
and compare directions as outlier scores do. The rate falls after 40 and 80 epochs, as with the same authors' d2l, where
the released code has Adam. In classes above 4,096 samples, neighbours are sought among 4,096 drawn at random.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..core import Step, Task, generator
from ..detect.ledger import Ledger
from ..mixture import noise_model
from .registry import method
from .tracked import PublishedMethod, TrackedOptions, setting

ROUNDS = range(5, 95, 10)
"""Epochs after which outliers are looked for, as in the released code."""
NEIGHBOURS = 0.4
"""Share of a class that a sample is compared with; Released: 2,000 of 5,000."""
LARGEST = 4096
AT_ONCE = 1024


@dataclass(frozen=True)
class IterativeOptions(TrackedOptions):
    """What can be changed in iterative detection with `--set`."""

    margin: float = setting(1.0, "distance beyond which pairs are left alone", least=0)
    contrast: float = setting(1.0, "strength of the contrastive term", least=0)
    noisy_weight: float = setting(0.1, "weight of a noisy sample, times its score", least=0, most=1)


def inlier_scores(features: Tensor, among: Tensor, share: float = NEIGHBOURS) -> Tensor:
    """1 / LOF of each row by cosine distance to a share of the rows `among`, [n]: 1 in the crowd, less outside it."""
    if len(among) < 2:
        return torch.ones(len(features), device=features.device)
    directions = F.normalize(features.float())
    count = min(max(round(share * len(among)), 1), len(among) - 1)

    def nearest(rows: Tensor) -> tuple[Tensor, Tensor]:
        apart = (1 - directions[rows] @ directions[among].T).clamp_min(0)
        found = apart.masked_fill_(rows[:, None] == among, float("inf")).topk(count, largest=False)
        return found.values, found.indices

    def density(apart: Tensor, neighbours: Tensor) -> Tensor:
        return 1 / (torch.maximum(apart, reach[neighbours]).mean(dim=1) + 1e-10)

    found = [nearest(rows) for rows in torch.split(among, AT_ONCE)]
    reach = torch.cat([apart[:, -1] for apart, _ in found])
    densities = torch.cat([density(*near) for near in found])
    scores = []
    for rows in torch.split(torch.arange(len(features), device=features.device), AT_ONCE):
        apart, neighbours = nearest(rows)
        scores.append(density(apart, neighbours) / densities[neighbours].mean(dim=1))
    return torch.cat(scores)


def contrastive(features: Tensor, labels: Tensor, noisy: Tensor, margin: float) -> Tensor:
    """Mean of three kinds of pairs, a scalar: clean ones of a class attract by their squared distance D^2.

    By max(0, margin - D)^2, clean ones repel noisy ones of their class and clean ones of others. Released: the kinds
    are equally many pairs; here, they count alike.
    """
    directions = F.normalize(features.float())
    squared = (2 - 2 * directions @ directions.T).clamp_min(1e-7)
    repelled = (margin - squared.sqrt()).clamp_min(0).square()
    same, clean = labels[:, None] == labels, ~noisy[:, None] & ~noisy
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    kinds = ((squared, same & clean & ~itself), (repelled, same & (~noisy[:, None] & noisy)), (repelled, ~same & clean))
    means = [(cost * pairs).sum() / pairs.sum().clamp_min(1) for cost, pairs in kinds]
    return torch.stack(means).mean()


@method("iterative")
class IterativeDetection(PublishedMethod):
    """Outliers of each class in feature space are put away and weigh little (Wang et al. 2018)."""

    published = (95, (40, 80))
    records = frozenset({"losses", "features"})
    options: IterativeOptions
    score: Tensor
    noisy: Tensor

    def __init__(self, options: IterativeOptions, epochs: int) -> None:
        super().__init__(options, epochs)
        self.rounds = sorted({self.timeline.after(epoch) for epoch in ROUNDS})
        self.needs_fresh = [last + 1 for last in self.rounds]

    def initial_state(self, task: Task) -> Mapping[str, Tensor]:
        return {"score": torch.zeros(len(task)), "noisy": torch.zeros(len(task), dtype=torch.bool)}

    def phase(self, epoch: int) -> str:
        return f"round {sum(epoch > last for last in self.rounds)}"

    def after_tracking(self, ledgers: Sequence[Ledger], epoch: int) -> None:
        """Refit the noise model and, where a round ends, look for outliers in every class."""
        super().after_tracking(ledgers, epoch)
        features = ledgers[0].features
        if epoch not in self.rounds or features is None:
            return
        known = self.rounds.index(epoch)
        for label in range(self.task.classes):
            members = (self.task.labels == label).nonzero()[:, 0]
            order = torch.randperm(len(members), generator=generator(0, "outliers", epoch, label))
            among = order[:LARGEST].to(members.device)
            scores = inlier_scores(features[members], among)
            self.score[members] += (scores - self.score[members]) / (known + 1)
        outlying = (1 - self.score).clamp_min(0)
        self.noisy = noise_model("bmm").fit(outlying).posterior(outlying) > 0.5
        if self.noise_tracker.trusted is not None:
            self.noisy[self.noise_tracker.trusted] = False

    def objective(self, step: Step) -> Tensor:
        """Cross-entropy in which noisy samples weigh by their scores, and the contrast of pairs."""
        batch = step.batch
        with step.learner.features() as seen:
            losses = F.cross_entropy(step.logits, batch.labels, reduction="none")
        noisy = self.noisy[batch.index]
        weights = torch.where(noisy, self.options.noisy_weight * self.score[batch.index].clamp(max=1), 1.0)
        contrast = contrastive(seen[0], batch.labels, noisy, self.options.margin)
        return (weights * losses).mean() + self.options.contrast * contrast
