"""Small networks that train in seconds an epoch on a CPU."""

from collections.abc import Sequence

from torch import Tensor, nn

WIDEST = 32
"""Columns of standardised rows from which the linear classifier scales them down."""


class BodyAndHead(nn.Module):
    """A body that gives features, and a linear head on them."""

    def __init__(self, body: nn.Module, features: int, classes: int) -> None:
        super().__init__()
        self.body = body
        self.head = nn.Linear(features, classes)

    def features(self, x: Tensor) -> Tensor:
        features: Tensor = self.body(x)
        return features

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.features(x))
        return scores


class ConvNet(BodyAndHead):
    """Three convolutions, the later ones followed by pooling: for small images, from 4 px."""

    def __init__(self, channels: int, classes: int, *, width: int = 32) -> None:
        body = nn.Sequential(
            _conv(channels, width),
            _conv(width, 2 * width),
            nn.MaxPool2d(2),
            _conv(2 * width, 4 * width),
            nn.MaxPool2d(2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        super().__init__(body, 4 * width, classes)


class Linear(BodyAndHead):
    """A linear classifier of feature rows; images are taken as rows of pixels.

    Standardised rows have as large a squared norm as they have columns. Wider ones than `WIDEST` are scaled down to it,
    so that one learning rate suits rows of any width.
    """

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__(nn.Sequential(nn.Flatten(), Scaled(min(1.0, (WIDEST / inputs) ** 0.5))), inputs, classes)


class Scaled(nn.Module):
    """Inputs times a constant."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor


class MLP(BodyAndHead):
    """A multilayer perceptron for feature tables; images are taken as rows of pixels."""

    def __init__(self, inputs: int, classes: int, *, widths: Sequence[int] = (128, 128)) -> None:
        layers: list[nn.Module] = [nn.Flatten()]
        for width in widths:
            layers += [nn.Linear(inputs, width, bias=False), nn.BatchNorm1d(width), nn.ReLU()]
            inputs = width
        super().__init__(nn.Sequential(*layers), inputs, classes)


def _conv(channels: int, width: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
    )
