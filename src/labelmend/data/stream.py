"""Sets too large for memory: images read, decoded and augmented by worker processes while the network trains."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader

from ..core import Batch, Draws, generator, to_device
from ..errors import StorageError
from .feed import ALL, LabelledFeed, Normaliser, Share
from .kinds.decode import UnusableImageError, decode_crop, read_bytes
from .listing import Listing

MEASURED = 4096
LEAST_AREA = 0.2
WIDEST_RATIO = 4 / 3
Draw = tuple[int, int | None]


@dataclass(frozen=True)
class StreamedImages:
    """Images on disk that are decoded when they are asked for, all to one shape."""

    listing: Listing
    shape: tuple[int, int, int]

    def __len__(self) -> int:
        return len(self.listing)

    def __getitem__(self, draw: Draw) -> Tensor:
        """One image, uint8 [channels, height, width]; with a seed, a random resized crop of it, maybe flipped."""
        image = self.read(draw)
        if isinstance(image, str):
            raise StorageError(image)
        return image

    def read(self, draw: Draw) -> Tensor | str:
        """An image, or the reason why it can no longer be read: errors do not travel well between processes."""
        try:
            return self._decoded(*draw)
        except UnusableImageError as error:
            return f"{self.listing.places[draw[0]]} was usable before the run and is not now: {error}"

    def _decoded(self, index: int, seed: int | None) -> Tensor:
        content = read_bytes(self.listing.images[index], self.listing.root)
        mode, side = "RGB" if self.shape[0] == 3 else "L", self.shape[1:]
        if seed is None:
            return _as_tensor(decode_crop(content, mode=mode, side=side, box=None))
        draws = torch.rand(5, generator=generator(seed, index)).tolist()
        pixels = decode_crop(content, mode=mode, side=side, box=lambda w, h: random_box(w, h, draws))
        return _as_tensor(pixels[:, ::-1] if draws[4] < 0.5 else pixels)

    def take(self, kept: Sequence[int]) -> "StreamedImages":
        """Only these images, in this order."""
        old = self.listing
        images = [old.images[i] for i in kept]
        labels = [old.labels[i] for i in kept]
        ids, places = ([values[i] for i in kept] for values in (old.ids, old.places))
        return StreamedImages(Listing(old.name, images, labels, ids, places, old.class_names, old.root), self.shape)

    def normaliser(self) -> Normaliser:
        """Statistics of a fixed sample of at most 4,096 images."""
        chosen = torch.randperm(len(self), generator=generator(0, "statistics"))[:MEASURED].tolist()
        return Normaliser.of(torch.stack([self[i, None] for i in chosen]))


def random_box(width: int, height: int, draws: Sequence[float]) -> tuple[float, float, float, float]:
    """A random part of an image: a fifth to all of its area, between 3:4 and 4:3 of its own proportions."""
    area = LEAST_AREA + (1 - LEAST_AREA) * draws[0]
    ratio = WIDEST_RATIO ** (2 * draws[1] - 1)
    wide = min(width, width * (area * ratio) ** 0.5)
    high = min(height, height * (area / ratio) ** 0.5)
    left, top = (width - wide) * draws[2], (height - high) * draws[3]
    return left, top, left + wide, top + high


class StreamFeed(LabelledFeed):
    """The same batches as a feed from memory, decoded by workers; every draw comes from the epoch's generator."""

    def __init__(
        self,
        images: StreamedImages,
        labels: Tensor,
        *,
        normalise: Normaliser,
        batch_size: int,
        augment: bool = False,
        workers: int = 0,
        device: torch.device | str = "cpu",
        share: Share = ALL,
    ) -> None:
        super().__init__(labels, normalise=normalise, batch_size=batch_size, device=device, share=share)
        self.images = images
        self.augment = augment
        self.workers = workers

    def shuffled(self, draws: Draws, *, views: int = 1, start: int = 0) -> Iterator[Batch]:
        """One epoch in random order from the step `start` on; each view is augmented by a seed of its own."""
        rng = draws.order()
        order = torch.randperm(len(self), generator=rng).tolist()
        seeds = torch.randint(2**62, (views,), generator=rng).tolist() if self.augment else [None] * views
        wanted = [
            [(i, seed) for seed in seeds for i in order[begin:end][self.share.part]]
            for begin, end in self.batches()[start:]
        ]
        for batch in self._load(wanted, rng):
            index = to_device(torch.tensor([i for i, _ in batch.draws[: len(batch.draws) // views]]), self.device)
            first, *more = batch.pixels.chunk(views)
            second = self._normalised(more[0]) if more else None
            yield Batch(self._normalised(first), self.labels[index], index, second)

    def sweep(self, rng: torch.Generator | None = None) -> Iterator[Batch]:
        """Every sample once, in order; augmented if a generator is given."""
        seed = None if rng is None else int(torch.randint(2**62, (1,), generator=rng))
        draws: list[list[Draw]] = [[(i, seed) for i in range(begin, end)] for begin, end in self.sweeps()]
        for batch in self._load(draws, generator(0, "sweep")):
            index = to_device(torch.tensor([i for i, _ in batch.draws]), self.device)
            yield Batch(self._normalised(batch.pixels), self.labels[index], index)

    def _normalised(self, pixels: Tensor) -> Tensor:
        return self.normalise(pixels.to(self.device, non_blocking=True))

    def _load(self, draws: list[list[Draw]], rng: torch.Generator) -> Iterator["Loaded"]:
        loader: DataLoader[Any] = DataLoader(
            Readable(self.images),  # type: ignore[arg-type]
            batch_sampler=draws,
            collate_fn=stacked,
            num_workers=self.workers,
            pin_memory=self.device.type == "cuda",
            generator=torch.Generator().manual_seed(rng.initial_seed() >> 1),
        )
        for which, pixels in zip(draws, loader, strict=True):
            if isinstance(pixels, str):
                raise StorageError(pixels)
            yield Loaded(which, pixels)


@dataclass(frozen=True)
class Readable:
    """Images as workers give them, or reasons why there is none."""

    images: StreamedImages

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, draw: Draw) -> Tensor | str:
        return self.images.read(draw)


def stacked(images: list[Tensor | str]) -> Tensor | str:
    """A batch, or what is wrong with its first image that cannot be read."""
    tensors = [image for image in images if isinstance(image, Tensor)]
    return torch.stack(tensors) if len(tensors) == len(images) else next(i for i in images if isinstance(i, str))


@dataclass(frozen=True)
class Loaded:
    """Decoded images, and which they are."""

    draws: list[Draw]
    pixels: Tensor


def _as_tensor(pixels: NDArray[np.uint8]) -> Tensor:
    channels_first = np.moveaxis(pixels[..., None] if pixels.ndim == 2 else pixels, -1, 0)
    return torch.from_numpy(np.ascontiguousarray(channels_first))
