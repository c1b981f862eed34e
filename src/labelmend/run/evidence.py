"""evidence/: what a report shows beside the label table: the suspects themselves, and the network's features.

suspects.parquet has a picture, the text, the feature values or the cells of each suspect, and what stands beside the
first of them; neighbours.parquet has the samples that are named there; features.safetensors has principal components.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..data.readers.delimited import read_parquet
from ..detect.table import LabelTable
from ..errors import InputError
from ..files import write_atomic
from .directory import RunDirectory
from .labels import parquet_bytes

if TYPE_CHECKING:
    from torch import Tensor

    from ..data.samples import Samples
    from .beside import Reference
    from .model import Model

MOST_SUSPECTS = 1_000
MOST_FEATURE_ROWS = 5_000
MOST_COMPONENTS = 50
AT_ONCE = 500
LARGEST_FEATURES = 16 << 20
_RANGE = pa.list_(pa.float64())
BESIDE = {
    "rival": pa.string(),
    "like_given": pa.list_(pa.int32()),
    "like_rival": pa.list_(pa.int32()),
    "near_given": pa.list_(pa.int32()),
    "near_rival": pa.list_(pa.int32()),
    "unusual": pa.list_(
        pa.struct({"column": pa.int32(), "value": pa.float64(), "word": pa.string(), "given": _RANGE, "rival": _RANGE})
    ),
}
"""Columns of suspects.parquet for what stands beside a suspect: what is like it is rows of neighbours.parquet, and what
is near it the same samples, and those of further suspects, as rows of the label table."""


@dataclass(frozen=True)
class KeptFeatures:
    """Principal components of the features of some samples, [n, components], and each one's share of the variance."""

    samples: NDArray[np.int64]
    components: NDArray[np.float32]
    explained: list[float]


def write_evidence(run: RunDirectory, data: "Samples", table: LabelTable, model: "Model") -> None:
    """Write the most doubtful samples with what stands beside them, and the principal components of the features."""
    import torch  # here, and not by those that only read evidence

    from .beside import Reference

    run.evidence.mkdir(exist_ok=True)
    count = min(len(data), MOST_FEATURE_ROWS)
    samples = np.arange(count) * len(data) // count
    parts = [model.features(data.loaded(part.tolist())) for part in np.array_split(samples, -(-count // AT_ONCE))]
    features = torch.cat(parts)
    write_features(run, KeptFeatures(samples, *principal_components(features)))
    write_suspects(run, data, table, model, Reference.of(data, table, samples, features))


def write_suspects(
    run: RunDirectory,
    data: "Samples",
    table: LabelTable,
    model: "Model | None" = None,
    reference: "Reference | None" = None,
) -> None:
    """Write suspects.parquet: flagged labels first, then the others by rank, so that none being flagged hides none.

    With a model and samples to compare with, also what stands beside the first suspects, and neighbours.parquet.
    """
    rows = np.lexsort((table.rank, ~table.flagged))[:MOST_SUSPECTS].tolist()
    suspects = suspects_table(data, rows)
    if model is not None and reference is not None:
        from .beside import beside, marked_words

        found, named = beside(data, table, model, rows, reference)
        suspects = _with_columns(suspects, found, marked_words(data, table, model, rows))
        labels = pa.array([table.class_names[table.given[row]] for row in named], pa.string())
        write_atomic(run.neighbours, parquet_bytes(suspects_table(data, named).append_column("given", labels)))
    write_atomic(run.suspects, parquet_bytes(suspects))


def suspects_table(data: "Samples", rows: Sequence[int]) -> pa.Table:
    """Ids with what a person sees of each sample: pictures, texts, or values or cells whose names are metadata."""
    types = {
        "picture": pa.binary(),
        "text": pa.string(),
        "features": pa.list_(pa.float32()),
        "cells": pa.list_(pa.string()),
    }
    columns = {"id": pa.array([data.ids[row] for row in rows], pa.string())}
    columns |= {name: pa.array(values, types[name]) for name, values in data.shown(rows).items()}
    table = pa.table(columns)
    if not {"features", "cells"} & columns.keys():
        return table
    names = list(data.shown_columns) or [f"x{i}" for i in range(data.shape[0])]
    return table.replace_schema_metadata({"columns": json.dumps(names)})


def _with_columns(suspects: pa.Table, found: list[dict[str, Any]], marks: list[list[int]] | None) -> pa.Table:
    """The table with what stands beside each suspect, none for those that nothing was put beside."""
    for name, kind in BESIDE.items():
        values = [entry.get(name) for entry in found] + [None] * (suspects.num_rows - len(found))
        if any(value is not None for value in values):
            suspects = suspects.append_column(name, pa.array(values, kind))
    return suspects if marks is None else suspects.append_column("marks", pa.array(marks, pa.list_(pa.int32())))


def read_suspects(run: RunDirectory) -> tuple[pa.Table, list[str]] | None:
    """The table of suspects, and the names of its feature values or cells; None if the run kept none."""
    if not run.suspects.is_file():
        return None
    table = read_parquet(run.suspects)
    return table, json.loads((table.schema.metadata or {}).get(b"columns", b"[]"))


def suspect_texts(run: RunDirectory) -> dict[str, str]:
    """The texts of suspects by their ids; none if the samples are no texts."""
    table, _ = read_suspects(run) or (None, [])
    if table is None or "text" not in table.column_names:
        return {}
    return dict(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))


def read_neighbours(run: RunDirectory) -> pa.Table | None:
    """The table of samples that suspects are compared with; None if the run kept none."""
    return read_parquet(run.neighbours) if run.neighbours.is_file() else None


def write_features(run: RunDirectory, kept: KeptFeatures) -> None:
    """Write features.safetensors."""
    from safetensors.numpy import save

    shares = ",".join(f"{share:.4f}" for share in kept.explained)
    tensors: dict[str, NDArray[Any]] = {"index": kept.samples, "features": kept.components}
    write_atomic(run.features, save(tensors, metadata={"explained": shares}))


def read_features(run: RunDirectory) -> KeptFeatures | None:
    """The content of features.safetensors; None if the run kept no features."""
    from safetensors import safe_open

    if not run.features.is_file():
        return None
    if run.features.stat().st_size > LARGEST_FEATURES:
        raise InputError(f"{run.features} is damaged: labelmend writes at most {LARGEST_FEATURES >> 20} MiB")
    with safe_open(run.features, framework="numpy") as file:
        shares = (file.metadata() or {}).get("explained", "").split(",")
        explained = [float(share) for share in shares if share]
        return KeptFeatures(file.get_tensor("index"), file.get_tensor("features"), explained)


def principal_components(features: "Tensor") -> tuple[NDArray[np.float32], list[float]]:
    """The features along their directions of greatest variance, at most 50, and each one's share of the variance."""
    from sklearn.decomposition import PCA

    values = features.double().numpy()
    if not np.ptp(values, axis=0).any():  # one sample, or all alike: there is no variance to divide by
        return np.zeros((len(values), 1), dtype=np.float32), [0.0]
    pca = PCA(min(MOST_COMPONENTS, *values.shape), svd_solver="covariance_eigh").fit(values)
    return pca.transform(values).astype(np.float32), pca.explained_variance_ratio_.tolist()
