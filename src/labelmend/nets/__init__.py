"""Networks by name."""

import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from ..errors import InputError, lookup
from .backbones import BACKBONE, FineTuned, parameter_groups, pretrained_weights
from .fast import FastNet
from .preact_resnet import NormAt, PreActResNet
from .resnet import ResNet
from .small import MLP, ConvNet, Linear
from .trees import TREES, Forest, build_trees

TIMM = "timm:"
LARGEST_HEADER = 4 << 20
USUAL_TREES = "trees-60x8"


@dataclass(frozen=True)
class Net:
    """A named architecture: what it takes, from which image size, and how it is built."""

    summary: str
    smallest: int
    build: Callable[[Sequence[int], int, NormAt], nn.Module]


def _resnet(blocks: Sequence[int], widths: Sequence[int]) -> Callable[[Sequence[int], int, NormAt], nn.Module]:
    def build(shape: Sequence[int], classes: int, norm_at: NormAt) -> nn.Module:
        return PreActResNet(shape[0], classes, blocks=blocks, widths=widths, norm_at=norm_at)

    return build


FAST_WIDTHS = (16, 24, 32, 48, 64, 96, 128)
FAST_NETS = tuple(f"fast-{width}" for width in FAST_WIDTHS)
"""The fast network in several widths, the narrowest first."""


def _fast(width: int) -> Callable[[Sequence[int], int, NormAt], nn.Module]:
    return lambda shape, classes, _: FastNet(shape, classes, width=width)


NETS = {
    **{
        name: Net(f"good after few epochs, {width} to {3 * width} channels", 16, _fast(width))
        for name, width in zip(FAST_NETS, FAST_WIDTHS, strict=True)
    },
    "preact-resnet18": Net("the paper's network, 11 million weights", 16, _resnet([2] * 4, [64, 128, 256, 512])),
    "resnet50": Net(
        "the usual ImageNet network", 32, lambda shape, classes, _: ResNet(shape[0], classes, [3, 4, 6, 3])
    ),
    "slim-resnet": Net("the same in slim, for CPUs", 8, _resnet([1] * 3, [16, 32, 64])),
    "convnet": Net("three convolutions, for small images", 4, lambda shape, classes, _: ConvNet(shape[0], classes)),
    "linear": Net("a linear classifier, for wide rows", 0, lambda shape, classes, _: Linear(math.prod(shape), classes)),
    TREES: Net(
        "gradient-boosted trees, for tables", 0, lambda shape, classes, _: build_trees(USUAL_TREES, shape, classes)
    ),
    "mlp": Net("two hidden layers, for tables", 0, lambda shape, classes, _: MLP(math.prod(shape), classes)),
}


def build_net(
    name: str, shape: Sequence[int], classes: int, *, rng: torch.Generator, norm_at: NormAt = "head"
) -> nn.Module:
    """A network for inputs of this shape, with PyTorch's default initialisation drawn from the generator.

    PyTorch initialises from its global generator only, so that one is lent the state and given back untouched.
    """
    if name.startswith(TIMM):
        return _timm(name, rng, in_chans=shape[0], num_classes=classes)
    if name.startswith(BACKBONE):
        return _fine_tuned(name, shape, classes, rng)
    if name != TREES and is_trees(name):
        return build_trees(name, shape, classes)
    net = lookup("net", name, NETS)
    if net.smallest and len(shape) != 3:
        raise InputError(f"net {name} takes images, but the samples are feature rows of shape {tuple(shape)}; use mlp")
    if net.smallest and min(shape[1:]) < net.smallest:
        raise InputError(
            f"net {name} takes images from {net.smallest} px, but these are {shape[1]}x{shape[2]}; use convnet"
        )
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(rng.get_state())
        return net.build(shape, classes, norm_at)


def is_trees(name: str | None) -> bool:
    """Whether a network of this name is a forest, which does not learn by gradients."""
    return name is not None and (name == TREES or name.startswith(f"{TREES}-"))


def start_from(network: nn.Module, source: str) -> list[str]:
    """Load weights by name where name and shape agree; gives the names that stay as initialised, such as the head.

    The source is a safetensors file, `timm:NAME` for the pretrained weights that timm has under this name, or
    `backbone:NAME` for those of a backbone.
    """
    if source.startswith(TIMM):
        weights = _timm(source, torch.Generator(), pretrained=True).state_dict()
    elif source.startswith(BACKBONE):
        weights = pretrained_weights(source.removeprefix(BACKBONE))
    else:
        try:
            weights = read_weights(source)
        except (OSError, SafetensorError) as error:
            raise InputError(f"--init {source} cannot be read as safetensors: {error}") from None
    own = network.state_dict()
    fitting = {name: value for name, value in weights.items() if name in own and own[name].shape == value.shape}
    if not fitting:
        raise InputError(
            f"--init {source} has no weights that fit the network; its first is {next(iter(weights), 'none')}"
        )
    network.load_state_dict(fitting, strict=False)
    return [name for name in own if name not in fitting]


def read_weights(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Tensors of a safetensors file; OSError or SafetensorError if it is none.

    The library accepts headers of 100 MB, whose tensor names alone could fill the memory.
    """
    if not os.path.isfile(path):
        raise OSError("there is no such file")
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
    if size > LARGEST_HEADER:
        raise SafetensorError(f"a header of {size:,} bytes; at most {LARGEST_HEADER:,} are taken")
    weights: dict[str, Tensor] = load_file(path)
    return weights


def _fine_tuned(name: str, shape: Sequence[int], classes: int, rng: torch.Generator) -> nn.Module:
    if len(shape) != 3:
        raise InputError(f"net {name} takes images, but the samples are feature rows of shape {tuple(shape)}; use mlp")
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(rng.get_state())
        return FineTuned(name.removeprefix(BACKBONE), classes)


def _timm(name: str, rng: torch.Generator, **options: object) -> nn.Module:
    if not re.fullmatch(r"[\w.-]+", name.removeprefix(TIMM)):
        raise InputError(f"{name!r:.100} is no name of a timm model; hubs and folders are not read")
    try:
        import timm
    except (ImportError, RuntimeError) as error:  # a torchvision that does not fit torch raises RuntimeError
        raise InputError(f"{name} needs timm, which cannot be imported here ({error}); pip install timm") from None
    try:
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(rng.get_state())
            network: nn.Module = timm.create_model(name.removeprefix(TIMM), **options)
            return network
    except Exception as error:  # timm raises errors of many libraries for unknown names and failed downloads
        raise InputError(f"timm cannot build {name.removeprefix(TIMM)!r}: {str(error).splitlines()[0]}") from None


__all__ = [
    "BACKBONE",
    "FAST_NETS",
    "MLP",
    "NETS",
    "TREES",
    "ConvNet",
    "FastNet",
    "Forest",
    "Linear",
    "Net",
    "PreActResNet",
    "build_net",
    "is_trees",
    "parameter_groups",
    "read_weights",
    "start_from",
]
