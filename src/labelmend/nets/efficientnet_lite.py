"""EfficientNet-Lite0 (Tan and Le 2019, the variant without squeeze-and-excitation): images to features."""

import re
from collections.abc import Mapping

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.utils.fusion import fuse_conv_bn_eval

STAGES = ((1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
          (1, 3, 1, 6, 320))  # fmt: skip
"""Of each stage: blocks, kernel, stride of its first block, expansion, channels."""
STEM, WIDTH = 32, 1280
EPSILON, MOMENTUM = 1e-3, 0.01
RENAMED = (
    (r"^_conv_stem\.", "stem.conv."),
    (r"^_bn0\.", "stem.norm."),
    (r"^_conv_head\.", "last.conv."),
    (r"^_bn1\.", "last.norm."),
    (r"^_blocks\.(\d+)\._expand_conv\.", r"blocks.\1.expand.conv."),
    (r"^_blocks\.(\d+)\._bn0\.", r"blocks.\1.expand.norm."),
    (r"^_blocks\.(\d+)\._depthwise_conv\.", r"blocks.\1.depthwise.conv."),
    (r"^_blocks\.(\d+)\._bn1\.", r"blocks.\1.depthwise.norm."),
    (r"^_blocks\.(\d+)\._project_conv\.", r"blocks.\1.project.conv."),
    (r"^_blocks\.(\d+)\._bn2\.", r"blocks.\1.project.norm."),
)
"""Names in the published weights, and ours."""


class ConvNorm(nn.Module):
    """Convolution, batch normalisation and, if `active`, ReLU6.

    Padding is TensorFlow's: what stride 2 lacks is added at the right and the bottom only.
    """

    def __init__(
        self, inputs: int, outputs: int, *, kernel: int = 1, stride: int = 1, groups: int = 1, active: bool = True
    ) -> None:
        super().__init__()
        even = kernel // 2 if stride == 1 else 0
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=even, groups=groups, bias=False)
        self.norm: nn.Module = nn.BatchNorm2d(outputs, eps=EPSILON, momentum=MOMENTUM)
        self.kernel, self.stride, self.active = kernel, stride, active

    def forward(self, inputs: Tensor) -> Tensor:
        """Activations of this layer."""
        if self.stride > 1:
            inputs = F.pad(inputs, [*self._padding(inputs.shape[3]), *self._padding(inputs.shape[2])])
        found: Tensor = self.norm(self.conv(inputs))
        return F.relu6(found) if self.active else found

    def _padding(self, side: int) -> tuple[int, int]:
        total = max((-(-side // self.stride) - 1) * self.stride + self.kernel - side, 0)
        return total // 2, total - total // 2


class Block(nn.Module):
    """Inverted bottleneck: expand, convolve each channel, project; added to its input where the shapes agree."""

    def __init__(self, inputs: int, outputs: int, *, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = inputs * expansion
        self.expand = ConvNorm(inputs, inner) if expansion > 1 else nn.Identity()
        self.depthwise = ConvNorm(inner, inner, kernel=kernel, stride=stride, groups=inner)
        self.project = ConvNorm(inner, outputs, active=False)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, inputs: Tensor) -> Tensor:
        """Activations of this block."""
        found: Tensor = self.project(self.depthwise(self.expand(inputs)))
        return found + inputs if self.residual else found


class EfficientNetLite0(nn.Module):
    """Normalised RGB images to 1,280 features, 3.4 million weights.

    >>> import torch
    >>> EfficientNetLite0().eval()(torch.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 1280])
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvNorm(3, STEM, kernel=3, stride=2)
        blocks, width = [], STEM
        for count, kernel, stride, expansion, channels in STAGES:
            for number in range(count):
                step = stride if number == 0 else 1
                blocks.append(Block(width, channels, kernel=kernel, stride=step, expansion=expansion))
                width = channels
        self.blocks = nn.Sequential(*blocks)
        self.last = ConvNorm(width, WIDTH)

    def forward(self, images: Tensor) -> Tensor:
        """Features, [n, 1280]."""
        found: Tensor = self.last(self.blocks(self.stem(images)))
        return found.mean(dim=(2, 3))


def renamed(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Published weights under the names of `EfficientNetLite0`; those of the classifier are left out."""
    found = {}
    for name, value in weights.items():
        own = next((re.sub(old, new, name) for old, new in RENAMED if re.match(old, name)), None)
        if own is not None:
            found[own] = value
    return found


def folded(network: EfficientNetLite0) -> EfficientNetLite0:
    """The network for inference only, its normalisations folded into the convolutions: a third faster on a CPU."""
    for layer in network.eval().modules():
        if isinstance(layer, ConvNorm) and isinstance(layer.norm, nn.BatchNorm2d):
            layer.conv, layer.norm = fuse_conv_bn_eval(layer.conv, layer.norm), nn.Identity()
    return network
