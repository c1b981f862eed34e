"""Per-sample losses, unreduced."""

from torch import Tensor


def soft_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy against soft targets, [n] (Eq. 1; with corrected and mixed targets, Eqs. 10, 12 and 13).

    Logits and targets are [n, C].

    >>> import torch
    >>> soft_cross_entropy(torch.zeros(2, 4), torch.eye(4)[:2])
    tensor([1.3863, 1.3863])
    """
    return -(targets * logits.log_softmax(dim=1)).sum(dim=1)
