"""Predictions with known wrong labels, as a network makes them that learned the noisy labels without memorising any."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Made:
    labels: NDArray[np.int64]
    predictions: NDArray[np.float64]
    truth: NDArray[np.int64]

    @property
    def wrong(self) -> NDArray[np.bool_]:
        return self.labels != self.truth


def symmetric(rate: float, classes: int) -> NDArray[np.float64]:
    """Every class becomes any other alike."""
    return (1 - rate) * np.eye(classes) + rate * (1 - np.eye(classes)) / (classes - 1)


def pairwise(rate: float, classes: int) -> NDArray[np.float64]:
    """Every class becomes the next one."""
    return (1 - rate) * np.eye(classes) + rate * np.roll(np.eye(classes), 1, axis=1)


def made(
    transition: NDArray[np.float64],
    *,
    samples: int = 5000,
    known: float = 5.0,
    shares: NDArray[np.float64] | None = None,
    seed: int = 0,
) -> Made:
    """Classes are unit Gaussians at distance `known` * sqrt(2), so that P(class | x) is a softmax of `known` * x."""
    rng, classes = np.random.default_rng(seed), len(transition)
    prior = np.full(classes, 1 / classes) if shares is None else shares
    truth = rng.choice(classes, samples, p=prior)
    points = rng.normal(size=(samples, classes))
    points[np.arange(samples), truth] += known
    belief = np.exp(known * (points - points.max(axis=1, keepdims=True))) * prior
    belief /= belief.sum(axis=1, keepdims=True)
    labels = (transition[truth].cumsum(axis=1) > rng.random(samples)[:, None]).argmax(axis=1)
    return Made(labels, belief @ transition, truth)
