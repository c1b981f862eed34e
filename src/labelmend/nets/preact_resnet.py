"""Residual networks with pre-activation, for images from 16 px with 1 or 3 channels."""

from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

NormAt = Literal["head", "stem"]


class PreActBlock(nn.Module):
    """Two 3x3 convolutions, each after BatchNorm and ReLU, around a shortcut."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv1 = nn.Conv2d(channels, width, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        reshapes = stride != 1 or channels != width
        self.shortcut = nn.Conv2d(channels, width, 1, stride, bias=False) if reshapes else None

    def forward(self, x: Tensor) -> Tensor:
        """The block's output; a reshaping shortcut starts from the activated input."""
        active = F.relu(self.norm1(x))
        shortcut = x if self.shortcut is None else self.shortcut(active)
        out: Tensor = self.conv2(F.relu(self.norm2(self.conv1(active))))
        return out + shortcut


class PreActResNet(nn.Module):
    """Pre-activation ResNet for small images: a 3x3 stem and no early pooling.

    The one BatchNorm outside the blocks is before the pooling (`head`), as its inventors have it, or after the
    stem (`stem`). Released: `stem`.
    """

    def __init__(
        self, channels: int, classes: int, *, blocks: Sequence[int], widths: Sequence[int], norm_at: NormAt = "head"
    ) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, widths[0], 3, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(widths[0]) if norm_at == "stem" else None
        stages, width = [], widths[0]
        for stage, (count, wider) in enumerate(zip(blocks, widths, strict=True)):
            for block in range(count):
                stages.append(PreActBlock(width, wider, 2 if stage and not block else 1))
                width = wider
        self.blocks = nn.Sequential(*stages)
        self.head_norm = nn.BatchNorm2d(width) if norm_at == "head" else None
        self.head = nn.Linear(width, classes)

    def features(self, x: Tensor) -> Tensor:
        """Penultimate features, [n, widest]."""
        x = self.stem(x)
        if self.stem_norm is not None:
            x = F.relu(self.stem_norm(x))
        x = self.blocks(x)
        if self.head_norm is not None:
            x = F.relu(self.head_norm(x))
        return x.mean(dim=(2, 3))

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.features(x))
        return scores
