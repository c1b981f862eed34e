"""MentorNet (Jiang et al. 2018, "Learning Data-Driven Curriculum for Very Deep Neural Networks on Corrupted Labels").

A mentor weights each sample by its loss. After a burn-in, the predefined one keeps the samples whose loss is below a
moving percentile (MentorNet PD); the learned one is a small network taught by trusted samples (MentorNet DD). Needs no
trusted samples; where there are at least two, the mentor is learned.

Departures. The percentile is our estimate of the share of right labels, in which tracking passes agreed with the label;
the paper sets it by hand. The mixture of losses is not asked: in a burn-in of few steps it finds half of the wrong
labels, and those beyond are memorised. The predefined curriculum is computed, not learned by the mentor's network
first. DD is taught by another data set whose labels are known to be right or wrong; here half of the trusted samples
are trained on under wrong labels, drawn uniformly once, and after each tracking pass the mentor learns to tell them
from the others by their losses. It reads a sample's losses of several epochs, which the released code cuts to one. Its
progress is that of its last lesson; the released code holds it at the burn-in's end. The released dropping of 90 % in
DD's last epochs is left out. Processes that train together each follow the percentile of their own share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ..core import Step, Task, generator, to_device
from ..detect.ledger import Ledger
from .registry import method
from .tracked import PublishedMethod, TrackedOptions, require_trusted, setting

BURN_IN, LAST_HARD = 20, 90
"""Percent of the training in which every sample counts, and in which the predefined weights are 0 or 1."""
VISITS = 4
"""Latest visits to a sample that the learned mentor reads."""
STAGES = 100
"""Stages of a training that are told apart: percentages."""


@dataclass(frozen=True)
class MentorOptions(TrackedOptions):
    """What can be changed with `--set`."""

    mentor: Literal["auto", "predefined", "learned"] = setting(
        "auto", "the curriculum; auto: learned where there are trusted samples"
    )
    burn_in_dropout: float = setting(0.5, "share of each batch that is left out in the burn-in", least=0, most=0.99)
    dropout: float = setting(0.05, "share of each batch that is left out later", least=0, most=0.99)
    percentile_decay: float = setting(0.5, "share of the moving percentile that a step keeps", least=0, most=0.999)


def predefined_weights(above: Tensor, *, slope: float) -> Tensor:
    """The closed form in lambda_1, which losses are `above` by so much, and lambda_2, the `slope` beyond it."""
    return (1 - above / slope).clamp(0, 1) if slope else (above <= 0).to(above.dtype)


class Mentor(nn.Module):
    """MentorNet (Jiang et al. 2018, Section 3.2 and Figure 1): two embeddings and a recurrent net, then two layers.

    The recurrent net reads [n, visits, 2]: at each of a sample's latest visits its loss, and how far that was above the
    moving percentile of all losses. Progress starts without a meaning, so that a stage not met yet says nothing.
    """

    def __init__(
        self, classes: int, rng: torch.Generator, *, recurrent: int = 4, label_width: int = 2, progress_width: int = 5
    ) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(rng.get_state())
            self.label = nn.Embedding(classes, label_width)
            self.progress = nn.Embedding(STAGES, progress_width)
            self.recurrent = nn.LSTM(2, recurrent, batch_first=True, bidirectional=True)
            self.hidden = nn.Linear(2 * recurrent + label_width + progress_width, 20)
            self.verdict = nn.Linear(20, 1)
        nn.init.zeros_(self.progress.weight)

    def forward(self, history: Tensor, labels: Tensor, progress: Tensor) -> Tensor:
        """Log-odds that each label is right; `progress`, a single percentage, is that of all samples."""
        _, (last, _) = self.recurrent(history)
        features = [*last, self.label(labels), self.progress(progress).expand(len(labels), -1)]
        scores: Tensor = self.verdict(torch.tanh(self.hidden(torch.cat(features, dim=1))))
        return scores[:, 0]

    @torch.no_grad()
    def weigh(self, history: Tensor, labels: Tensor, progress: Tensor) -> Tensor:
        """The samples' weights, between 0 and 1: sigmoid of the log-odds."""
        return self.forward(history, labels, progress).sigmoid()

    def fit(self, history: Tensor, labels: Tensor, progress: Tensor, right: Tensor, *, steps: int = 100) -> None:
        """Learn from samples of which it is known whether their label is right, on from what was learned before."""
        optimiser = torch.optim.Adam(self.parameters(), lr=0.01)
        for _ in range(steps):
            optimiser.zero_grad()
            F.binary_cross_entropy_with_logits(self(history, labels, progress), right.float()).backward()  # type: ignore[no-untyped-call]
            optimiser.step()


@method("mentornet")
class MentorNet(PublishedMethod):
    """Samples weighted by a curriculum on their losses, predefined or learned (Jiang et al. 2018).

    The schedule is that of ResNet-101 on CIFAR: 39,000 steps on 128 samples, drops after 19,531, 25,000 and 30,000.
    """

    published = (100, (50, 64, 77))
    options: MentorOptions
    agreed: Tensor
    percentile: Tensor
    progress: Tensor
    history: Tensor

    def __init__(self, options: MentorOptions, epochs: int) -> None:
        super().__init__(options, epochs)
        self.curriculum, self.soft = self.timeline.start(BURN_IN + 1), self.timeline.start(LAST_HARD + 1)
        self.needs_fresh = (self.curriculum,)
        self.mentor: Mentor | None = None

    def initial_state(self, task: Task) -> Mapping[str, Tensor]:
        """All labels count as right; a learned mentor is engaged, and half of the trusted samples get wrong labels."""
        self.labels, remembered = task.labels, 0
        few = task.trusted is None or len(task.trusted) < 2
        if self.options.mentor == "learned" or (self.options.mentor == "auto" and not few):
            self._engage(task, require_trusted(task, 2).index)
            remembered = len(task)
        return {
            "agreed": torch.ones(()),
            "percentile": torch.zeros(()),
            "progress": torch.zeros((), dtype=torch.int64),
            "history": torch.zeros(remembered, VISITS, 2),
        }

    def _engage(self, task: Task, trusted: Tensor) -> None:
        rng, device = generator(0, "mentor"), task.labels.device
        shift = torch.randint(1, task.classes, (len(trusted),), generator=rng)
        shift[torch.randperm(len(trusted), generator=rng)[len(trusted) // 2 :]] = 0
        self.taught, self.right = trusted, to_device(shift == 0, device)
        self.labels = task.labels.index_add(0, trusted, to_device(shift, device)) % task.classes
        self.mentor = Mentor(task.classes, rng)
        self.per_sample = ("history",)

    def phase(self, epoch: int) -> str:
        if epoch < self.curriculum:
            return "burn-in"
        return "predefined curriculum" if self.mentor is None else "learned mentor"

    def objective(self, step: Step) -> Tensor:
        index = step.batch.index
        labels = self.labels[index]
        losses = F.cross_entropy(step.logits, labels, reduction="none")
        weights = self.weights(losses.detach(), labels, index, step.epoch)
        return (weights * self.kept(len(step.batch), step.epoch, step.rng, losses) * losses).mean()

    def weights(self, losses: Tensor, labels: Tensor, index: Tensor, epoch: int) -> Tensor:
        """What the mentor makes of the losses, after the percentile has moved and they have been written down."""
        threshold = losses.quantile(self.agreed)
        self.percentile = threshold.lerp(self.percentile, self.options.percentile_decay)
        above = losses - self.percentile
        if self.mentor is not None:
            latest = torch.stack([losses, above], dim=1)[:, None]
            self.history[index] = torch.cat([self.history[index][:, 1:], latest], dim=1)
        if epoch < self.curriculum:
            return torch.ones_like(losses)
        if self.mentor is not None:
            return self.mentor.weigh(self.history[index], labels, self.progress)
        return predefined_weights(above, slope=1.0 if epoch >= self.soft else 0.0)

    def kept(self, samples: int, epoch: int, rng: torch.Generator, like: Tensor) -> Tensor:
        """1 for the samples that stay when the epoch's share is left out at random, and 0 for the others."""
        rate = self.options.burn_in_dropout if epoch < self.curriculum else self.options.dropout
        stays = torch.randperm(samples, generator=rng) < max(1, int(samples * (1 - rate)))
        return to_device(stays, like.device).to(like.dtype)

    def after_tracking(self, ledgers: Sequence[Ledger], epoch: int) -> None:
        """Estimate again how many labels are right, and teach the mentor by the trusted samples' losses."""
        super().after_tracking(ledgers, epoch)
        self.agreed = 1 - torch.stack([ledger.disagreement_rate for ledger in ledgers]).mean()
        self.progress.fill_(min(STAGES * epoch // self.timeline.epochs, STAGES - 1))
        if self.mentor is not None:
            self.mentor.fit(self.history[self.taught], self.labels[self.taught], self.progress, self.right)
