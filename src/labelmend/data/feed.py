"""Batches of a data set that lies in memory, on the device that trains."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..core import Batch, Draws, to_device
from .kinds.augment import Augment


@dataclass(frozen=True)
class Normaliser:
    """Inputs to zero mean and unit variance, per channel or per feature column."""

    mean: Tensor
    std: Tensor

    @classmethod
    def of(cls, inputs: Tensor) -> "Normaliser":
        """Statistics of the training inputs themselves; a constant channel is only centred."""
        if inputs.dim() == 4:
            counts = [torch.bincount(channel.flatten(), minlength=256).double() for channel in inputs.unbind(1)]
            level = torch.arange(256, dtype=torch.float64)
            mean = torch.stack([(c @ level) / c.sum() for c in counts])
            square = torch.stack([(c @ level.square()) / c.sum() for c in counts])
            std = (square - mean.square()).clamp_min(0).sqrt()
        else:
            mean, std = inputs.double().mean(dim=0), inputs.double().std(dim=0, correction=0)
        return cls(mean.float(), torch.where(std > 1e-6, std, torch.ones_like(std)).float())

    def __call__(self, inputs: Tensor) -> Tensor:
        """Normalised float32 inputs; images channels last."""
        shape = (1, -1, 1, 1) if inputs.dim() == 4 else (1, -1)
        scaled = (inputs.float() - self.mean.view(shape)) / self.std.view(shape)
        return scaled.contiguous(memory_format=torch.channels_last) if inputs.dim() == 4 else scaled

    def to(self, device: torch.device | str) -> "Normaliser":
        """The same statistics on a device."""
        return Normaliser(self.mean.to(device), self.std.to(device))


def sweep_size(device: torch.device | str) -> int:
    """Samples in a batch without gradients: few on a CPU, so that what the layers hand on stays in the cache."""
    return 64 if torch.device(device).type == "cpu" else 512


@dataclass(frozen=True)
class Share:
    """The part of one of several processes: of every batch that is learned, and of all samples in a sweep."""

    rank: int = 0
    count: int = 1

    @property
    def part(self) -> slice:
        """Every so-manieth element."""
        return slice(self.rank, None, self.count)


ALL = Share()


class LabelledFeed:
    """What every feed knows: the observed labels, how inputs are normalised, how many make a batch, and its share."""

    def __init__(
        self,
        labels: Tensor,
        *,
        normalise: Normaliser,
        batch_size: int,
        device: torch.device | str = "cpu",
        share: Share = ALL,
    ) -> None:
        self.share = share
        self.device = torch.device(device)
        self.labels = labels.to(device)
        self.normalise = normalise.to(device)
        self.batch_size = batch_size

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def steps(self) -> int:
        """Batches in an epoch."""
        return len(self.batches())

    def batches(self) -> list[tuple[int, int]]:
        """Where each batch of an epoch, for all processes together, starts and stops in its order."""
        return batch_bounds(len(self), self.batch_size, least=2 * self.share.count)

    def sweeps(self) -> list[tuple[int, int]]:
        """Where each batch of a sweep starts and stops, as far as it is this process's."""
        size = sweep_size(self.device)
        return [(start, min(start + size, len(self))) for start in range(0, len(self), size)][self.share.part]


class MemoryFeed(LabelledFeed):
    """Training or test batches from tensors."""

    def __init__(
        self,
        inputs: Tensor,
        labels: Tensor,
        *,
        normalise: Normaliser,
        batch_size: int,
        augment: Augment | None = None,
        device: torch.device | str = "cpu",
        share: Share = ALL,
    ) -> None:
        super().__init__(labels, normalise=normalise, batch_size=batch_size, device=device, share=share)
        self.inputs = inputs.to(device)
        self.augment = augment

    def shuffled(self, draws: Draws, *, views: int = 1, start: int = 0) -> Iterator[Batch]:
        """One epoch in random order from the step `start` on, each view augmented by its own draw."""
        order = to_device(torch.randperm(len(self), generator=draws.order()), self.device)
        for step, (begin, end) in list(enumerate(self.batches()))[start:]:
            index, rng = order[begin:end][self.share.part], draws.batch(step)
            inputs = self.inputs[index]
            first, *more = (self._view(inputs, rng) for _ in range(views))
            yield Batch(first, self.labels[index], index, more[0] if more else None)

    def pick(self, index: Tensor, rng: torch.Generator) -> Batch:
        """These samples, augmented."""
        return Batch(self._view(self.inputs[index], rng), self.labels[index], index)

    def sweep(self, rng: torch.Generator | None = None) -> Iterator[Batch]:
        """Every sample once, in order; augmented if a generator is given."""
        for begin, end in self.sweeps():
            index = torch.arange(begin, end, device=self.device)
            inputs = self.inputs[begin:end]
            view = self.normalise(inputs) if rng is None else self._view(inputs, rng)
            yield Batch(view, self.labels[index], index)

    def _view(self, inputs: Tensor, rng: torch.Generator) -> Tensor:
        return self.normalise(inputs if self.augment is None else self.augment(inputs, rng))


class TrustedSamples:
    """The trusted samples of a data set, in memory and whole in every process."""

    def __init__(self, index: Tensor, samples: MemoryFeed) -> None:
        self.index = index.to(samples.device)
        self.samples = samples

    def __len__(self) -> int:
        return len(self.index)

    def draw(self, size: int, rng: torch.Generator) -> Batch:
        """So many of them at random, or all if there are fewer, augmented as in training."""
        chosen = to_device(torch.randperm(len(self), generator=rng)[:size], self.samples.device)
        return self._placed(self.samples.pick(chosen, rng))

    def sweep(self) -> Iterator[Batch]:
        """Each of them once, as it is."""
        return map(self._placed, self.samples.sweep())

    def _placed(self, batch: Batch) -> Batch:
        return replace(batch, index=self.index[batch.index])


def batch_bounds(samples: int, size: int, *, least: int = 2) -> list[tuple[int, int]]:
    """Where each batch of an epoch starts and stops; a last batch of fewer than `least` joins the one before it.

    BatchNorm cannot train on one sample.
    """
    starts = list(range(0, samples, size))
    if len(starts) > 1 and samples - starts[-1] < least:
        starts.pop()
    return list(zip(starts, [*starts[1:], samples], strict=True))
