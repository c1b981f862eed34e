"""Targets that a step learns: the given labels, or labels corrected by the network's own guess (Eq. 10)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..core import Step

Guess = Callable[[Tensor, int], Tensor]
GuessShare = Callable[[Step], Tensor]
Predictions = Callable[[Step], Tensor]


def given(step: Step) -> Tensor:
    """The observed labels, one-hot, [n, C]."""
    return step.labels


def hard(logits: Tensor, epoch: int) -> Tensor:
    """The most probable class of logits [n, C], one-hot, [n, C]: z in Eq. 10."""
    return F.one_hot(logits.argmax(dim=1), logits.shape[1]).to(logits.dtype)


def soft(logits: Tensor, epoch: int) -> Tensor:
    """The probabilities of logits [n, C], [n, C]: h in place of z."""
    return logits.softmax(dim=1)


@dataclass(frozen=True)
class Tempered:
    """Probabilities [n, C] of logits [n, C], sharpened by a temperature that depends on the epoch (Eq. 16)."""

    temperature: Callable[[int], float]

    def __call__(self, logits: Tensor, epoch: int) -> Tensor:
        return (logits / self.temperature(epoch)).softmax(dim=1)


def moved_toward(labels: Tensor, guess: Tensor, share: Tensor) -> Tensor:
    """(1 - w) y + w z, [n, C]: labels [n, C] moved toward guesses [n, C], each by its share w, [n] (Eq. 10).

    >>> moved_toward(torch.tensor([[1.0, 0]]), torch.tensor([[0.0, 1]]), torch.tensor([0.25]))
    tensor([[0.7500, 0.2500]])
    """
    share = share[:, None]
    return (1 - share) * labels + share * guess


@dataclass(frozen=True)
class Corrected:
    """(1 - w) y + w z, [n, C]: each label moved toward the guess by its share w, [n] (Eq. 10).

    Without mixing, the step's own predictions make the guess; with it, `predictions` say what the unmixed inputs are.
    """

    guess: Guess
    share: GuessShare
    predictions: Predictions = Step.clean_logits

    def __call__(self, step: Step) -> Tensor:
        logits = step.clean_logits(training=True) if step.mix is None else self.predictions(step)
        return moved_toward(step.labels, self.guess(logits, step.epoch), self.share(step))


def in_training_mode(step: Step) -> Tensor:
    """Predictions of a pass in training mode, which also moves BatchNorm statistics. Paper: silent; Released: so."""
    return step.clean_logits(training=True)


@dataclass(frozen=True)
class Fixed:
    """The same share for every sample: static bootstrapping."""

    value: float

    def __call__(self, step: Step) -> Tensor:
        return torch.full_like(step.batch.labels, self.value, dtype=torch.float32)
