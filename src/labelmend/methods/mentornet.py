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

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..core import Batch, Learner, Method, Task, generator, to_device
from ..detect.ledger import Ledger
from ..errors import InputError
from ..parts.mentor import STAGES, Mentor
from .registry import method
from .timeline import Timeline
from .tracked import TrackedMethod, TrackedOptions

PUBLISHED, DROPS = 100, (50, 64, 77)
"""ResNet-101 on CIFAR: 39,000 steps on 128 samples, and a tenth of the rate after 19,531, 25,000 and 30,000 of them."""
BURN_IN, LAST_HARD = 20, 90
"""Percent of the training in which everybody counts, and in which the predefined weights are 0 or 1."""
VISITS = 4
"""Latest visits to a sample that the learned mentor reads."""


@dataclass(frozen=True)
class MentorOptions(TrackedOptions):
    """What can be changed with `--set`."""

    mentor: Literal["auto", "predefined", "learned"] = field(
        default="auto", metadata={"help": "the curriculum; auto: learned where there are trusted samples"}
    )
    burn_in_dropout: float = field(
        default=0.5, metadata={"help": "share of each batch that is left out in the burn-in", "least": 0, "most": 0.99}
    )
    dropout: float = field(
        default=0.05, metadata={"help": "share of each batch that is left out later", "least": 0, "most": 0.99}
    )
    percentile_decay: float = field(
        default=0.5, metadata={"help": "share of the moving percentile that a step keeps", "least": 0, "most": 0.999}
    )


def predefined_weights(above: Tensor, *, slope: float) -> Tensor:
    """The closed form in lambda_1, which losses are `above` by so much, and lambda_2, the `slope` beyond it."""
    return (1 - above / slope).clamp(0, 1) if slope else (above <= 0).to(above.dtype)


class MentorNet(TrackedMethod):
    """Cross-entropy weighted by a mentor (Algorithm 1)."""

    agreed: Tensor
    percentile: Tensor
    progress: Tensor
    history: Tensor

    def __init__(self, options: MentorOptions, timeline: Timeline) -> None:
        curriculum = timeline.start(BURN_IN + 1)
        super().__init__(timeline.rate, track_every=options.track_every, needs_fresh=(curriculum,))
        self.options, self.epochs = options, timeline.epochs
        self.curriculum, self.soft = curriculum, timeline.start(LAST_HARD + 1)
        self.mentor: Mentor | None = None
        self.register_buffer("agreed", torch.ones(()))
        self.register_buffer("percentile", torch.zeros(()))
        self.register_buffer("progress", torch.zeros((), dtype=torch.int64))
        self.register_buffer("history", torch.zeros(0, VISITS, 2))

    def begin(self, task: Task, ledgers: Sequence[Ledger] = ()) -> None:
        """Once, before the first epoch: engage the mentor, and give half of the trusted samples wrong labels."""
        super().begin(task, ledgers)
        self.labels, trusted = task.labels, None if task.trusted is None else task.trusted.index
        enough = trusted is not None and len(trusted) > 1
        if self.options.mentor == "learned" and not enough:
            raise InputError(
                "mentor=learned takes at least 2 samples known to be labelled right: give them by --trusted"
            )
        if self.options.mentor == "predefined" or trusted is None or not enough:
            return
        rng, device = generator(0, "mentor"), task.labels.device
        shift = torch.randint(1, task.classes, (len(trusted),), generator=rng)
        shift[torch.randperm(len(trusted), generator=rng)[len(trusted) // 2 :]] = 0
        self.taught, self.right = trusted, to_device(shift == 0, device)
        self.labels = task.labels.index_add(0, trusted, to_device(shift, device)) % task.classes
        self.mentor = Mentor(task.classes, rng)
        self.history = torch.zeros(len(task), VISITS, 2, device=device)
        self.per_sample = ("history",)

    def phase(self, epoch: int) -> str:
        """The burn-in, then who weights."""
        if epoch < self.curriculum:
            return "burn-in"
        return "predefined curriculum" if self.mentor is None else "learned mentor"

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator) -> Tensor:
        """Learn from the batch as far as its samples count."""
        (learner,) = learners
        labels = self.labels[batch.index]
        losses = F.cross_entropy(learner(batch.inputs).float(), labels, reduction="none")
        weights = self.weights(losses.detach(), labels, batch.index, epoch) * self.kept(len(batch), epoch, rng, losses)
        loss = (weights * losses).mean()
        learner.descend(loss)
        return loss.detach()

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
        """Estimate anew how many labels are right, and teach the mentor by the trusted samples' losses."""
        super().after_tracking(ledgers, epoch)
        self.agreed = 1 - torch.stack([ledger.disagreement_rate for ledger in ledgers]).mean()
        self.progress.fill_(min(STAGES * epoch // self.epochs, STAGES - 1))
        if self.mentor is not None:
            self.mentor.fit(self.history[self.taught], self.labels[self.taught], self.progress, self.right)


@method("mentornet", "samples weighted by a curriculum on their losses, predefined or learned (Jiang et al. 2018)")
def mentornet(options: MentorOptions, epochs: int) -> Method:
    """MentorNet, predefined or data-driven."""
    return MentorNet(options, Timeline(PUBLISHED, DROPS, epochs))
