"""Batches of samples on the device that trains, from memory or decoded by worker processes while it trains."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from ..core import Batch, Draws, generator, to_device
from ..errors import StorageError
from .kinds import Augment, Normaliser
from .kinds.images import ImageFiles

SWEPT = 4_096
"""Rows of a table that are predicted at once by a network that learns everything at once."""


def sweep_size(device: torch.device | str) -> int:
    """Samples in a batch without gradients: few on a CPU, so that what the layers hand on stays in the cache."""
    return 64 if torch.device(device).type == "cpu" else 512


@dataclass(frozen=True)
class ProcessShare:
    """The part of one of several processes: of every batch that is learned, and of all samples in a sweep."""

    rank: int = 0
    count: int = 1

    @property
    def part(self) -> slice:
        """Every count-th element, starting at rank."""
        return slice(self.rank, None, self.count)


WHOLE = ProcessShare()


class SampleFeed:
    """Training or test batches of samples; the same whether they lie in memory or are decoded on the way."""

    def __init__(
        self,
        inputs: Tensor | ImageFiles,
        labels: Tensor,
        *,
        normalise: Normaliser,
        batch_size: int,
        augment: Augment | None = None,
        device: torch.device | str = "cpu",
        share: ProcessShare = WHOLE,
        workers: int = 0,
    ) -> None:
        self.device = torch.device(device)
        self.inputs = inputs.to(device) if isinstance(inputs, Tensor) else inputs
        self.labels = labels.to(device)
        self.normalise = normalise.to(device)
        self.batch_size = batch_size
        self.augment = augment
        self.share = share
        self.workers = workers
        self.sweep_rows = sweep_size(device)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def steps(self) -> int:
        """Batches in an epoch."""
        return len(self._batches())

    def shuffled(self, draws: Draws, *, views: int = 1, start: int = 0) -> Iterator[Batch]:
        """One epoch in random order from the step `start` on, each view augmented by its own draw."""
        order = torch.randperm(len(self), generator=draws.order())
        if isinstance(self.inputs, Tensor):
            order = to_device(order, self.device)
        parts = [order[begin:end][self.share.part] for begin, end in self._batches()[start:]]
        for step, (index, inputs) in enumerate(self._loaded(parts), start):
            rng = draws.batch(step)
            first, *more = (self._view(inputs, rng) for _ in range(views))
            yield Batch(first, self.labels[index], index, more[0] if more else None)

    def sweep(self, rng: torch.Generator | None = None, *, rows: Tensor | None = None) -> Iterator[Batch]:
        """Every sample once, or every one of these rows, in order; augmented if a generator is given."""
        home = self.device if isinstance(self.inputs, Tensor) else torch.device("cpu")
        rows = torch.arange(len(self), device=home) if rows is None else rows.to(home)
        for index, inputs in self._loaded(torch.split(rows, self.sweep_rows)[self.share.part]):
            view = self.normalise(inputs) if rng is None else self._view(inputs, rng)
            yield Batch(view, self.labels[index], index)

    def pick(self, index: Tensor, rng: torch.Generator) -> Batch:
        """These samples, augmented."""
        ((_, inputs),) = self._loaded([index])
        return Batch(self._view(inputs, rng), self.labels[index], index)

    def _batches(self) -> list[tuple[int, int]]:
        """Where each batch of an epoch, for all processes together, starts and stops in its order."""
        return batch_bounds(len(self), self.batch_size, least=2 * self.share.count)

    def _loaded(self, parts: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """Indices and inputs of some batches, both on the device."""
        if isinstance(self.inputs, Tensor):
            for index in parts:
                yield index, self.inputs[index]
            return
        loader: DataLoader[Any] = DataLoader(
            Readable(self.inputs),  # type: ignore[arg-type]
            batch_sampler=[part.tolist() for part in parts],
            collate_fn=stacked,
            num_workers=self.workers,
            pin_memory=self.device.type == "cuda",
            generator=generator(0, "workers"),
        )
        for part, pixels in zip(parts, loader, strict=True):
            if isinstance(pixels, str):
                raise StorageError(pixels)
            yield to_device(part, self.device), pixels.to(self.device, non_blocking=True)

    def _view(self, inputs: Tensor, rng: torch.Generator) -> Tensor:
        return self.normalise(inputs if self.augment is None else self.augment(inputs, rng))


class WholeFeed(SampleFeed):
    """All samples of a table as one batch, in their order, once for each network that learns them all at once."""

    def __init__(
        self,
        inputs: Tensor,
        labels: Tensor,
        *,
        normalise: Normaliser,
        times: int,
        device: torch.device | str = "cpu",
        share: ProcessShare = WHOLE,
    ) -> None:
        super().__init__(inputs, labels, normalise=normalise, batch_size=len(inputs), device=device, share=share)
        self.times = times
        self.sweep_rows = SWEPT

    @property
    def steps(self) -> int:
        """Networks that learn."""
        return self.times

    def shuffled(self, draws: Draws, *, views: int = 1, start: int = 0) -> Iterator[Batch]:
        """The same batch for each network from `start` on; nothing is drawn."""
        assert isinstance(self.inputs, Tensor)
        batch = Batch(self.normalise(self.inputs), self.labels, torch.arange(len(self), device=self.device))
        return (batch for _ in range(start, self.times))


@dataclass(frozen=True)
class Readable:
    """Images as workers give them, or reasons why there is none."""

    files: ImageFiles

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, row: int) -> Tensor | str:
        return self.files.read(row)


def stacked(images: list[Tensor | str]) -> Tensor | str:
    """A batch, or what is wrong with its first image that cannot be read."""
    tensors = [image for image in images if isinstance(image, Tensor)]
    return torch.stack(tensors) if len(tensors) == len(images) else next(i for i in images if isinstance(i, str))


class TrustedSamples:
    """The trusted samples of a data set, in memory and whole in every process."""

    def __init__(self, index: Tensor, samples: SampleFeed) -> None:
        self.index = index.to(samples.device)
        self.samples = samples

    def __len__(self) -> int:
        return len(self.index)

    def draw(self, size: int, rng: torch.Generator) -> Batch:
        """So many of them at random, or all if there are fewer, augmented as in training."""
        chosen = to_device(torch.randperm(len(self), generator=rng)[:size], self.samples.device)
        return self._with_own_index(self.samples.pick(chosen, rng))

    def sweep(self) -> Iterator[Batch]:
        """Each of them once, as it is."""
        return map(self._with_own_index, self.samples.sweep())

    def _with_own_index(self, batch: Batch) -> Batch:
        return replace(batch, index=self.index[batch.index])


def batch_bounds(samples: int, size: int, *, least: int = 2) -> list[tuple[int, int]]:
    """Where each batch of an epoch starts and stops; a last batch of fewer than `least` joins the one before it.

    BatchNorm cannot train on one sample.
    """
    starts = list(range(0, samples, size))
    if len(starts) > 1 and samples - starts[-1] < least:
        starts.pop()
    return list(zip(starts, [*starts[1:], samples], strict=True))
