"""evidence/: what a report shows beside the label table: the suspects themselves, and the network's features.

suspects.parquet has a picture, the feature values or the cells of each suspect; features.safetensors has principal
components.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..data import Samples
from ..data.readers.delimited import read_parquet
from ..detect.table import LabelTable
from ..errors import InputError
from ..files import write_atomic
from .directory import RunDirectory
from .labels import parquet_bytes
from .model import Model

MOST_SUSPECTS = 1_000
MOST_FEATURE_ROWS = 5_000
MOST_COMPONENTS = 50
AT_ONCE = 500
LARGEST_FEATURES = 16 << 20


@dataclass(frozen=True)
class KeptFeatures:
    """Principal components of the features of some samples, [n, components], and each one's share of the variance."""

    samples: NDArray[np.int64]
    components: NDArray[np.float32]
    explained: list[float]


def write_evidence(run: RunDirectory, data: Samples, table: LabelTable, model: Model) -> None:
    """Write the most doubtful samples as pictures or rows, and the principal components of the features."""
    run.evidence.mkdir(exist_ok=True)
    write_suspects(run, data, table)
    count = min(len(data), MOST_FEATURE_ROWS)
    samples = np.arange(count) * len(data) // count
    parts = [model.features(data.loaded(part.tolist())) for part in np.array_split(samples, -(-count // AT_ONCE))]
    write_features(run, KeptFeatures(samples, *principal_components(torch.cat(parts))))


def write_suspects(run: RunDirectory, data: Samples, table: LabelTable) -> None:
    """Write suspects.parquet: flagged labels first, then the others by rank, so that none being flagged hides none."""
    rows = np.lexsort((table.rank, ~table.flagged))[:MOST_SUSPECTS]
    write_atomic(run.suspects, parquet_bytes(suspects_table(data, rows.tolist())))


def suspects_table(data: Samples, rows: Sequence[int]) -> pa.Table:
    """Ids with what a person sees of each sample: pictures, or values or cells whose names are in the metadata."""
    types = {"picture": pa.binary(), "features": pa.list_(pa.float32()), "cells": pa.list_(pa.string())}
    columns = {"id": pa.array([data.ids[row] for row in rows], pa.string())}
    columns |= {name: pa.array(values, types[name]) for name, values in data.shown(rows).items()}
    table = pa.table(columns)
    if not {"features", "cells"} & columns.keys():
        return table
    names = list(data.shown_columns) or [f"x{i}" for i in range(data.shape[0])]
    return table.replace_schema_metadata({"columns": json.dumps(names)})


def read_suspects(run: RunDirectory) -> tuple[pa.Table, list[str]] | None:
    """The table of suspects, and the names of its feature values or cells; None if the run kept none."""
    if not run.suspects.is_file():
        return None
    table = read_parquet(run.suspects)
    return table, json.loads((table.schema.metadata or {}).get(b"columns", b"[]"))


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


def principal_components(features: Tensor) -> tuple[NDArray[np.float32], list[float]]:
    """The features along their directions of greatest variance, at most 50, and each one's share of the variance."""
    from sklearn.decomposition import PCA

    values = features.double().numpy()
    if not np.ptp(values, axis=0).any():  # one sample, or all alike: there is no variance to divide by
        return np.zeros((len(values), 1), dtype=np.float32), [0.0]
    pca = PCA(min(MOST_COMPONENTS, *values.shape), svd_solver="covariance_eigh").fit(values)
    return pca.transform(values).astype(np.float32), pca.explained_variance_ratio_.tolist()
