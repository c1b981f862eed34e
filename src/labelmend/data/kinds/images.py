"""Images: in memory as one tensor, or in files that are decoded when they are asked for."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core import generator
from ...errors import InputError, StorageError
from ...nets import FAST_NETS
from ..preflight import Problem
from . import decode
from .augment import Augment
from .decode import Header, ImageRef, UnusableImageError
from .normaliser import Normaliser
from .text import Texts

MEASURED = 4096
"""Images that the statistics of a streamed set are taken from."""
LARGEST_SIDE = 64
"""Shorter side that larger images are brought to, unless a size is asked for: what a CPU can train on."""
SMALLEST_CROPPED = 16
Shape = tuple[int, int, int]
Advance = Callable[[int], None]


@dataclass(frozen=True)
class ImageFiles:
    """Images as files or encoded bytes, decoded when they are asked for; all to one `shape` once it is known."""

    refs: Sequence[ImageRef]
    locations: Sequence[str]
    root: Path | None = None
    shape: Shape | None = None

    def __len__(self) -> int:
        return len(self.refs)

    def __getitem__(self, row: int) -> Tensor:
        """One image, uint8 [channels, height, width]."""
        image = self.read(row)
        if isinstance(image, str):
            raise StorageError(image)
        return image

    def read(self, row: int) -> Tensor | str:
        """An image, or the reason why it can no longer be read: errors do not travel well between processes."""
        try:
            return self._decoded(row)
        except UnusableImageError as error:
            return f"{self.locations[row]} was usable before the run and is not now: {error}"

    def take(self, rows: Sequence[int]) -> "ImageFiles":
        """Only these images, in this order."""
        return replace(self, refs=[self.refs[row] for row in rows], locations=[self.locations[row] for row in rows])

    def headers(self, advance: Advance = lambda done: None) -> tuple[dict[int, Header], list[Problem]]:
        """Size and colour of every image as its file states them, and those that are no images."""
        return self._each(decode.read_header, advance)

    def damaged(self, advance: Advance = lambda done: None) -> list[Problem]:
        """Images that cannot be decoded, found by decoding all of them and keeping none."""
        return self._each(decode.check, advance)[1]

    def decoded(self, rows: Sequence[int], advance: Advance = lambda done: None) -> tuple[Tensor, list[Problem]]:
        """These images as uint8 [n, channels, height, width], zero where one is damaged, and which are."""
        if self.shape is None:
            raise ValueError("the shape of the images is not decided yet")
        channels, height, width = self.shape
        images = np.zeros((len(rows), height, width, channels), dtype=np.uint8)

        def place(position: int) -> str:
            try:
                images[position] = self._pixels(rows[position]).reshape(images.shape[1:])
            except UnusableImageError as error:
                return str(error)
            return ""

        problems = []
        for row, what in zip(rows, decode.in_threads(place, len(rows)), strict=True):
            if what:
                problems.append(Problem(self.locations[row], what))
            advance(1)
        return torch.from_numpy(images).permute(0, 3, 1, 2).contiguous(), problems

    def thumbnail(self, row: int) -> bytes:
        """The original as a small picture in its own proportions, or nothing if it cannot be read any more."""
        try:
            return decode.thumbnail(decode.read_bytes(self.refs[row], self.root))
        except UnusableImageError:
            return b""

    def _decoded(self, row: int) -> Tensor:
        pixels = self._pixels(row)
        channels_first = np.moveaxis(pixels[..., None] if pixels.ndim == 2 else pixels, -1, 0)
        return torch.from_numpy(np.ascontiguousarray(channels_first))

    def _pixels(self, row: int) -> Any:
        if self.shape is None:
            raise ValueError("the shape of the images is not decided yet")
        channels, height, width = self.shape
        content = decode.read_bytes(self.refs[row], self.root)
        return decode.pixels(content, mode="RGB" if channels == 3 else "L", side=(height, width))

    def _each(self, look: Callable[[bytes], Header], advance: Advance) -> tuple[dict[int, Header], list[Problem]]:
        def attempt(row: int) -> Header | str:
            try:
                return look(decode.read_bytes(self.refs[row], self.root))
            except UnusableImageError as error:
                return str(error)

        found, problems = {}, []
        for row, result in enumerate(decode.in_threads(attempt, len(self))):
            if isinstance(result, str):
                problems.append(Problem(self.locations[row], result))
            else:
                found[row] = result
            advance(1)
        return found, problems


def common_shape(headers: Iterable[Header], size: int | None) -> Shape:
    """Channels, height and width for all images of a set: as asked, or the median height and width.

    The median is scaled down, in its proportions, to a shorter side of at most 64 px. One image of another size changes
    nothing.
    """
    known = list(headers)
    channels = 1 if all(header.grey for header in known) else 3
    if size is not None:
        return channels, size, size
    height, width = (statistics.median_low(sides) for sides in ([h.height for h in known], [h.width for h in known]))
    scale = min(1.0, LARGEST_SIDE / min(height, width))
    return channels, max(1, round(height * scale)), max(1, round(width * scale))


@dataclass(frozen=True)
class Pretraining:
    """A network that was trained before, and the mean and standard deviation of channels that it expects."""

    net: str
    mean: tuple[float, ...]
    std: tuple[float, ...]


@dataclass(frozen=True)
class Images:
    """Pictures, uint8 [N, channels, height, width] or files; `flips` tells whether a mirrored one means the same.

    `pretraining` is what they are trained from, if it is not a new network.
    """

    flips: bool = True
    columns: Sequence[str] = ()
    name: str = "images"
    pretraining: Pretraining | None = None

    def problems(self, inputs: Tensor | ImageFiles | Texts, locations: Sequence[str]) -> list[Problem]:
        """None that could be told without decoding."""
        return []

    def normaliser(self, inputs: Tensor | ImageFiles | Texts) -> Normaliser:
        """Mean and standard deviation of each channel; of a streamed set, those of a fixed sample of 4,096 images."""
        assert not isinstance(inputs, Texts)
        if self.pretraining is not None:
            channels = (inputs.shape or (3,))[0] if isinstance(inputs, ImageFiles) else inputs.shape[1]
            mean, std = (torch.tensor(values) for values in (self.pretraining.mean, self.pretraining.std))
            return Normaliser(
                *(values if channels == 3 else values.mean(dim=0, keepdim=True) for values in (mean, std))
            )
        if isinstance(inputs, ImageFiles):
            chosen = torch.randperm(len(inputs), generator=generator(0, "statistics"))[:MEASURED].tolist()
            inputs = torch.stack([inputs[row] for row in chosen])
        counts = [torch.bincount(channel.flatten(), minlength=256).double() for channel in inputs.unbind(1)]
        level = torch.arange(256, dtype=torch.float64)
        mean = torch.stack([(c @ level) / c.sum() for c in counts])
        square = torch.stack([(c @ level.square()) / c.sum() for c in counts])
        return Normaliser.from_moments(mean, (square - mean.square()).clamp_min(0).sqrt())

    def default_nets(self, shape: Sequence[int], *, on_gpu: bool) -> tuple[Sequence[str], str]:
        """A network that the machine can train, or a smaller one for very small images."""
        side = min(shape[1:])
        if self.pretraining is not None:
            return (self.pretraining.net,), "a pretrained network with a new head, trained end to end"
        if side < SMALLEST_CROPPED:
            return ("convnet",), f"images of {side} px are too small for a deeper network"
        if on_gpu:
            return ("preact-resnet18",), "the paper's network, and there is a GPU"
        return FAST_NETS, "good after few epochs, so that a CPU can train it"

    def augmentation(self, shape: Sequence[int], asked: str, *, gentle: bool) -> tuple[Augment | None, str]:
        """Random crops after padding by an eighth of the side, mirrored where that means the same.

        Gentle ones, for short runs, are padded by a sixteenth, with what lies inside the border.
        """
        side = min(shape[1:])
        pad = max(1, round(side / (16 if gentle else 8)))
        if asked == "none":
            return None, "none, as asked"
        if asked != "auto":
            return Augment(pad, flip=asked == "crop-flip", mirror=gentle), f"{asked}, as asked"
        if side < SMALLEST_CROPPED:
            return None, f"none: moving images of {side} px loses parts of them"
        name = "crop and flip" if self.flips else "crop without flip"
        part = "a sixteenth of the side, for a short run" if gentle else "an eighth of the side"
        return Augment(pad, flip=self.flips, mirror=gentle), f"{name}, {pad} px of padding ({part})"

    def shown(self, inputs: Tensor, originals: ImageFiles | Texts | None, rows: Sequence[int]) -> dict[str, list[Any]]:
        """A small picture of each: of the original file where there is one, else of the pixels themselves."""
        if isinstance(originals, ImageFiles):
            return {"picture": [originals.thumbnail(row) for row in rows]}
        return {"picture": [decode.thumbnail_of_pixels(image.numpy()) for image in inputs]}


def as_images(name: str, x: np.ndarray[Any, Any]) -> Tensor | None:
    """An array as images, uint8 with channels first, if it is one: [N, H, W], channels first or channels last.

    Floats are taken in 0..1, as transforms to tensors give them, and brought back to bytes.
    """
    if x.ndim not in (3, 4) or not (x.dtype == np.uint8 or x.dtype.kind == "f"):
        return None
    images = x[..., None] if x.ndim == 3 else x
    if images.shape[-1] in (1, 3):
        images = np.moveaxis(images, -1, 1)
    if images.shape[1] not in (1, 3):
        return None
    if images.dtype.kind == "f":
        if not np.isfinite(images).all() or images.min(initial=0) < 0 or images.max(initial=0) > 1:
            raise InputError(f"{name} has images of floats outside 0..1; give them before normalisation")
        images = (images * 255).round().astype(np.uint8)
    return torch.from_numpy(np.ascontiguousarray(images))


def brought_to(images: Tensor, shape: Sequence[int]) -> Tensor:
    """Images in memory at another size and number of channels, as if they were decoded from files."""
    if tuple(images.shape[1:]) == tuple(shape):
        return images
    channels, height, width = shape
    found = np.zeros((len(images), height, width, channels), dtype=np.uint8)
    for row, image in enumerate(images.numpy()):
        pixels = decode.pixels_of_pixels(image, mode="RGB" if channels == 3 else "L", side=(height, width))
        found[row] = pixels.reshape(found.shape[1:])
    return torch.from_numpy(found).permute(0, 3, 1, 2).contiguous()


def most_bytes(files: ImageFiles) -> int:
    """What the decoded set takes in memory."""
    return len(files) * math.prod(files.shape or ())
