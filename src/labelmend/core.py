"""The vocabulary that every other module speaks. Imports nothing of ours."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

LEAST_BELIEF = 1e-4
"""Added to probabilities before their logarithm is taken, so that certainty stays finite."""


def generator(seed: int, *purpose: str | int) -> torch.Generator:
    """A CPU generator that depends on the run's seed and on what it is for, and on nothing else.

    Because every epoch derives its own, a resumed run draws what an uninterrupted one would have drawn.
    """
    digest = hashlib.sha256(repr((seed, *purpose)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)


@dataclass(frozen=True)
class Batch:
    """Some training samples as the network sees them."""

    inputs: Tensor
    labels: Tensor
    index: Tensor
    second: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Task:
    """All that a method may know of the problem: observed labels, never the truth or the noise rate."""

    labels: Tensor
    classes: int
    epochs: int
    trusted: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)


class Feed(Protocol):
    """Where batches come from."""

    def __len__(self) -> int: ...

    @property
    def steps(self) -> int:
        """Batches in an epoch."""

    def shuffled(self, rng: torch.Generator, *, views: int = 1) -> Iterator[Batch]:
        """One epoch of augmented training batches in random order."""

    def sweep(self, rng: torch.Generator | None = None) -> Iterator[Batch]:
        """Every sample once, in order; augmented if a generator is given."""


class Ledger:
    """What the tracking passes recorded for each training sample, in the order of the data set.

    `losses` are those of the last pass; the rest is over all passes since the last `restart`. `margins` are the mean
    log-odds against the given label, log (1 - p) - log p. A sample's rival is the best other class: `gaps` is its mean
    lead, log p(rival) - log p(given), `doubts` the share of passes in which it was ahead, `rivals` the class that was
    it most steadily, and `leads` how steadily, from 0 to 1. `probabilities` are kept only when asked for.
    """

    RUNNING = ("margins", "gaps", "doubts", "rivals", "leads")

    def __init__(self, samples: int, *, device: torch.device | str = "cpu") -> None:
        self.losses = torch.zeros(samples, device=device)
        self.margins = torch.zeros(samples, device=device)
        self.gaps = torch.zeros(samples, device=device)
        self.doubts = torch.zeros(samples, device=device)
        self.rivals = torch.zeros(samples, dtype=torch.long, device=device)
        self.leads = torch.zeros(samples, device=device)
        self.probabilities: Tensor | None = None
        self.passes = 0

    def restart(self) -> None:
        """Forget the margins so far; the next pass is the first that counts."""
        self.passes = 0

    def open_pass(self) -> None:
        """Another pass over all samples begins."""
        self.passes += 1

    def write(self, index: Tensor, labels: Tensor, logits: Tensor) -> None:
        """Record one batch of the pass that is open."""
        probabilities = logits.softmax(dim=1)
        self.losses[index] = F.cross_entropy(logits, labels, reduction="none")
        given = probabilities.gather(1, labels[:, None])[:, 0]
        best = probabilities.scatter(1, labels[:, None], 0.0).max(dim=1)
        against, rival, own = ((p + LEAST_BELIEF).log() for p in (1 - given, best.values, given))
        self._average(self.margins, index, against - own)
        self._average(self.gaps, index, rival - own)
        self._average(self.doubts, index, (best.values > given).float())
        self._vote(index, best.indices, best.values / (1 - given).clamp_min(LEAST_BELIEF))
        if self.probabilities is not None:
            self.probabilities[index] = probabilities

    def _average(self, means: Tensor, index: Tensor, values: Tensor) -> None:
        means[index] += (values - means[index]) / self.passes

    def _vote(self, index: Tensor, rival: Tensor, weight: Tensor) -> None:
        """Weighted majority over the passes in constant memory: a vote for another class shortens the lead."""
        leader, lead = self.rivals[index], self.leads[index] * ((self.passes - 1) / self.passes)
        change = weight.clamp(max=1.0) / self.passes
        lead = torch.where(rival == leader, lead + change, lead - change)
        self.rivals[index] = torch.where(lead < 0, rival, leader)
        self.leads[index] = lead.abs()


class Learner:
    """A network with its optimiser: predicts when called, and learns by `descend`."""

    def __init__(
        self,
        network: nn.Module,
        optimiser: torch.optim.Optimizer,
        *,
        backward: Callable[[Tensor], None] = torch.Tensor.backward,
    ) -> None:
        self.network = network
        self.optimiser = optimiser
        self.backward = backward
        self.base_rate = float(optimiser.param_groups[0]["lr"])

    def __call__(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.network(inputs)
        return logits

    def descend(self, loss: Tensor) -> None:
        """One optimisation step down the gradient of the loss."""
        self.optimiser.zero_grad(set_to_none=True)
        self.backward(loss)
        self.optimiser.step()

    def set_rate(self, factor: float) -> None:
        """Set the learning rate to this multiple of the one the run started with."""
        for group in self.optimiser.param_groups:
            group["lr"] = self.base_rate * factor

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """The network in evaluation mode and without gradients, put back as it was afterwards."""
        was_training = self.network.training
        self.network.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.network.train(was_training)


@dataclass(frozen=True)
class Mix:
    """How a batch is mixed with a permutation of itself; inputs and targets may have different shares."""

    partner: Tensor
    input_share: Tensor
    target_share: Tensor

    def inputs(self, values: Tensor) -> Tensor:
        """Inputs mixed with their partners' (Eqs. 11, 15)."""
        return self._blend(values, self.input_share)

    def targets(self, values: Tensor) -> Tensor:
        """Targets mixed with their partners': by linearity, Eq. 12 on losses."""
        return self._blend(values, self.target_share)

    def _blend(self, values: Tensor, share: Tensor) -> Tensor:
        share = share.to(values.dtype).view(-1, *[1] * (values.dim() - 1))
        return share * values + (1 - share) * values[self.partner]


@dataclass
class Step:
    """One optimisation step, and the forward passes that parts share in it.

    A pass is run only if somebody asks for its result, and once: the clean one without gradients, in evaluation
    mode or in training mode.
    """

    learner: Learner
    batch: Batch
    epoch: int
    rng: torch.Generator
    classes: int
    mix: Mix | None = None
    passes: dict[bool, Tensor] = field(default_factory=dict)

    @cached_property
    def logits(self) -> Tensor:
        """Predictions for the (mixed) inputs, with gradients: what the step learns from."""
        inputs = self.batch.inputs if self.mix is None else self.mix.inputs(self.batch.inputs)
        return self.learner(inputs).float()

    @cached_property
    def labels(self) -> Tensor:
        """Observed labels, one-hot, [n, C]."""
        return F.one_hot(self.batch.labels, self.classes).float()

    def clean_logits(self, *, training: bool = False) -> Tensor:
        """Predictions for the unmixed inputs, without gradients."""
        if training and self.mix is None:
            return self.logits.detach()
        if training not in self.passes:
            self.passes[training] = self._clean_pass(training)
        return self.passes[training]

    def clean_losses(self) -> Tensor:
        """Cross-entropy of the unmixed inputs against the observed labels, in evaluation mode (Eq. 1)."""
        return F.cross_entropy(self.clean_logits(), self.batch.labels, reduction="none")

    def _clean_pass(self, training: bool) -> Tensor:
        if training:
            with torch.no_grad():
                return self.learner(self.batch.inputs).float()
        with self.learner.evaluating():
            return self.learner(self.batch.inputs).float()


@dataclass(frozen=True)
class NoiseEstimate:
    """What a method believes of the labels after an epoch."""

    probability: Tensor
    rate: float
    parameters: dict[str, float]
    verdict: str | None


class Method(nn.Module):
    """A way to train on wrong labels. Only `step` is compulsory; buffers are checkpointed."""

    networks = 1
    views = 1
    records: frozenset[str] = frozenset({"losses"})
    track_augmented = False

    def begin(self, task: Task) -> None:
        """Once, before the first epoch."""

    def rate(self, epoch: int) -> float:
        """Learning rate of this epoch, as a multiple of the one the run started with."""
        return 1.0

    def phase(self, epoch: int) -> str:
        """What the method is doing in this epoch, in a word or two."""
        return "train"

    def batches(self, feed: Feed, epoch: int, rng: torch.Generator) -> Iterator[Batch]:
        """The batches of one epoch."""
        return feed.shuffled(rng, views=self.views)

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator) -> Tensor:
        """Learn from one batch; gives the training loss, detached."""
        raise TypeError(f"{type(self).__name__} has no step: a method must say how it learns from a batch")

    def epoch_end(self, ledgers: Sequence[Ledger], epoch: int) -> None:
        """After the tracking pass of an epoch."""

    def estimate(self) -> NoiseEstimate | None:
        """What is known of the labels so far, if the method keeps track."""
        return None
