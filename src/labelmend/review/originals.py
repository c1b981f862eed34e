"""The data set of a run, opened to be looked at: pictures from their files, texts and rows as they were written."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..data.columns import NUMBER
from ..data.kinds import decode
from ..data.kinds.images import ImageFiles
from ..data.kinds.text import Texts
from ..data.readers.named import NAMED
from ..data.samples import Samples
from ..data.sources import read_source
from ..data.table_encoding import TableRows
from ..data.text import composed
from ..errors import InputError
from ..fix.source import read_config, source_options
from ..run.beside import Reference
from ..run.directory import RunDirectory
from ..run.preflight import rows_by_id
from ..run.unusual import Usual, unusual_values
from .labels import Ints, JudgedLabels

MOST_USUAL = 20_000
"""Samples that tell what is usual in a class."""
PICTURE, TEXT, CELLS = "picture", "text", "cells"


class Originals:
    """The samples of a source by their rows in the label table; nothing else of it is ever read."""

    def __init__(
        self, samples: Samples, labels: JudgedLabels, place: Ints, columns: Sequence[str], numeric: Sequence[str]
    ) -> None:
        self.labels = labels
        self._inputs = samples.inputs
        self._place = place
        self._numeric = set(numeric)
        self.columns = self._columns(columns)
        self._usual: Reference | None = None
        self._quantiles = dict[int, Usual | None]()
        self._lock = threading.Lock()

    @property
    def kind(self) -> str:
        """What a person sees of a sample: picture, text or cells."""
        if isinstance(self._inputs, Texts):
            return TEXT
        if isinstance(self._inputs, ImageFiles):
            return PICTURE
        return CELLS if isinstance(self._inputs, TableRows) or self._inputs.dim() == 2 else PICTURE

    def has(self, row: int) -> bool:
        """Whether the source still has this sample."""
        return bool(self._place[row] >= 0)

    def picture(self, row: int, *, side: int) -> bytes:
        """A new picture, PNG or JPEG, of the original; `UnusableImageError` if it cannot be read."""
        at = int(self._place[row])
        if isinstance(self._inputs, ImageFiles):
            return decode.thumbnail(decode.read_bytes(self._inputs.refs[at], self._inputs.root), side=side)
        if isinstance(self._inputs, torch.Tensor) and self._inputs.dim() == 4:
            return decode.thumbnail_of_pixels(self._inputs[at].numpy(), side=side)
        raise decode.UnusableImageError("not an image")

    def text(self, row: int) -> str:
        """The text of a sample; empty if it is none."""
        return composed(self._inputs[int(self._place[row])]) if isinstance(self._inputs, Texts) else ""

    def cells(self, row: int) -> list[str]:
        """The values of a sample as they are written, in the order of `columns`."""
        at = int(self._place[row])
        if isinstance(self._inputs, TableRows):
            return self._inputs.shown(self.columns, [at])[0]
        if isinstance(self._inputs, torch.Tensor) and self._inputs.dim() == 2:
            return [f"{value:.4g}" for value in self._inputs[at].tolist()]
        return []

    def unusual(self, row: int, rival: int | None) -> list[dict[str, Any]]:
        """The values that are unusual for the given class of a sample, as `run.unusual.unusual_values` gives them."""
        if self.kind != CELLS or rival is None:
            return []
        with self._lock:
            if self._usual is None:
                self._usual = self._reference()
            for label in (int(self.labels.given[row]), rival):
                if label not in self._quantiles:
                    self._quantiles[label] = self._usual.usual(label)
        usual = (self._quantiles[int(self.labels.given[row])], self._quantiles[rival])
        return unusual_values(self._numbers([int(self._place[row])])[0], *usual)

    def _reference(self) -> Reference:
        rows = np.flatnonzero(~self.labels.flagged & (self._place >= 0))
        rows = rows[np.arange(min(len(rows), MOST_USUAL)) * len(rows) // max(1, min(len(rows), MOST_USUAL))]
        values = self._numbers(self._place[rows].tolist())
        return Reference(rows, self.labels.given[rows], torch.zeros(len(rows), 1), values)

    def _numbers(self, at: Sequence[int]) -> NDArray[np.float32]:
        """The values of these rows of the source as numbers, NaN where one is none."""
        if not isinstance(self._inputs, TableRows):
            assert isinstance(self._inputs, torch.Tensor)
            return np.asarray(self._inputs[list(at)].float().numpy())
        some = self._inputs.take(at)
        found = np.full((len(at), len(self.columns)), np.nan, dtype=np.float32)
        for place, name in enumerate(self.columns):
            if name in self._numeric:
                found[:, place] = some.cells(name).numbers.values
        return found

    def _columns(self, known: Sequence[str]) -> list[str]:
        if isinstance(self._inputs, TableRows):
            present = set(self._inputs.table.column_names)
            return [name for name in known if name in present] or list(self._inputs.table.column_names)
        width = self._inputs.shape[1] if self.kind == CELLS and isinstance(self._inputs, torch.Tensor) else 0
        return list(known) if len(known) == width else [f"x{column}" for column in range(width)]


def open_originals(
    run: RunDirectory,
    labels: JudgedLabels,
    *,
    source: str | None = None,
    root: str | None = None,
    columns: Sequence[str] = (),
) -> tuple[Originals, list[str]]:
    """The data set that a run was made from, and what is worth knowing about it; InputError if it is not there.

    `source` and `root` are where it is now, if it is not where it was.
    """
    config, _ = read_config(run)
    options = source_options(config)
    path, moved = source or config["source"], root or options.root
    if path not in NAMED and not Path(path).exists():
        raise InputError(f"the data set {path} is not there; give its place with --source")
    samples = read_source(path, replace(options, root=moved))
    place = _places(run, labels, samples)
    if (place < 0).all():
        raise InputError(f"{path} has none of the samples of this run; give the right place with --source")
    described = run.read().get("data")
    made = described.get("columns") if isinstance(described, dict) else None
    roles = {str(each.get("name")): each.get("role") for each in made or () if isinstance(each, Mapping)}
    numeric = [name for name, role in roles.items() if role == NUMBER]
    changed = config["noise"] is None and config["labels"] is None
    notes = _notes(path, labels, samples, place, compare=changed)
    return Originals(samples, labels, place, columns, numeric), notes


def _places(run: RunDirectory, labels: JudgedLabels, samples: Samples) -> Ints:
    """The row of the source for each row of the label table; -1 where it has none."""
    row_of = rows_by_id(run, samples)
    return np.array([row_of.get(id, -1) for id in labels.ids], dtype=np.int64)


def _notes(path: str, labels: JudgedLabels, samples: Samples, place: Ints, *, compare: bool) -> list[str]:
    found, missing = [], int((place < 0).sum())
    if missing:
        found.append(f"{missing:,} of {len(labels):,} samples are not in {path} any more")
    if compare:
        now, names = samples.label_names, labels.class_names
        there = np.flatnonzero(place >= 0).tolist()
        other = sum(now[place[row]] != names[labels.given[row]] for row in there)
        if other:
            found.append(f"{other:,} labels in {path} are not those that the run was given")
    return found
