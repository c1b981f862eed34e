"""A fast network for images from 16 px: good after few epochs, on a CPU too.

The ideas are those of the speed records on CIFAR-10 (Jordan 2024, "94% on CIFAR-10 in 3.29 Seconds on a Single GPU"):
a first layer that whitens small patches and is not trained, convolutions that start as the identity, pooling inside the
blocks, normalisation without scale and with a bias that learns quickly. Departures: widths in a ratio of 1 to 3 to 3;
on larger images the first layer takes larger patches at a larger stride, so that the cost hardly depends on the size.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

TYPICAL_SIDE = 32
"""Side that the first layer brings images to, roughly."""
PATCH_DIRECTIONS = 12
"""Directions of patches that are kept: those of greatest variance, each with both signs."""
WHITENING_FLOOR = 5e-4
"""Added to the variances, so that directions of almost none are not blown up."""
QUICK_BIAS = 8.0
"""Factor on the biases of normalisations: by it they learn this many times squared as quickly as weights."""


class WhitenedPatches(nn.Module):
    """Patches along their principal directions, at unit variance and with both signs; nothing of it is learned.

    The records learn a bias here. It gains nothing, and without it no gradients of the largest maps are needed, which
    are a tenth of the time of a step.
    """

    filters: Tensor

    def __init__(self, channels: int, side: int) -> None:
        super().__init__()
        self.stride = max(1, round(side / TYPICAL_SIDE))
        self.patch = 2 * self.stride
        directions = min(PATCH_DIRECTIONS, channels * self.patch**2)
        self.width = 2 * directions
        start = torch.randn(directions, channels, self.patch, self.patch) / self.patch
        self.register_buffer("filters", torch.cat([start, -start]))

    @torch.no_grad()
    def fit(self, images: Tensor) -> None:
        """Take the directions from normalised images."""
        directions = self.width // 2
        patches = F.unfold(images.float(), self.patch, stride=self.patch).transpose(1, 2)
        rows = patches.reshape(-1, patches.shape[2]).double()
        variances, vectors = torch.linalg.eigh(rows.T @ rows / len(rows))
        scaled = (vectors / (variances.clamp_min(0) + WHITENING_FLOOR).sqrt()).T.flip(0)[:directions]
        filters = scaled.reshape(directions, *self.filters.shape[1:])
        self.filters.copy_(torch.cat([filters, -filters]))

    def forward(self, images: Tensor) -> Tensor:
        """Responses to the patches, [n, width, height, width]."""
        return F.conv2d(images, self.filters, stride=self.stride)


class Centred(nn.Module):
    """Batch normalisation without scale, and with a bias that learns quickly."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(width, affine=False)
        self.bias = nn.Parameter(torch.zeros(width, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """The normalised input, moved by the bias."""
        normed: Tensor = self.norm(x) + QUICK_BIAS * self.bias
        return normed


class FastBlock(nn.Module):
    """Two 3x3 convolutions with pooling after the first, each normalised and activated."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = _identity_conv(channels, width), Centred(width)
        self.conv2, self.norm2 = _identity_conv(width, width), Centred(width)

    def forward(self, x: Tensor) -> Tensor:
        """The block's output, at half the resolution."""
        pooled = F.max_pool2d(self.conv1(x), 2)
        x = F.gelu(self.norm1(pooled))
        return F.gelu(self.norm2(self.conv2(x)))


class FastNet(nn.Module):
    """A whitened first layer, three blocks, the greatest response of each channel, and a linear head."""

    def __init__(self, shape: Sequence[int], classes: int, *, width: int) -> None:
        super().__init__()
        self.stem = WhitenedPatches(shape[0], min(shape[1:]))
        widths = (self.stem.width, width, 3 * width, 3 * width)
        self.blocks = nn.Sequential(*(FastBlock(*pair) for pair in pairwise(widths)))
        self.head = nn.Linear(widths[-1], classes)

    def fit_inputs(self, images: Tensor) -> None:
        """Set what depends on the data and is not learned, from some normalised images."""
        self.stem.fit(images)

    def features(self, x: Tensor) -> Tensor:
        """Penultimate features, [n, 3 * width]."""
        maps: Tensor = self.blocks(F.gelu(self.stem(x)))
        return maps.amax(dim=(2, 3))

    def forward(self, x: Tensor) -> Tensor:
        """Class scores, [n, C]."""
        scores: Tensor = self.head(self.features(x))
        return scores


def _identity_conv(channels: int, width: int) -> nn.Conv2d:
    """A 3x3 convolution that passes its input on in the first channels; the others start at random."""
    conv = nn.Conv2d(channels, width, 3, padding=1, bias=False)
    nn.init.dirac_(conv.weight.data[: min(channels, width)])
    return conv
