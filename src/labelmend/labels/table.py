"""The label table: for each sample, whether its label is wrong and which one it should have."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ..data.tables import read_parquet as read_parquet
from ..errors import InputError, choose

VERDICTS = ("keep", "relabel", "look")
THRESHOLD = 0.5
"""A label is flagged when it is likelier wrong than right, and replaced when another is likelier than all else."""
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class LabelTable:
    """One row a sample, in the order of the data set; classes are indices into `class_names`.

    `rival` is the class that a label should be if it is wrong, and `agreement` how sure that is then;
    a higher `score` is a more suspicious label.
    """

    ids: Sequence[str]
    class_names: Sequence[str]
    given: NDArray[np.int64]
    noisy_probability: NDArray[np.float64]
    rival: NDArray[np.int64]
    agreement: NDArray[np.float64]
    loss: NDArray[np.float64]
    margin: NDArray[np.float64]
    steadiness: NDArray[np.float64]
    score: NDArray[np.float64]
    truth: NDArray[np.int64] | None = None

    @cached_property
    def verdict(self) -> NDArray[np.str_]:
        """`keep` what is likelier right than wrong; `relabel` where the rival is likelier than all else; or `look`."""
        sure = self.noisy_probability * self.agreement > THRESHOLD
        return np.where(self.noisy_probability <= THRESHOLD, "keep", np.where(sure, "relabel", "look"))

    @cached_property
    def suggested(self) -> NDArray[np.int64]:
        """The label to have: the rival where the verdict is `relabel`, and otherwise the given one."""
        return np.where(self.verdict == "relabel", self.rival, self.given)

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """How likely the suggested label is right."""
        wrong = self.noisy_probability
        return np.where(self.verdict == "relabel", wrong * self.agreement, 1 - wrong)

    def suspects(self) -> NDArray[np.int64]:
        """Rows whose label is more likely wrong than right, the most suspicious first."""
        order = np.argsort(self.rank)
        found: NDArray[np.int64] = order[self.verdict[order] != "keep"]
        return found

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """Place of each row among all, the most suspicious first; from 1."""
        return np.argsort(np.argsort(-self.score, kind="stable")) + 1

    def to_arrow(self) -> pa.Table:
        """The table with class names in place of indices, exactly as they are."""
        names = np.asarray(self.class_names, dtype=object)
        columns = {
            "id": pa.array(list(self.ids), pa.string()),
            "given": pa.array(names[self.given], pa.string()),
            "noisy_probability": pa.array(self.noisy_probability),
            "suggested": pa.array(names[self.suggested], pa.string()),
            "confidence": pa.array(self.confidence),
            "loss": pa.array(self.loss),
            "margin": pa.array(self.margin),
            "steadiness": pa.array(self.steadiness),
            "verdict": pa.array(self.verdict.tolist(), pa.string()),
            "rank": pa.array(self.rank),
        }
        if self.truth is not None:
            columns["truth"] = pa.array(names[self.truth], pa.string())
        return pa.table(columns)


def read_labels(
    path: Path, *, verdicts: Sequence[str] = VERDICTS, top: int | None = None, cleanlab: bool = False
) -> pa.Table:
    """Rows of a run's `labels.parquet` with these verdicts, the most suspicious first, at most `top`."""
    for verdict in verdicts:
        choose("verdict", verdict, {name: name for name in VERDICTS})
    if not path.is_file():
        raise InputError(f"there is no {path}; finish the run with labelmend train ... --resume first")
    table = read_parquet(path)
    table = table.filter(pc.is_in(table["verdict"], pa.array(list(verdicts))))
    table = table.sort_by("rank")
    table = table if top is None else table.slice(0, min(top, table.num_rows))
    return cleanlab_columns(table) if cleanlab else table


def cleanlab_columns(table: pa.Table) -> pa.Table:
    """The columns that cleanlab's users know, in front of ours; a low `label_score` is a suspicious label."""
    issue = pc.not_equal(table["verdict"], "keep")
    score = pc.subtract(1.0, table["noisy_probability"])
    known = {"is_label_issue": issue, "label_score": score, "given_label": table["given"]}
    return pa.table(
        {**known, "predicted_label": table["suggested"], **dict(zip(table.column_names, table.columns, strict=True))}
    )


def parquet_bytes(table: pa.Table) -> bytes:
    """The table as parquet, exactly."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def csv_bytes(table: pa.Table) -> bytes:
    """The table as CSV; text that a spreadsheet would run as a formula gets an apostrophe in front."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    columns = [_cells(table[name].to_pylist()) for name in table.column_names]
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue().encode(errors="surrogateescape")


def _cells(values: list[object]) -> list[str]:
    return [_cell(value) for value in values]


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def predictions_csv(ids: Sequence[str], class_names: Sequence[str], probabilities: NDArray[np.float32]) -> bytes:
    """A CSV of id, predicted class and its probability."""
    best = probabilities.argmax(axis=1)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "predicted", "probability"])
    for i, (id, cls) in enumerate(zip(ids, best.tolist(), strict=True)):
        writer.writerow([_cell(id), _cell(class_names[cls]), _cell(float(probabilities[i, cls]))])
    return text.getvalue().encode(errors="surrogateescape")
