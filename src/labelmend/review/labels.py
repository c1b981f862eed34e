"""The label table of a run as arrays, which a queue of 50,000 samples is cut from in a millisecond."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..detect.table import VERDICTS
from ..errors import InputError
from ..run.description import check_finished
from ..run.directory import RunDirectory
from ..run.labels import read_label_table

KEPT = VERDICTS.index("keep")
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class JudgedLabels:
    """What a run found of each label, in the order of its data set; classes and verdicts are positions in their names.

    `suggested` is the given class where the run has no better one.
    """

    ids: Sequence[str]
    class_names: Sequence[str]
    given: Ints
    suggested: Ints
    verdict: Ints
    rank: Ints
    probability: Floats
    confidence: Floats

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def row_of(self) -> dict[str, int]:
        """The row of each sample by its id."""
        return {id: row for row, id in enumerate(self.ids)}

    @cached_property
    def class_of(self) -> dict[str, int]:
        """The position of each class by its name."""
        return {name: place for place, name in enumerate(self.class_names)}

    @cached_property
    def flagged(self) -> NDArray[np.bool_]:
        """Labels that look wrong."""
        found: NDArray[np.bool_] = self.verdict != KEPT
        return found

    @cached_property
    def pair(self) -> Ints:
        """Given and suggested class of each sample as one number."""
        found: Ints = self.given * len(self.class_names) + self.suggested
        return found

    def pairs(self, most: int) -> list[tuple[int, int, int]]:
        """The most frequent pairs of given and suggested class among flagged labels, and how often each occurs."""
        values, counts = np.unique(self.pair[self.flagged], return_counts=True)
        order = np.argsort(-counts, kind="stable")[:most]
        classes = len(self.class_names)
        return [(int(values[i]) // classes, int(values[i]) % classes, int(counts[i])) for i in order]


def read_judged(run: RunDirectory) -> JudgedLabels:
    """The labels that a finished run judged; InputError if it is not finished or its files are damaged."""
    described = run.read()
    check_finished(run.path, described)
    table = read_label_table(run)
    try:
        classes = [str(name) for name in described["data"]["classes"]]
        read = {name: _positions(table[name], classes) for name in ("given", "suggested")}
        read["verdict"] = _positions(table["verdict"], VERDICTS)
        numbers = {name: np.asarray(table[name].to_numpy()) for name in ("noisy_probability", "confidence", "rank")}
        ids = [str(id) for id in table["id"].to_pylist()]
        whole = all(np.isfinite(values).all() for values in numbers.values())
    except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{run.labels_parquet} is damaged: {str(error).partition(chr(10))[0]}") from None
    if not ids or not whole or len(set(ids)) != len(ids) or min(int(codes.min()) for codes in read.values()) < 0:
        raise InputError(f"{run.labels_parquet} is damaged: it is no label table of the classes in {run.run_json}")
    return JudgedLabels(
        ids,
        classes,
        **read,
        rank=numbers["rank"].astype(np.int64),
        probability=numbers["noisy_probability"].astype(np.float64),
        confidence=numbers["confidence"].astype(np.float64),
    )


def _positions(column: Any, names: Sequence[str]) -> Ints:
    """Where each value stands among the names; -1 where it does not."""
    found = pc.fill_null(pc.index_in(column, pa.array(list(names), pa.string())), -1)
    return np.asarray(found.to_numpy(), dtype=np.int64)
