"""Two ways for a label to be wrong: a habit of the labellers with a class, or the ambiguity of the sample itself.

With the truth k, the given label j comes with probability (1 - a) M[k, j] + a s_j(x): M is the transition matrix of
class habits, and s(x) is how labels fall for this very sample, which is what a network predicts after calibration
against the given labels. The truth itself is near the sharpened prediction, c(x) ~ s(x)^g.
"""

import numpy as np

from .predictions import Floats, Predictions, softmax

MOST_PAIRED = 512
"""Classes up to which every pair of classes has a habit of its own; beyond, every class has one rate of error."""
SHRINKAGE = 20.0
"""Samples by which the habits of a class are drawn to one common rate of error, spread evenly."""
CONVERGED = 1e-7
ITERATIONS = 200


class Habits:
    """M[k, j]: how often a sample of class k is labelled j."""

    def __init__(self, class_count: int) -> None:
        self.class_count, self.rate = class_count, 0.05
        self.right = np.full(class_count, 0.95)
        self.pairs = self._even() if class_count <= MOST_PAIRED else None

    def of(self, predictions: Predictions) -> Floats:
        """M[k, given] for every kept class k of every sample, [n, k]."""
        if self.pairs is not None:
            found: Floats = self.pairs[predictions.classes, predictions.labels[:, None]]
            return found
        right = self.right[predictions.classes]
        same = predictions.classes == predictions.labels[:, None]
        return np.where(same, right, (1 - right) / (self.class_count - 1))

    def fit(self, predictions: Predictions, shares: Floats) -> None:
        """The M-step, from P(the truth is k, and a habit made the label) of every sample, [n, k]."""
        mass = np.bincount(predictions.classes.ravel(), shares.ravel(), self.class_count)
        right = np.bincount(predictions.labels, predictions.of_given(shares), self.class_count)
        self.rate = float((mass.sum() - right.sum() + 0.5) / (mass.sum() + 1))
        self.right = (right + SHRINKAGE * (1 - self.rate)) / (mass + SHRINKAGE)
        if self.pairs is not None:
            sums = by_class_and_label(predictions, shares)
            self.pairs = (sums + SHRINKAGE * self._even()) / (mass + SHRINKAGE)[:, None]

    def _even(self) -> Floats:
        even = np.full((self.class_count, self.class_count), self.rate / (self.class_count - 1))
        np.fill_diagonal(even, 1 - self.rate)
        return even


def sharpened(predictions: Predictions, exponents: Floats) -> Floats:
    """c(x) ~ s(x)^g, [n, k], with the exponent of the class that is predicted."""
    return softmax(exponents.astype(np.float32)[predictions.predicted()][:, None] * predictions.log_probs)


def fit_two_ways(
    truth: Floats,
    given_share: Floats,
    predictions: Predictions,
    *,
    ambiguity: float,
    start: Habits | None = None,
    iterations: int = ITERATIONS,
) -> tuple[Habits, float, float]:
    """EM for the habits and the share of labels that ambiguity made; gives both and the mean log-likelihood.

    `truth` is c(x), [n, k], and `given_share` s_given(x), [n]. `ambiguity` is the share to start from; 0 leaves it out.
    The likelihood is nearly flat in it, so that it stays there unless labels say otherwise. `start` are habits to go on
    from.
    """
    habits, before, likelihood = start or Habits(predictions.class_count), -np.inf, -np.inf
    for step in range(iterations):
        joint = (1 - ambiguity) * truth * habits.of(predictions)
        total = joint.sum(axis=1) + ambiguity * given_share
        likelihood = float(np.log(total).mean())
        if step > 3 and likelihood - before < CONVERGED:
            break
        before = likelihood
        habits.fit(predictions, joint / total[:, None])
        if ambiguity > 0:
            ambiguity = float(np.clip((ambiguity * given_share / total).mean(), 1e-6, 0.999))
    return habits, ambiguity, likelihood


def posterior(truth: Floats, given_share: Floats, predictions: Predictions, habits: Habits, ambiguity: float) -> Floats:
    """P(the truth is k | prediction and given label) of the kept classes, [n, k]."""
    joint = truth * ((1 - ambiguity) * habits.of(predictions) + ambiguity * given_share[:, None])
    found: Floats = joint / joint.sum(axis=1, keepdims=True)
    return found


def by_class_and_label(predictions: Predictions, shares: Floats) -> Floats:
    """Sums of shares [n, k] by class and given label, [C, C]."""
    count = predictions.class_count
    cells = (predictions.classes.astype(np.int64) * count + predictions.labels[:, None]).ravel()
    sums: Floats = np.bincount(cells, shares.ravel().astype(np.float64), count**2).astype(np.float64)
    return sums.reshape(count, count)
