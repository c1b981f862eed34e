"""Samples as rows of features that an encoder computes: a pretrained one once, kept between runs by their content."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from ..errors import InputError
from ..files import atomic
from .kinds.cache import cache_folder, writable
from .kinds.decode import read_bytes
from .kinds.encoded import Encoded, Encoding
from .kinds.images import ImageFiles
from .kinds.text import Texts
from .samples import Inputs, Samples
from .table_encoding import TableRows
from .text import TextEncoder

STRETCH = 512
"""Samples that are decoded at a time where they are not in memory."""
Encodable = Tensor | ImageFiles | Texts
Progress = Callable[[int, int], None]
"""Called with how many samples are done, and of how many."""


class Encoder(Protocol):
    """What turns samples into features: `nets.backbones.Backbone` pictures, `nets.sentences.SentenceEncoder` texts."""

    @property
    def name(self) -> str:
        """The word for it."""

    @property
    def identity(self) -> str:
        """The name together with the weights."""

    @property
    def batch(self) -> int:
        """Samples to give at a time."""

    def __call__(self, inputs: Any, /, *, mirrored: bool = False) -> Tensor:
        """Features of pictures in a tensor, or of a list of texts, float32 [n, width]."""


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
        found.append(as_encoded(part, features_of(part.inputs, encoder, encoding, advance), encoding))
    return replace(found[0], test=found[1] if len(found) > 1 else None)


def fit_texts(samples: Samples, *, seed: int) -> Samples:
    """Samples that are texts, and those of the test set, as rows of an encoder that is fitted to them."""
    assert isinstance(samples.inputs, Texts)
    return with_text_rows(samples, TextEncoder.fit(samples.inputs.values, seed=seed))


def with_text_rows(samples: Samples, encoder: TextEncoder) -> Samples:
    """Samples that are texts, and those of the test set, as rows of this encoder."""
    assert isinstance(samples.inputs, Texts)
    encoded = as_encoded(
        samples, encoder.transform(samples.inputs.values), Encoding(encoder.name, encoder.identity), fitted=encoder
    )
    return encoded if samples.test is None else replace(encoded, test=with_text_rows(samples.test, encoder))


def _advance(progress: Progress, before: int, total: int, done: int) -> None:
    progress(before + done, total)


def as_encoded(samples: Samples, rows: Tensor, encoding: Encoding, *, fitted: TextEncoder | None = None) -> Samples:
    """Samples that are trained on as these rows, and shown as before."""
    originals = samples.inputs if samples.originals is None else samples.originals
    kind = Encoded(of=samples.kind, encoding=encoding, fitted=fitted)
    return replace(samples, inputs=rows, originals=originals, kind=kind)


def features_of(inputs: Inputs, encoder: Encoder, encoding: Encoding, advance: Callable[[int], None]) -> Tensor:
    """Features of these inputs, float32 [n, width], from the cache where the same ones were computed before.

    They are rounded to half precision where its range allows it, so that kept ones are the same as new ones. The cache
    goes by the content of the set, in any order: labels that were corrected by moving files change nothing.
    """
    assert not isinstance(inputs, TableRows)  # rows of a table have an encoding of their own
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


def _stretches(inputs: Encodable) -> Iterator[tuple[int, Tensor | Sequence[str]]]:
    """The inputs in memory, some hundreds at a time, each with where it starts."""
    for start in range(0, len(inputs), STRETCH):
        if isinstance(inputs, Tensor):
            yield start, inputs[start : start + STRETCH]
            continue
        if isinstance(inputs, Texts):
            yield start, inputs.values[start : start + STRETCH]
            continue
        images, problems = inputs.decoded(range(start, min(start + STRETCH, len(inputs))))
        if problems:
            raise InputError(f"{problems[0]}: it was usable before the features were computed, and is not now")
        yield start, images


def _digests(inputs: Encodable) -> list[bytes]:
    """What tells samples apart: their pixels or text, or the content of files that are not held in memory."""
    if isinstance(inputs, Texts):
        return [hashlib.sha256(text.encode()).digest() for text in inputs.values]
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
    if not writable():
        return
    with suppress(OSError, SafetensorError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as temporary:
            save_file({"features": rows.contiguous()}, temporary)
