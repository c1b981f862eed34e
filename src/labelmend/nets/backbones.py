"""Pretrained networks without their classifier, by name: frozen, pictures in and features out; or to be fine-tuned.

`efficientnet-lite0` needs no download: its weights come with the extra `labelmend[photos]`. `timm:NAME` and
`transformers:NAME` are what these libraries have under the name, where they are installed.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from .efficientnet_lite import EfficientNetLite0, folded
from .pretrained import Pretrained, load_pretrained

BACKBONE = "backbone:"
"""Before the name of a backbone, this makes the name of a network that is fine-tuned from it."""
BODY_RATE = 0.1
"""Learning rate of a fine-tuned body, as a multiple of that of the new head."""
CPU_BATCH, GPU_BATCH = 16, 256
"""Few pictures at a time on a CPU, so that what the layers hand on stays in the cache: twice as fast as 64."""


@dataclass(frozen=True, eq=False)
class Backbone:
    """A frozen pretrained body: uint8 pictures [n, 1 or 3, height, width] to features [n, width].

    `identity` tells the weights apart, not only the name. Pictures are brought to `size` pixels square and to the
    channels' `mean` and `std`, in 0..255, that the body was trained with.
    """

    name: str
    identity: str
    body: nn.Module
    size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @torch.inference_mode()
    def __call__(self, images: Tensor, *, mirrored: bool = False) -> Tensor:
        """Features, float32; with `mirrored`, the mean of those of each picture and of its mirror image."""
        views = self.prepared(images)
        found: Tensor = self.body(views)
        if mirrored:
            found = (found + self.body(views.flip(3))) / 2
        return found.float()

    def prepared(self, images: Tensor) -> Tensor:
        """What the body takes: three channels, its own size, normalised, channels last."""
        device = self.device
        values = resized(images.to(device, non_blocking=True).float(), self.size)
        centred = values.expand(-1, 3, -1, -1) - _channels(self.mean, device)
        return (centred / _channels(self.std, device)).contiguous(memory_format=torch.channels_last)

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return next(self.body.parameters()).device

    @property
    def batch(self) -> int:
        """Pictures to give at a time."""
        return CPU_BATCH if self.device.type == "cpu" else GPU_BATCH

    def to(self, device: torch.device | str) -> "Backbone":
        """The same, computing on this device."""
        self.body.to(device)
        return self


def resized(images: Tensor, size: int) -> Tensor:
    """Float images at this many pixels square."""
    if tuple(images.shape[2:]) == (size, size):
        return images
    return F.interpolate(images, (size, size), mode="bilinear", antialias=True, align_corners=False)


@lru_cache(maxsize=2)
def find_backbone(name: str) -> Backbone:
    """The backbone of this name with its pretrained weights, frozen; InputError if there is none."""
    found = load_pretrained(name)
    identity = _identity(name, found)
    body = folded(found.body) if isinstance(found.body, EfficientNetLite0) else found.body
    body = body.eval().requires_grad_(False).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    mean, std = (tuple(map(float, numbers)) for numbers in (found.mean, found.std))
    return Backbone(name, identity, body, found.size, mean, std)


def _identity(name: str, found: Pretrained) -> str:
    """The name with a digest of the weights as they were published, whatever a library calls them."""
    bare = [value.detach().reshape(-1).contiguous().view(torch.uint8) for value in found.body.state_dict().values()]
    digests = sorted(hashlib.sha256(value.numpy().data).digest() for value in bare)
    about = repr((found.size, [float(value) for value in (*found.mean, *found.std)])).encode()
    return f"{name}@{hashlib.sha256(about + b''.join(digests)).hexdigest()[:16]}"


@lru_cache(maxsize=8)
def _channels(values: tuple[float, ...], device: torch.device) -> Tensor:
    """Kept on the device, because each copy to it would wait for what it computes."""
    return torch.tensor(values, device=device).view(1, -1, 1, 1)


class FineTuned(nn.Module):
    """A pretrained body with a new linear head, trained end to end on normalised images of any size, grey or RGB.

    The body is without its weights until they are loaded.
    """

    def __init__(self, name: str, classes: int) -> None:
        super().__init__()
        found = load_pretrained(name, weights=False)
        self.size = found.size
        self.body = found.body
        with torch.no_grad():
            width = self.body.eval()(torch.zeros(1, 3, self.size, self.size)).shape[1]
        self.body.train()
        self.head = nn.Linear(width, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits, [n, classes]."""
        logits: Tensor = self.head(self.body(resized(inputs, self.size).expand(-1, 3, -1, -1)))
        return logits


def pretrained_weights(name: str) -> dict[str, Tensor]:
    """Weights of the body of a `FineTuned` network of this name."""
    return {f"body.{key}": value for key, value in load_pretrained(name).body.state_dict().items()}


def parameter_groups(network: nn.Module, rate: float) -> list[dict[str, Any]] | Iterator[nn.Parameter]:
    """What an optimiser takes: all weights alike, or the new head, and the pretrained body at a tenth of its rate."""
    if not isinstance(network, FineTuned):
        return network.parameters()
    return [
        {"params": list(network.head.parameters())},
        {"params": list(network.body.parameters()), "lr": BODY_RATE * rate},
    ]
