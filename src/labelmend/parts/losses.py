"""Per-sample losses, unreduced."""

from torch import Tensor


def soft_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy against soft targets, [n] (Eq. 1; with corrected and mixed targets, Eqs. 10, 12 and 13)."""
    return -(targets * logits.log_softmax(dim=1)).sum(dim=1)
