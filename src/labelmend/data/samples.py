"""A data set in memory: samples, labels, names and ids."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..errors import InputError
from .stream import StreamedImages

MOST_CLASSES = 10_000


@dataclass(frozen=True)
class NoisyLabels:
    """Labels as they were given; the truth, where known, is for evaluation only."""

    observed: Tensor
    truth: Tensor | None = None


@dataclass(frozen=True)
class Split:
    """Samples held back for evaluation."""

    inputs: Tensor | StreamedImages
    labels: Tensor


@dataclass(frozen=True)
class Dataset:
    """Training samples and, where there is one, a test split.

    Inputs are images, uint8 [N, channels, height, width] or streamed from disk, or features, float32 [N, columns];
    columns may have names. `trusted` are the places, in order, of samples whose labels are known to be right.
    """

    name: str
    inputs: Tensor | StreamedImages
    labels: NoisyLabels
    class_names: Sequence[str]
    ids: Sequence[str]
    test: Split | None = None
    flips: bool = True
    columns: Sequence[str] = ()
    trusted: Tensor | None = None

    def __post_init__(self) -> None:
        if len(self.class_names) < 2:
            only = f"a single class ({self.class_names[0]})" if self.class_names else "no samples"
            raise InputError(f"{self.name} has {only}; at least two classes are needed")
        if len(self.class_names) > MOST_CLASSES:
            raise InputError(
                f"{self.name} has {len(self.class_names):,} classes, and at most {MOST_CLASSES:,} are taken; are the "
                "labels measurements or ids?"
            )

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return self.inputs.shape if isinstance(self.inputs, StreamedImages) else tuple(self.inputs.shape[1:])

    @property
    def is_images(self) -> bool:
        """Whether samples are images rather than feature rows."""
        return len(self.shape) == 3

    def samples(self, rows: Sequence[int]) -> Tensor:
        """Some samples as they are stored, images decoded."""
        if isinstance(self.inputs, Tensor):
            return self.inputs[list(rows)]
        return torch.stack([self.inputs[row, None] for row in rows])

    def head(self, limit: int, rng: torch.Generator) -> "Dataset":
        """A random `limit` samples, in their order in the data set; the test split stays whole."""
        kept = torch.randperm(len(self), generator=rng)[:limit].sort().values
        truth = self.labels.truth
        labels = NoisyLabels(self.labels.observed[kept], None if truth is None else truth[kept])
        ids = [self.ids[i] for i in kept.tolist()]
        inputs = self.inputs[kept] if isinstance(self.inputs, Tensor) else self.inputs.take(kept.tolist())
        return replace(self, inputs=inputs, labels=labels, ids=ids)

    def fingerprint(self) -> str:
        """SHA-256 over inputs (ids, where they are streamed) and observed labels: which data a run was trained on."""
        digest = hashlib.sha256()
        tensors = [self.labels.observed] + ([] if self.trusted is None else [self.trusted])
        if isinstance(self.inputs, Tensor):
            tensors.insert(0, self.inputs)
        else:
            digest.update("\0".join(self.ids).encode(errors="surrogateescape"))
        for tensor in tensors:
            digest.update(repr((tuple(tensor.shape), tensor.dtype)).encode())
            digest.update(tensor.contiguous().numpy().data)
        return digest.hexdigest()
