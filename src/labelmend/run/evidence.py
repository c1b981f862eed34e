"""What a report needs beyond the label table: the suspects themselves, and where the network puts the samples."""

import json
from collections.abc import Sequence

import pyarrow as pa
import torch
from safetensors.torch import save as save_tensors
from torch import Tensor

from ..core import Learner
from ..data import Samples
from ..data.feed import sweep_size
from ..data.kinds import Normaliser
from ..detect.table import LabelTable
from .directory import RunDirectory
from .files import write_atomic
from .labels import parquet_bytes

SUSPECTS = 1_000
EMBEDDED = 5_000
COMPONENTS = 50


def write_evidence(
    run: RunDirectory, data: Samples, table: LabelTable, learner: Learner, normalise: Normaliser
) -> None:
    """Write the most suspicious samples as pictures or rows, and the principal components of the features."""
    run.evidence.mkdir(exist_ok=True)
    rows = table.suspects()[:SUSPECTS].tolist()
    write_atomic(run.suspects, parquet_bytes(suspects_table(data, rows)))
    count = min(len(data), EMBEDDED)
    index = [i * len(data) // count for i in range(count)]
    components, explained = principal_components(penultimate(learner, data, index, normalise))
    tensors = {"index": torch.tensor(index), "features": components}
    shares = ",".join(f"{share:.4f}" for share in explained.tolist())
    write_atomic(run.features, save_tensors(tensors, metadata={"explained": shares}))


def suspects_table(data: Samples, rows: Sequence[int]) -> pa.Table:
    """Ids with what a person sees of each sample: pictures, or feature values whose names are in the metadata."""
    types = {"picture": pa.binary(), "features": pa.list_(pa.float32())}
    columns = {"id": pa.array([data.ids[row] for row in rows], pa.string())}
    columns |= {name: pa.array(values, types[name]) for name, values in data.shown(rows).items()}
    table = pa.table(columns)
    if "features" not in columns:
        return table
    names = list(data.kind.columns) or [f"x{i}" for i in range(data.shape[0])]
    return table.replace_schema_metadata({"columns": json.dumps(names)})


def penultimate(learner: Learner, data: Samples, rows: Sequence[int], normalise: Normaliser) -> Tensor:
    """What goes into the network's last linear layer for these samples, [n, features]."""
    device = learner.head.weight.device
    size, found = sweep_size(device), []
    with learner.evaluating(), learner.features() as seen:
        for start in range(0, len(rows), size):
            learner(normalise.to(device)(data.loaded(rows[start : start + size]).to(device)))
            found.append(seen.pop().float().cpu())
    return torch.cat(found)


def principal_components(features: Tensor) -> tuple[Tensor, Tensor]:
    """The features along their directions of greatest variance, at most 50, and each one's share of the variance."""
    centred = features.double() - features.double().mean(dim=0)
    variances, directions = torch.linalg.eigh(centred.T @ centred)
    order = variances.argsort(descending=True)[:COMPONENTS]
    directions = directions[:, order]
    largest = directions.gather(0, directions.abs().argmax(dim=0, keepdim=True))
    shares = variances.clamp_min(0)[order] / variances.clamp_min(0).sum().clamp_min(1e-12)
    return (centred @ (directions * largest.sign())).float().contiguous(), shares
