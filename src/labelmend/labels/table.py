"""The label table: for each sample, whether its label is wrong and which one it should have."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class LabelTable:
    """One row a sample, in the order of the data set; classes are indices into `class_names`."""

    ids: Sequence[str]
    class_names: Sequence[str]
    given: NDArray[np.int64]
    noisy_probability: NDArray[np.float64]
    suggested: NDArray[np.int64]
    confidence: NDArray[np.float64]
    loss: NDArray[np.float64]
    truth: NDArray[np.int64] | None = None

    def suspects(self) -> NDArray[np.int64]:
        """Rows whose label is more likely wrong than right, the most suspicious first."""
        order = np.lexsort((-self.loss, -self.noisy_probability))
        return order[self.noisy_probability[order] > 0.5]

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
        }
        if self.truth is not None:
            columns["truth"] = pa.array(names[self.truth], pa.string())
        return pa.table(columns)

    def to_parquet(self) -> bytes:
        """The table as parquet."""
        buffer = io.BytesIO()
        pq.write_table(self.to_arrow(), buffer)
        return buffer.getvalue()

    def to_csv(self) -> bytes:
        """The table as CSV; text that a spreadsheet would run as a formula gets an apostrophe in front."""
        table = self.to_arrow()
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(table.column_names)
        columns = [_cells(table[name].to_pylist()) for name in table.column_names]
        writer.writerows(zip(*columns, strict=True))
        return text.getvalue().encode()


def suggest(
    given: NDArray[np.int64],
    noisy_probability: NDArray[np.float64],
    predicted: NDArray[np.int64],
    predicted_confidence: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The label that carries most belief, and how much: given by 1 - w, predicted by w times its probability.

    This is the largest entry of the corrected target (1 - w) y + w h of Eq. 10.
    """
    same = predicted == given
    keep = (1 - noisy_probability) + np.where(same, noisy_probability * predicted_confidence, 0.0)
    change = np.where(same, 0.0, noisy_probability * predicted_confidence)
    relabel = change > keep
    return np.where(relabel, predicted, given), np.where(relabel, change, keep)


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
    return text.getvalue().encode()
