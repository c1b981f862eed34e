"""labels.csv and labels.parquet: for each sample, whether its label is wrong and which one it should have."""

import csv
import io
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ..data.readers.delimited import read_parquet
from ..detect.table import VERDICTS, LabelTable
from ..errors import InputError, lookup
from ..files import write_atomic
from .directory import RunDirectory

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def to_arrow(table: LabelTable) -> pa.Table:
    """The table in Arrow's form, with class names in place of indices."""
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


def write_labels(run: RunDirectory, table: LabelTable) -> None:
    """Write the table as labels.csv and, exactly, as labels.parquet."""
    rows = to_arrow(table)
    write_atomic(run.labels_csv, csv_bytes(rows))
    write_atomic(run.labels_parquet, parquet_bytes(rows))


def read_label_table(run: RunDirectory) -> pa.Table:
    """All rows of labels.parquet, in the order of the data set."""
    if not run.labels_parquet.is_file():
        raise InputError(f"there is no {run.labels_parquet}; finish the run with labelmend train ... --resume first")
    return read_parquet(run.labels_parquet)


def ranked_labels(
    table: pa.Table, *, verdicts: Sequence[str] = VERDICTS, top: int | None = None, cleanlab: bool = False
) -> pa.Table:
    """Rows of a label table with these verdicts, the most suspicious first, at most `top`."""
    for verdict in verdicts:
        lookup("verdict", verdict, {name: name for name in VERDICTS})
    table = table.filter(pc.is_in(table["verdict"], pa.array(list(verdicts)))).sort_by("rank")
    table = table if top is None else table.slice(0, top)
    return cleanlab_columns(table) if cleanlab else table


def cleanlab_columns(table: pa.Table) -> pa.Table:
    """The table with cleanlab's columns before ours; the lower its `label_score`, the more suspicious a label is."""
    issue = pc.not_equal(table["verdict"], "keep")
    score = pc.subtract(1.0, table["noisy_probability"])
    known = {"is_label_issue": issue, "label_score": score, "given_label": table["given"]}
    return pa.table(
        {**known, "predicted_label": table["suggested"], **dict(zip(table.column_names, table.columns, strict=True))}
    )


def parquet_bytes(table: pa.Table) -> bytes:
    """The table as parquet, with exact numbers."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def csv_bytes(table: pa.Table) -> bytes:
    """The table as CSV; text that a spreadsheet would run as a formula gets an apostrophe in front."""
    return _csv(table.column_names, [table[name].to_pylist() for name in table.column_names])


def predictions_csv(ids: Sequence[str], class_names: Sequence[str], probabilities: NDArray[np.float32]) -> bytes:
    """A CSV of id, predicted class and its probability, and the probability of every class."""
    predicted = [class_names[best] for best in probabilities.argmax(axis=1)]
    names = ["id", "predicted", "probability", *(f"p({name})" for name in class_names)]
    return _csv(names, [ids, predicted, probabilities.max(axis=1).tolist(), *probabilities.T.tolist()])


def _csv(names: Sequence[str], columns: Sequence[Sequence[object]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_cell(name) for name in names])
    writer.writerows(zip(*(map(_cell, column) for column in columns), strict=True))
    return text.getvalue().encode(errors="surrogateescape")


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
