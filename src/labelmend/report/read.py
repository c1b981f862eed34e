"""What a finished run left behind, read once for all sections; the evidence may be missing."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import InputError
from ..run.directory import LOSSES_KEPT, RunDirectory
from ..run.labels import read_parquet

LARGEST_NOISE = 256 << 20


@dataclass(frozen=True)
class Findings:
    """The files of one run as arrays; classes are indices into `classes`, in the order of the data set."""

    run: RunDirectory
    described: dict[str, Any]
    epochs: list[dict[str, Any]]
    table: pa.Table

    @property
    def name(self) -> str:
        """The folder's name, also for `.`."""
        return self.run.path.resolve().name

    @property
    def summary(self) -> dict[str, Any]:
        """What the run came to."""
        return dict(self.described["summary"])

    @property
    def classes(self) -> list[str]:
        """Names of the classes."""
        return list(self.described["data"]["classes"])

    def column(self, name: str) -> NDArray[Any]:
        """One column of the label table; class names as indices."""
        if name in ("given", "suggested", "truth"):
            return np.asarray(pc.index_in(self.table[name], pa.array(self.classes, pa.string())).to_numpy())
        return np.asarray(self.table[name].to_numpy())

    @property
    def has_truth(self) -> bool:
        """Whether it is known which labels are right."""
        return "truth" in self.table.column_names

    @cached_property
    def verdicts(self) -> NDArray[np.str_]:
        """keep, relabel or look for each sample."""
        return np.asarray(self.table["verdict"].to_pylist(), dtype=str)

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """Whether each label is to be changed or looked at."""
        return np.asarray(self.verdicts != "keep")

    @cached_property
    def noise(self) -> dict[str, Any]:
        """The estimate of the noise."""
        path = self.run.noise_json
        if not path.is_file() or path.stat().st_size > LARGEST_NOISE:
            raise InputError(f"{path} is missing or damaged; only what labelmend wrote can be reported")
        return dict(json.loads(path.read_bytes()))

    def losses_by_epoch(self) -> tuple[NDArray[np.float16], NDArray[np.int64]] | None:
        """Recorded losses, [tracking passes, M], and the sample of each column; None if the run kept none."""
        if not self.run.losses.is_file() or not self.epochs:
            return None
        columns = min(len(self.table), LOSSES_KEPT)
        flat = np.fromfile(self.run.losses, dtype="<f2", count=columns * len(self.epochs))
        rows = len(flat) // columns
        return flat[: rows * columns].reshape(rows, columns), np.arange(columns) * len(self.table) // columns


def read_findings(run: RunDirectory) -> Findings:
    """Read a finished run; one that is not finished is refused."""
    described = run.read()
    if described.get("status") != "finished":
        raise InputError(f"{run.path} is {described.get('status')}; finish it with labelmend train ... --resume first")
    return Findings(run, described, run.epochs(), read_parquet(run.labels_parquet))
