"""The vocabulary that every other module speaks. Imports nothing of ours."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

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

    def sweep(self, rng: torch.Generator | None = None) -> Iterator[Batch]:
        """Every sample once, in order; augmented if a generator is given."""


def head_of(network: nn.Module) -> nn.Linear:
    """A network's last linear layer."""
    return [module for module in network.modules() if isinstance(module, nn.Linear)][-1]


@contextmanager
def inputs_of(layer: nn.Module) -> Iterator[list[Tensor]]:
    """What goes into a layer, for every pass that is made inside."""
    seen: list[Tensor] = []
    hook = layer.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    try:
        yield seen
    finally:
        hook.remove()


class Learner:
    """A network with its optimiser: predicts when called, and learns by `descend`.

    `trained` is the network as it is called in training where that is another object, such as one that shares its
    gradients with other processes. `fresh` builds the network anew as it was before its first step.
    """

    def __init__(
        self,
        network: nn.Module,
        optimiser: torch.optim.Optimizer,
        *,
        backward: Callable[[Tensor], None] = torch.Tensor.backward,
        trained: nn.Module | None = None,
        fresh: Callable[[], nn.Module] | None = None,
    ) -> None:
        self.network = network
        self.fresh = fresh
        self.optimiser = optimiser
        self.backward = backward
        self.trained = network if trained is None else trained
        self.base_rate = float(optimiser.param_groups[0]["lr"])
        self.compiled: Callable[[Tensor], Tensor] | None = None
        self.compiled_size = 0
        self.watched = False

    def __call__(self, inputs: Tensor) -> Tensor:
        forward: Callable[[Tensor], Tensor] = self.trained if self.network.training else self.network
        fits = self.network.training and not self.watched and len(inputs) == self.compiled_size
        if self.compiled is not None and fits:
            forward = self.compiled
        return forward(inputs)

    def compile_for(self, size: int, forward: Callable[[Tensor], Tensor]) -> None:
        """Train on batches of this size by a compiled pass; each other shape or mode would be compiled by itself."""
        self.compiled, self.compiled_size = forward, size

    def descend(self, loss: Tensor) -> None:
        """One optimisation step down the gradient of the loss."""
        self.optimiser.zero_grad(set_to_none=True)
        self.backward(loss)
        self.optimiser.step()

    def reset(self) -> None:
        """Forget everything learned: the weights from before the first step, and no momentum."""
        if self.fresh is None:
            raise TypeError("this learner was not told how to build its network anew")
        self.network.load_state_dict(self.fresh().state_dict())
        self.optimiser.state.clear()

    @property
    def head(self) -> nn.Linear:
        """The network's last linear layer."""
        return head_of(self.network)

    @contextmanager
    def features(self) -> Iterator[list[Tensor]]:
        """What goes into the last layer, [n, features] with its gradients, for every pass that is made inside."""
        was_watched, self.watched = self.watched, True
        try:
            with inputs_of(self.head) as seen:
                yield seen
        finally:
            self.watched = was_watched

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
    """What a method believes of the labels after an epoch.

    `decided_by` names what the deciding mixture was fitted to, "losses" or "rival_log_odds", and `parameters` are those
    of that mixture. If no mixture found two groups, it is None, the rate is 0 and `degenerate` has the reason.
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
    """

    networks = 1
    views = 1
    records: frozenset[str] = frozenset({"losses"})
    per_sample: tuple[str, ...] = ()
    track_augmented = False

    def begin(self, task: Task, ledgers: Sequence["Ledger"] = ()) -> None:
        """Once, before the first epoch; the ledgers, one for each network, will fill as the run goes on."""

    def rate(self, epoch: int) -> float:
        """Learning rate of this epoch, as a multiple of the one the run started with."""
        return 1.0

    def phase(self, epoch: int) -> str:
        """What the method is doing in this epoch, in a word or two."""
        return "train"

    def epoch_begin(self, learners: Sequence[Learner], epoch: int) -> None:
        """Before the first step of an epoch."""

    def batches(self, feed: Feed, draws: Draws, *, start: int = 0) -> Iterator[Batch]:
        """The batches of one epoch, from the step `start` on."""
        return feed.shuffled(draws, views=self.views, start=start)

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator) -> Tensor:
        """Learn from one batch; gives the training loss, detached."""
        raise TypeError(f"{type(self).__name__} has no step: a method must say how it learns from a batch")

    def tracks(self, epoch: int) -> bool:
        """Whether a tracking pass follows this epoch; the last epoch always has one."""
        return True

    def tracks_before(self, step: int, steps: int) -> bool:
        """Whether a tracking pass comes inside an epoch too, before this one of its steps, counted from 0."""
        return False

    def after_tracking(self, ledgers: Sequence["Ledger"], epoch: int) -> None:
        """After every tracking pass of an epoch."""

    def estimate(self) -> NoiseEstimate | None:
        """What is known of the labels so far, if the method keeps track."""
        return None
