"""The bottleneck ResNet for large images, with parameter names as published ImageNet weights have them."""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

EXPANSION = 4


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions around a shortcut; the stride is in the 3x3."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        wide = width * EXPANSION
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, wide, 1, bias=False), nn.BatchNorm2d(wide)
        reshapes = stride != 1 or channels != wide
        shortcut = nn.Sequential(nn.Conv2d(channels, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))
        self.downsample = shortcut if reshapes else None

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        out = F.relu(self.bn2(self.conv2(out)))
        shortcut: Tensor = x if self.downsample is None else self.downsample(x)
        return F.relu(self.bn3(self.conv3(out)) + shortcut)


class ResNet(nn.Module):
    """A stem with stride and pooling, four stages of bottlenecks, and a linear head named `fc`."""

    def __init__(self, channels: int, classes: int, blocks: Sequence[int]) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64)
        width = 64
        for stage, count in enumerate(blocks):
            narrow = 64 * 2**stage
            layers = []
            for block in range(count):
                layers.append(Bottleneck(width, narrow, 2 if stage and not block else 1))
                width = narrow * EXPANSION
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.stages = len(blocks)
        self.fc = nn.Linear(width, classes)

    @property
    def head(self) -> nn.Linear:
        """The linear layer over the features."""
        return self.fc

    def features(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, padding=1)
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return x.mean(dim=(2, 3))

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.fc(self.features(x))
        return scores
