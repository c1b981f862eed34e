"""The files of a finished run, read once for all sections of a report."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..detect.judge import CLEAN, FOUND
from ..run.decisions import Standing, overlay, run_decisions, standing
from ..run.description import check_finished
from ..run.directory import RunDirectory
from ..run.labels import read_label_table
from ..run.losses import read_losses, recorded_samples
from ..run.noise import read_noise

JUDGED = "judged"
"""The kind of a run, in run.json, that was made from predictions without training."""
SUMMARY = ("best_accuracy", "last_accuracy", "auc", "mixture", "seconds")


@dataclass(frozen=True)
class Findings:
    """The files of one run as arrays; classes are indices into `classes`, in the order of the data set.

    `holds` is what reviewers decided, by the ids of samples; the label table has it already.
    """

    run: RunDirectory
    described: dict[str, Any]
    epochs: list[dict[str, Any]]
    table: pa.Table
    holds: Mapping[str, Standing] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the run directory."""
        return self.run.path.resolve().name

    @property
    def trained(self) -> bool:
        """Whether labelmend trained the network, and did not judge predictions of another one."""
        return self.described.get("kind") != JUDGED

    @property
    def summary(self) -> dict[str, Any]:
        """Accuracy, noise rate, mixture and time of the whole run; None for what it has not."""
        return dict.fromkeys(SUMMARY) | dict(self.described["summary"])

    @property
    def classes(self) -> list[str]:
        """Names of the classes."""
        return list(self.described["data"]["classes"])

    @property
    def columns(self) -> list[dict[str, str]]:
        """What was made of each column of a table; none where the samples are of another kind."""
        found = self.described["data"].get("columns") or []
        return [{key: str(column[key]) for key in ("name", "role", "reason")} for column in found]

    @property
    def source_notes(self) -> list[str]:
        """What is worth knowing about the source, such as its dialect."""
        return [str(note) for note in self.described["data"].get("notes") or []]

    def column(self, name: str) -> NDArray[Any]:
        """One column of the label table; class names as indices."""
        if name in ("given", "suggested", "truth"):
            return np.asarray(pc.index_in(self.table[name], pa.array(self.classes, pa.string())).to_numpy())
        return np.asarray(self.table[name].to_numpy())

    @cached_property
    def wrong(self) -> NDArray[np.bool_] | None:
        """Whether each label is really wrong; None if the truth is not known."""
        if "truth" not in self.table.column_names:
            return None
        return np.asarray(self.column("given") != self.column("truth"))

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
        """The estimate of the noise; version 0.1 wrote no finding, and its reason in other words."""
        noise = read_noise(self.run)
        if "finding" in noise:
            return noise
        return noise | {"finding": FOUND if noise["evidence"] else CLEAN, "advice": None, "reason": None}

    def losses_by_epoch(self) -> tuple[NDArray[np.float16], NDArray[np.int64]] | None:
        """Recorded losses, [tracking passes, M], and the sample of each column; None if the run kept none."""
        losses = read_losses(self.run.losses, samples=len(self.table), most_passes=len(self.epochs))
        return None if losses is None else (losses, recorded_samples(len(self.table)))


def read_findings(run: RunDirectory, decisions: Path | None = None) -> Findings:
    """Read a finished run, with its decisions or those of another file; InputError if it is not finished."""
    described = run.read()
    check_finished(run.path, described)
    table, holds = read_label_table(run), standing(run_decisions(run, decisions))
    return Findings(run, described, run.epochs(), overlay(table, holds) if holds else table, holds)
