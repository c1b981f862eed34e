"""Transition matrices, T[i, j] = P(label j is given | class i is right): how to estimate them, and losses with them."""

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..core import LEAST_BELIEF


def forward_cross_entropy(logits: Tensor, labels: Tensor, transition: Tensor) -> Tensor:
    """-log sum_i p_i T[i, given], [n]: the given labels against what the noise makes of the predictions.

    Logits are [n, C], labels [n] and the transition matrix [C, C].
    """
    reached = transition.clamp_min(torch.finfo(transition.dtype).tiny).log().t()[labels]
    return -torch.logsumexp(logits.log_softmax(dim=1) + reached, dim=1)


def backward_cross_entropy(logits: Tensor, labels: Tensor, inverse: Tensor) -> Tensor:
    """sum_j inverse(T)[given, j] * -log p_j, [n]: its mean over noisy labels is the loss of the right label.

    Logits are [n, C], labels [n] and the inverse [C, C].
    The mean is kept by any bounds on -log p_j, as long as they are the same for all classes.
    """
    losses = -(logits.softmax(dim=1) + LEAST_BELIEF).log()
    return (inverse[labels] * losses).sum(dim=1)


def best_temperature(logits: Tensor, labels: Tensor) -> float:
    """The one of some temperatures, 1/4 to 4, at which predictions fit labels best that the network has not learned."""
    temperatures = [2 ** (step / 4) for step in range(-8, 9)]
    losses = torch.stack([F.cross_entropy(logits / temperature, labels) for temperature in temperatures])
    return float(temperatures[int(losses.argmin())])


def from_certain_samples(probabilities: Tensor, *, between: tuple[float, float]) -> Tensor:
    """T from posteriors of given labels, [n, C]: row i is what is predicted for samples that are surely of class i.

    They are those most sure of i, between two shares of all that are taken for it: the very surest are outliers.
    """
    taken = F.one_hot(probabilities.argmax(dim=1), probabilities.shape[1]).sum(dim=0).tolist()
    rows = []
    for sure, count in zip(probabilities.t(), taken, strict=True):
        first, last = (int(share * count) for share in between)
        chosen = sure.argsort(descending=True, stable=True)[first : max(last, first + 1)]
        rows.append(probabilities[chosen].mean(dim=0))
    return torch.stack(rows)


def from_known_samples(probabilities: Tensor, labels: Tensor) -> Tensor:
    """T from posteriors of given labels, [n, C], for samples whose right labels are known: the mean over each class.

    A class that has no sample is taken to keep its labels.
    """
    classes = probabilities.shape[1]
    members = F.one_hot(labels, classes).to(probabilities.dtype)
    counts = members.sum(dim=0)[:, None]
    means = members.t() @ probabilities / counts.clamp_min(1)
    return torch.where(counts > 0, means, torch.eye(classes, dtype=means.dtype, device=means.device))


def bounded_inverse(transition: Tensor, *, largest: float) -> Tensor:
    """The inverse of T, mixed with as little of the identity as leaves no row of weights above `largest` in all.

    That is a prior that labels are right, which it takes where T cannot be told from a singular matrix.
    """
    identity = torch.eye(len(transition), dtype=torch.float64, device=transition.device)
    inverse: Tensor = identity
    for share in torch.linspace(0, 1, 101, dtype=torch.float64).tolist():
        inverse, failed = torch.linalg.inv_ex(share * identity + (1 - share) * transition.double())
        if not failed and inverse.abs().sum(dim=1).max() <= largest:
            break
    return inverse.to(transition.dtype)
