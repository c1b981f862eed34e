"""The vocabulary of training that every other module speaks; `Learner` has a file of its own."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from .learner import Learner as Learner
from .learner import head_of as head_of
from .learner import inputs_of as inputs_of

if TYPE_CHECKING:
    from .detect.ledger import Ledger

LEAST_BELIEF = 1e-4
"""Added to probabilities before their logarithm is taken, so that certainty stays finite."""


def generator(seed: int, *purpose: str | int) -> torch.Generator:
    """A CPU generator that depends on the run's seed and on what it is for, and on nothing else.

    Because every step derives its own, a resumed run draws what an uninterrupted one would have drawn.
    """
    digest = hashlib.sha256(repr((seed, *purpose)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)


@dataclass(frozen=True)
class Draws:
    """The random draws of an epoch: a generator for its order, and for each step one to augment by and one to learn by.

    No step's draws depend on those before it, so that a run can be resumed in the middle of an epoch. Processes that
    train together share the order and nothing else.
    """

    seed: int
    epoch: int
    rank: int = 0

    def order(self) -> torch.Generator:
        """For the order of the samples."""
        return generator(self.seed, "order", self.epoch)

    def batch(self, step: int) -> torch.Generator:
        """For the views of a step's samples."""
        return generator(self.seed, "batch", self.epoch, step, self.rank)

    def step(self, step: int) -> torch.Generator:
        """For whatever a method draws in a step."""
        return generator(self.seed, "step", self.epoch, step, self.rank)


def to_device(values: Tensor, device: torch.device | str) -> Tensor:
    """A CPU tensor on the device that trains, without waiting for it: from pinned memory where there is a GPU."""
    if torch.device(device).type == "cuda":
        return values.pin_memory().to(device, non_blocking=True)
    return values.to(device)


@dataclass(frozen=True)
class Batch:
    """Some training samples as the network sees them."""

    inputs: Tensor
    labels: Tensor
    index: Tensor
    second: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)


class Trusted(Protocol):
    """Samples of the training set whose labels are known to be right; every process has all of them."""

    @property
    def index(self) -> Tensor:
        """Where they stand in the training set."""

    def __len__(self) -> int: ...

    def draw(self, size: int, rng: torch.Generator) -> Batch:
        """So many of them at random, or all if there are fewer, augmented as in training."""

    def sweep(self) -> Iterator[Batch]:
        """Each of them once, as it is."""


@dataclass(frozen=True)
class Task:
    """All that a method may know of the problem: observed labels, never the truth or the noise rate."""

    labels: Tensor
    classes: int
    epochs: int
    trusted: Trusted | None = None

    def __len__(self) -> int:
        return len(self.labels)


class Feed(Protocol):
    """Where batches come from."""

    def __len__(self) -> int: ...

    @property
    def steps(self) -> int:
        """Batches in an epoch."""

    def shuffled(self, draws: Draws, *, views: int = 1, start: int = 0) -> Iterator[Batch]:
        """One epoch of augmented training batches in random order, from the step `start` on."""

    def sweep(self, rng: torch.Generator | None = None, *, rows: Tensor | None = None) -> Iterator[Batch]:
        """Every sample once, or every one of these rows, in order; augmented if a generator is given."""


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

    A pass is run only when its result is needed, and only once: the clean one without gradients, in evaluation
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
            with torch.no_grad() if training else self.learner.evaluating():
                self.passes[training] = self.learner(self.batch.inputs).float()
        return self.passes[training]

    def clean_losses(self) -> Tensor:
        """Cross-entropy of the unmixed inputs against the observed labels, in evaluation mode (Eq. 1)."""
        return F.cross_entropy(self.clean_logits(), self.batch.labels, reduction="none")


@dataclass(frozen=True)
class NoiseEstimate:
    """What a method believes of the labels after an epoch.

    `decided_by` names what it rests on: a mixture of "losses" or of "rival_log_odds", or the judge of "predictions";
    `parameters` are those that were fitted. If there was nothing to tell wrong labels by, it is None, the rate is 0 and
    `degenerate` has the reason.
    """

    probability: Tensor
    rate: float
    parameters: dict[str, float]
    decided_by: str | None
    degenerate: str | None


class Method(nn.Module):
    """A way to train on wrong labels. Only `step` is compulsory; buffers are checkpointed.

    `networks` are how many learners it trains, `views` how many augmented views of a batch it takes. `records` are what
    it needs from tracking passes: "mean_log_probs" or "features" beside the losses. `per_sample` names buffers with a
    row for each training sample that steps write to, so that processes that train together can tell each other.
    The networks of a `cross_fitted` method share one ledger, in which every sample is judged by a network that did not
    learn from it. Labels are judged at the end by predictions and margins, or by predictions alone.
    `newest_share` is the least share of the newest tracking pass in the mean predictions.
    """

    networks = 1
    views = 1
    records: frozenset[str] = frozenset({"losses"})
    per_sample: tuple[str, ...] = ()
    track_augmented = False
    cross_fitted = False
    judged_by_predictions = False
    newest_share = 0.0

    def begin(self, task: Task, ledgers: Sequence["Ledger"] = ()) -> None:
        """Once, before the first epoch; the ledgers, one for each network, will fill as the run goes on."""

    def rate(self, epoch: int) -> float:
        """Learning rate of this epoch, as a multiple of the one the run started with."""
        return 1.0

    def schedule_progress(self, epoch: int, done: float, epochs: int) -> float:
        """How far a schedule of learning rates over the run has come when this share of an epoch is done, 0 to 1."""
        return (epoch - 1 + done) / epochs

    def phase(self, epoch: int) -> str:
        """What the method is doing in this epoch, in a word or two."""
        return "train"

    def judged_by(self, network: int, epoch: int) -> Tensor | None:
        """The rows of the training set that this network judges after this epoch; None for all of them."""
        return None

    def controls(self) -> Tensor | None:
        """Rows of the training set that no network learns, to tell how far it memorised the others; None for none."""
        return None

    def epoch_begin(self, learners: Sequence[Learner], epoch: int) -> None:
        """Before the first step of an epoch."""

    def batches(self, feed: Feed, draws: Draws, *, start: int = 0) -> Iterator[Batch]:
        """The batches of one epoch, from the step `start` on."""
        return feed.shuffled(draws, views=self.views, start=start)

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator) -> Tensor:
        """Learn from one batch; gives the training loss, detached."""
        raise TypeError(f"{type(self).__name__} must implement step")

    def tracks(self, epoch: int) -> bool:
        """Whether a tracking pass follows this epoch; the last epoch always has one."""
        return True

    def tracks_before(self, step: int, steps: int) -> bool:
        """Whether a tracking pass comes inside an epoch too, before this one of its steps, counted from 0."""
        return False

    def after_sweep(self, ledger: "Ledger", network: int, epoch: int) -> None:
        """In a tracking pass, when this network's predictions of the rows that it judges are in the ledger."""

    def after_tracking(self, ledgers: Sequence["Ledger"], epoch: int) -> None:
        """After every tracking pass of an epoch."""

    def estimate(self) -> NoiseEstimate | None:
        """What is known of the labels so far, if the method keeps track."""
        return None
