"""Augmentation of whole batches by tensor indexing."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ...core import to_device


@dataclass(frozen=True)
class Augment:
    """Random crop after padding, and horizontal flip (Appendix B: 4 pixels of zeros at 32x32).

    `mirror` pads with the mirror image of what is inside the border, in place of zeros.
    """

    pad: int = 0
    flip: bool = False
    mirror: bool = False

    def __call__(self, images: Tensor, rng: torch.Generator) -> Tensor:
        """Each image moved and flipped by its own draw, channels last in memory."""
        count, _, height, width = images.shape
        device = images.device
        top, left = (torch.randint(2 * self.pad + 1, (count, 1), generator=rng) for _ in range(2))
        rows = top + torch.arange(height)
        columns = left + torch.arange(width)
        if self.flip:
            mirrored = torch.rand(count, 1, generator=rng) < 0.5
            columns = torch.where(mirrored, columns.flip(1), columns)
        if self.mirror:
            rows, columns = _inside(rows - self.pad, height), _inside(columns - self.pad, width)
        elif self.pad:
            images = F.pad(images, [self.pad] * 4)
        which = torch.arange(count, device=device)[:, None, None]
        rows, columns = to_device(rows, device), to_device(columns, device)
        picked = images.permute(0, 2, 3, 1)[which, rows[:, :, None], columns[:, None, :]]
        return picked.permute(0, 3, 1, 2)


def _inside(positions: Tensor, size: int) -> Tensor:
    """Positions outside of 0 to size - 1 mirrored at the border."""
    positions = positions.abs()
    return torch.where(positions < size, positions, 2 * (size - 1) - positions)
