"""Data that brings the position of each sample in the data set, whatever the samples are and whoever collates them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset

from ..errors import InputError

KEY = "labelmend_index"
"""Name of the positions among the inputs of a batch."""


class Placed(Dataset[Any]):
    """A data set whose samples bring their positions: as one more entry of a mapping, or else as a pair.

    Everything else that is asked of it, it asks of the data set.
    """

    def __init__(self, samples: Any) -> None:
        if isinstance(samples, IterableDataset) or not hasattr(samples, "__len__"):
            raise InputError(
                f"a {type(samples).__name__} has no positions: labels are judged one by one, so the data set must have "
                "a length and give samples by their position"
            )
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, position: int) -> Any:
        return placed(self.samples[position], position)

    def __getitems__(self, positions: Sequence[int]) -> list[Any]:
        """Many samples, read together where the data set can do so."""
        together = getattr(self.samples, "__getitems__", None)
        found = together(positions) if together else [self.samples[position] for position in positions]
        return [placed(sample, position) for sample, position in zip(found, positions, strict=True)]

    def __getattr__(self, name: str) -> Any:
        return _asked_of(self, "samples", name)


def placed(sample: Any, position: int) -> Any:
    """A sample with its position."""
    return {**sample, KEY: int(position)} if isinstance(sample, Mapping) else (sample, int(position))


class Positioned(NamedTuple):
    """A batch, and the positions of its samples, [n]."""

    batch: Any
    positions: Tensor


class Collated:
    """A collator that takes the positions out of the samples first, and calls the one that it is made of.

    It gives the positions beside the batch, as `pairs`, or as one more entry of a batch that is a mapping. Samples that
    have no positions, as those of another data set, are collated as ever.
    """

    def __init__(self, collate: Callable[[list[Any]], Any], *, pairs: bool) -> None:
        self.collate, self.pairs = collate, pairs

    def __call__(self, samples: list[Any]) -> Any:
        if samples and isinstance(samples[0], Mapping) and KEY in samples[0]:
            positions = [sample[KEY] for sample in samples]
            plain: list[Any] = [{name: v for name, v in sample.items() if name != KEY} for sample in samples]
        elif self.pairs:
            plain, positions = ([pair[part] for pair in samples] for part in (0, 1))
        else:
            return self.collate(samples)
        batch, index = self.collate(plain), torch.tensor(positions)
        if self.pairs:
            return Positioned(batch, index)
        batch[KEY] = index
        return batch

    def __getattr__(self, name: str) -> Any:
        return _asked_of(self, "collate", name)


def _asked_of(owner: Any, part: str, name: str) -> Any:
    """An attribute of what the owner is made of; copies are made without asking for anything."""
    if part not in vars(owner) or (name.startswith("__") and name.endswith("__")):
        raise AttributeError(name)
    return getattr(vars(owner)[part], name)


def indexed(loader: DataLoader[Any]) -> DataLoader[Any]:
    """The same loader, whose batches are pairs: what they were, and the positions of their samples, [n].

    Sampling, workers and collating stay as they were.

    >>> from torch.utils.data import TensorDataset
    >>> loader = DataLoader(TensorDataset(torch.arange(6) * 10), batch_size=4)
    >>> for (x,), index in indexed(loader):
    ...     print(x.tolist(), index.tolist())
    [0, 10, 20, 30] [0, 1, 2, 3]
    [40, 50] [4, 5]
    """
    if not isinstance(loader, DataLoader):
        raise InputError(f"indexed takes a torch DataLoader, not a {type(loader).__name__}")
    if loader.batch_size is None and loader.batch_sampler is None:
        raise InputError("a DataLoader with batch_size=None makes no batches; give it a batch size")
    if type(loader.batch_sampler) is BatchSampler:
        batches: dict[str, Any] = {
            "batch_size": loader.batch_size,
            "sampler": loader.sampler,
            "drop_last": loader.drop_last,
        }
    else:
        batches = {"batch_sampler": loader.batch_sampler}
    same = ("num_workers", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context", "generator")
    more: dict[str, Any] = {name: getattr(loader, name) for name in (*same, "prefetch_factor", "persistent_workers")}
    samples = Placed(loader.dataset)
    return DataLoader(samples, collate_fn=Collated(loader.collate_fn, pairs=True), **batches, **more)
