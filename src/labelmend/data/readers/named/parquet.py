"""Data sets that are published as parquet files of encoded images."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ....errors import InputError
from ...kinds.images import ImageFiles
from ...samples import Samples
from ..table import Columns, open_table
from .files import row_ids


def open_parquets(name: str, folder: Path, test: str, usual: Sequence[str] | None) -> Samples:
    """The training file and, where it is there, the test file; `usual` are class names if the file has none."""
    held = folder / f"{test}.parquet"
    train = _open_parquet(name, folder / "train.parquet", usual)
    return replace(train, test=_open_parquet(name, held, usual) if held.is_file() else None)


def _open_parquet(name: str, path: Path, usual: Sequence[str] | None) -> Samples:
    """Images as encoded bytes; class names from Hugging Face's metadata, else the usual ones, else numbers."""
    read = open_table(path, Columns(), class_names=usual)
    if not isinstance(read.inputs, ImageFiles):
        raise InputError(f"{path} has no column 'image' that holds encoded images")
    for row, image in enumerate(read.inputs.refs):
        if not isinstance(image, bytes) or not image:
            raise InputError(f"{path} is damaged: row {row} has no image bytes")
    for row, label in enumerate(read.label_names):
        if not label or (usual is not None and not read.declared and label not in usual):
            raise InputError(f"{path} is damaged: row {row} has the label {label!r:.40}, which is no class")
    return replace(read, name=name, ids=row_ids(path.stem, len(read)))
