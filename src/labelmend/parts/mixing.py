"""How samples of a batch are mixed: not at all, by mixup, or guided by the noise model."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..core import Mix, Step, to_device


def unmixed(step: Step) -> None:
    """No mixing."""
    return


def draw_share(alpha: float, rng: torch.Generator) -> float:
    """A draw from Beta(alpha, alpha). NumPy draws it, seeded by the generator: torch's takes no generator."""
    seed = int(torch.randint(2**62, (1,), generator=rng))
    return float(np.random.default_rng(seed).beta(alpha, alpha))


def draw_partner(step: Step) -> Tensor:
    """A permutation of the batch on its device, [n]."""
    return to_device(torch.randperm(len(step.batch), generator=step.rng), step.batch.labels.device)


def mix_along(order: Tensor, share: float, *, unmixed: Tensor | None = None) -> Mix:
    """Mixup of a batch of n samples by one share, except for these rows of it, [at most n].

    `order` is a permutation of the batch, [n]: each sample's partner is the one before it, so that none is mixed with
    itself. The mix has `inputs` and `targets`, which take and give [n, ...] and [n, C].

    >>> mix = mix_along(torch.tensor([2, 0, 1]), 0.75, unmixed=torch.tensor([0]))
    >>> mix.partner, mix.input_share
    (tensor([2, 0, 1]), tensor([1.0000, 0.7500, 0.7500]))
    """
    partner = torch.empty_like(order).index_copy_(0, order, order.roll(1))
    shares = torch.full(order.shape, share, device=order.device)
    if unmixed is not None:
        shares.index_fill_(0, unmixed, 1.0)
    return Mix(partner, shares, shares)


@dataclass(frozen=True)
class Mixup:
    """Mixup with one share a batch from Beta(alpha, alpha), as partners and shares [n] (Eqs. 11-12)."""

    alpha: float

    def __call__(self, step: Step) -> Mix:
        share = step.batch.inputs.new_full((len(step.batch),), draw_share(self.alpha, step.rng))
        return Mix(draw_partner(step), share, share)


@dataclass(frozen=True)
class DynamicMixup:
    """Inputs mixed by how clean each sample is (Eq. 15); targets by a share of their own.

    Paper: the targets keep mixup's share (Eq. 13), a draw from Beta(alpha, alpha). Released: once bootstrapping
    has begun, a fixed half, which is `alpha=None`.
    """

    noisy: Callable[[Step], Tensor]
    alpha: float | None

    def __call__(self, step: Step) -> Mix:
        """A partner for each sample, and for the input the share of its clean probability in the pair's."""
        partner = draw_partner(step)
        clean = (1 - self.noisy(step)).clamp_min(1e-6)
        share = 0.5 if self.alpha is None else draw_share(self.alpha, step.rng)
        return Mix(partner, clean / (clean + clean[partner]), torch.full_like(clean, share))
