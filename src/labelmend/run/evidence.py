"""What a report needs beyond the label table: the suspects themselves, and where the network puts the samples."""

import io
import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from safetensors.torch import save as save_tensors
from torch import Tensor

from ..core import Learner
from ..data import Dataset
from ..data.feed import Normaliser, sweep_size
from ..detect.table import LabelTable
from .directory import RunDirectory
from .files import write_atomic
from .labels import parquet_bytes

SUSPECTS = 1_000
EMBEDDED = 5_000
COMPONENTS = 50
LONGEST_SIDE = 96
LOSSLESS_TO = 32


def write_evidence(
    run: RunDirectory, data: Dataset, table: LabelTable, learner: Learner, normalise: Normaliser
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


def suspects_table(data: Dataset, rows: Sequence[int]) -> pa.Table:
    """Ids with pictures, or with feature values whose names are in the metadata."""
    ids = pa.array([data.ids[row] for row in rows], pa.string())
    if data.is_images:
        pictures = [picture(data.samples([row])[0].numpy()) for row in rows]
        return pa.table({"id": ids, "picture": pa.array(pictures, pa.binary())})
    names = list(data.columns) or [f"x{i}" for i in range(data.shape[0])]
    values = data.samples(rows).tolist() if rows else []
    table = pa.table({"id": ids, "features": pa.array(values, pa.list_(pa.float32()))})
    return table.replace_schema_metadata({"columns": json.dumps(names)})


def picture(pixels: NDArray[np.uint8]) -> bytes:
    """An image [channels, height, width] as a file of at most 96 pixels a side: PNG where small, else JPEG."""
    from PIL import Image

    image = Image.fromarray(pixels[0] if len(pixels) == 1 else np.moveaxis(pixels, 0, -1))
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    file = io.BytesIO()
    if max(image.size) <= LOSSLESS_TO:
        image.save(file, "PNG", optimize=True)
    else:
        image.save(file, "JPEG", quality=88)
    return file.getvalue()


def penultimate(learner: Learner, data: Dataset, rows: Sequence[int], normalise: Normaliser) -> Tensor:
    """What goes into the network's last linear layer for these samples, [n, features]."""
    device = learner.head.weight.device
    size, found = sweep_size(device), []
    with learner.evaluating(), learner.features() as seen:
        for start in range(0, len(rows), size):
            learner(normalise.to(device)(data.samples(rows[start : start + size]).to(device)))
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
