"""Samples as rows of features that a pretrained network computes once, kept between runs by their content."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from ..errors import InputError
from ..files import atomic
from .kinds.cache import cache_folder
from .kinds.decode import read_bytes
from .kinds.encoded import Encoded, Encoding
from .kinds.images import ImageFiles
from .samples import Samples

STRETCH = 512
"""Samples that are decoded at a time where they are not in memory."""
Progress = Callable[[int, int], None]
"""Called with how many samples are done, and of how many."""


class Encoder(Protocol):
    """What turns samples into features; `nets.backbones.Backbone` is one for pictures."""

    @property
    def name(self) -> str:
        """The word for it."""

    @property
    def identity(self) -> str:
        """The name together with the weights."""

    @property
    def batch(self) -> int:
        """Samples to give at a time."""

    def __call__(self, inputs: Tensor, /, *, mirrored: bool = False) -> Tensor:
        """Features, float32 [n, width]."""


def encode(samples: Samples, encoder: Encoder, *, progress: Progress = lambda done, of: None) -> Samples:
    """The same samples, and those of the test set, as rows of features.

    Pictures whose mirror image means the same get the mean of the features of both.
    """
    mirrored = samples.kind.flips
    sets = [samples] if samples.test is None else [samples, samples.test]
    total = sum(map(len, sets))
    encoding = Encoding(encoder.name, encoder.identity, samples.shape, mirrored)
    found = []
    for part, before in zip(sets, (0, len(samples)), strict=False):
        advance = partial(_advance, progress, before, total)
        found.append(as_encoded(part, features_of(part.prepared, encoder, encoding, advance), encoding))
    return replace(found[0], test=found[1] if len(found) > 1 else None)


def _advance(progress: Progress, before: int, total: int, done: int) -> None:
    progress(before + done, total)


def as_encoded(samples: Samples, rows: Tensor, encoding: Encoding) -> Samples:
    """Samples that are trained on as these rows, and shown as before."""
    originals = samples.inputs if samples.originals is None else samples.originals
    return replace(samples, inputs=rows, originals=originals, kind=Encoded(of=samples.kind, encoding=encoding))


def features_of(
    inputs: Tensor | ImageFiles, encoder: Encoder, encoding: Encoding, advance: Callable[[int], None]
) -> Tensor:
    """Features of these inputs, float32 [n, width], from the cache where the same ones were computed before.

    They are rounded to half precision where its range allows it, so that kept ones are the same as new ones. The cache
    goes by the content of the set, in any order: labels that were corrected by moving files change nothing.
    """
    digests = _digests(inputs)
    order = sorted(range(len(digests)), key=digests.__getitem__)
    path = _path(sorted(digests), encoding)
    kept = _kept(path)
    if kept is not None and len(kept) == len(digests):
        rows = torch.empty_like(kept)
        rows[order] = kept
        advance(len(rows))
        return rows.float()
    parts = []
    for start, stretch in _stretches(inputs):
        for begin in range(0, len(stretch), encoder.batch):
            found = encoder(stretch[begin : begin + encoder.batch], mirrored=encoding.mirrored)
            parts.append(found)
            advance(start + begin + len(found))
    rows = torch.cat(parts).cpu()
    half = rows.half()
    rows = half if bool(half.isfinite().all()) else rows
    _keep(path, rows[order])
    return rows.float()


def _stretches(inputs: Tensor | ImageFiles) -> Iterator[tuple[int, Tensor]]:
    """The inputs in memory, some hundreds at a time, each with where it starts."""
    for start in range(0, len(inputs), STRETCH):
        if isinstance(inputs, Tensor):
            yield start, inputs[start : start + STRETCH]
            continue
        images, problems = inputs.decoded(range(start, min(start + STRETCH, len(inputs))))
        if problems:
            raise InputError(f"{problems[0]}: it was usable before the features were computed, and is not now")
        yield start, images


def _digests(inputs: Tensor | ImageFiles) -> list[bytes]:
    """What tells samples apart: their pixels, or the content of files that are not held in memory."""
    if isinstance(inputs, ImageFiles):
        return [hashlib.sha256(read_bytes(ref, inputs.root)).digest() for ref in inputs.refs]
    return [hashlib.sha256(sample.data).digest() for sample in inputs.contiguous().numpy()]


def _path(digests: list[bytes], encoding: Encoding) -> Path:
    about = repr(("features 1", encoding.identity, encoding.shape, encoding.mirrored)).encode()
    return cache_folder() / f"{hashlib.sha256(about + b''.join(digests)).hexdigest()}.safetensors"


def _kept(path: Path) -> Tensor | None:
    if not path.is_file():
        return None
    try:
        return load_file(path)["features"]
    except (SafetensorError, OSError, KeyError):
        path.unlink(missing_ok=True)
        return None


def _keep(path: Path, rows: Tensor) -> None:
    """Keep features; a cache that cannot be written is not an error."""
    with suppress(OSError, SafetensorError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as temporary:
            save_file({"features": rows.contiguous()}, temporary)
