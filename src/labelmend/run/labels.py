"""The label table: for each sample, whether its label is wrong and which one it should have."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ..data.readers.table import read_parquet as read_parquet
from ..detect.table import VERDICTS, LabelTable
from ..errors import InputError, lookup

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def to_arrow(table: LabelTable) -> pa.Table:
    """The table with class names in place of indices, exactly as they are."""
    names = np.asarray(table.class_names, dtype=object)
    columns = {
        "id": pa.array(list(table.ids), pa.string()),
        "given": pa.array(names[table.given], pa.string()),
        "noisy_probability": pa.array(table.noisy_probability),
        "suggested": pa.array(names[table.suggested], pa.string()),
        "confidence": pa.array(table.confidence),
        "loss": pa.array(table.loss),
        "margin": pa.array(table.margin),
        "steadiness": pa.array(table.steadiness),
        "verdict": pa.array(table.verdict.tolist(), pa.string()),
        "rank": pa.array(table.rank),
    }
    if table.truth is not None:
        columns["truth"] = pa.array(names[table.truth], pa.string())
    return pa.table(columns)


def read_labels(
    path: Path, *, verdicts: Sequence[str] = VERDICTS, top: int | None = None, cleanlab: bool = False
) -> pa.Table:
    """Rows of a run's `labels.parquet` with these verdicts, the most suspicious first, at most `top`."""
    for verdict in verdicts:
        lookup("verdict", verdict, {name: name for name in VERDICTS})
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
    """A CSV of id, predicted class and its probability, and the probability of every class."""
    best = probabilities.argmax(axis=1)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "predicted", "probability", *(f"p({name})" for name in class_names)])
    for id, cls, row in zip(ids, best.tolist(), probabilities.tolist(), strict=True):
        writer.writerow([_cell(id), _cell(class_names[cls]), *_cells([row[cls], *row])])
    return text.getvalue().encode(errors="surrogateescape")
