"""Every experiment of the paper as complete run configurations, for a scale and what the user asked for."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from ..training.config import TrainConfig
from .protocol import DECLARED, Row, Scale

CIFAR = ("cifar10", "cifar100")
ROWS = {id: Row(**{"name": id} | row) for id, row in DECLARED["rows"].items()}
"""Lines of tables; M-DYR-H has other names beside its changed selves in ablations."""

CIRCUMSTANCES = {field.name for field in fields(TrainConfig) if field.metadata["circumstance"]}
"""Where and how a run is made, which does not make it another one."""
LATER: dict[str, Any] = {"time": None, "features": None, "unfreeze": False} | dict.fromkeys(
    ("columns", "drop_columns", "category", "text_column", "decisions")
)
"""Options that are younger than published results, with the values that leave a run as it was."""
KEY_DIGITS = 16
UNLESS_SAID = ("small", "paper")
"""Scales of a part of an experiment that names none."""


def key(config: TrainConfig) -> str:
    """The name of a run: a digest of everything in its configuration that decides what comes out.

    Where the file with its labels lies does not.
    """
    decisive = {
        name: value
        for name, value in asdict(config).items()
        if name not in CIRCUMSTANCES and not (name in LATER and value == LATER[name])
    }
    if config.labels is not None:
        decisive["labels"] = labels_in_words(config)
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:KEY_DIGITS]


def labels_in_words(config: TrainConfig) -> str:
    """Which labels a run has: noise that is made, those of a file, or those of its data."""
    return config.noise or (config.labels or "as it is").rpartition(":")[2]


@dataclass(frozen=True)
class Planned:
    """A run and its place: whose data it plays, its line, its noise level and its whole configuration."""

    data: str
    row: str
    noise: int | None
    config: TrainConfig

    @property
    def key(self) -> str:
        return key(self.config)


@dataclass(frozen=True)
class Asked:
    """What the user wants of an experiment: seeds, and of its methods, noise levels and data sets, some or all."""

    seeds: int
    root: str | None = None
    only: frozenset[str] = frozenset()
    noise: frozenset[int] = frozenset()
    data: frozenset[str] = frozenset()

    def wants(self, scale: Scale, run: Planned) -> bool:
        """Whether a run is among them; data sets go by their own name or by that of the paper's."""
        return (
            (not self.only or run.config.method in self.only)
            and (not self.noise or run.noise in self.noise)
            and (not self.data or bool(self.data & {run.data, scale.stages[run.data].source}))
        )


Runs = Callable[[Scale, Asked], list[Planned]]


@dataclass(frozen=True)
class Experiment:
    """A table, figure or set of checks, and the runs that it needs."""

    id: str
    title: str
    runs: Runs


def planned(
    scale: Scale,
    asked: Asked,
    rows: Sequence[str],
    noise: Sequence[int],
    *,
    data: Sequence[str] = (),
    kind: str = "symmetric",
) -> list[Planned]:
    """Every row on every data set of the scale at every noise level, one seed after the other."""
    every = [
        Planned(role, row.name, level, scale.config(role, row, level, seed, kind=kind, root=asked.root))
        for seed in range(asked.seeds)
        for role in data or scale.ablated
        if role in scale.stages
        for row in map(ROWS.__getitem__, rows)
        if row.only_on is None or role in row.only_on
        for level in noise or (None,)
    ]
    return [run for run in every if asked.wants(scale, run)]


def _experiments(kind: str) -> dict[str, Experiment]:
    def runs_of(declared: Mapping[str, Any]) -> Runs:
        def runs(scale: Scale, asked: Asked) -> list[Planned]:
            asked = replace(asked, seeds=declared.get("seeds", asked.seeds))
            every: dict[tuple[str, str, str], Planned] = {}
            for grid in declared["grids"]:
                own = replace(asked, seeds=max(asked.seeds, grid.get("seeds", 1)))
                if scale.name in grid.get("scales", UNLESS_SAID):
                    told = {name: value for name, value in grid.items() if name not in ("scales", "seeds")}
                    every |= {(run.data, run.row, run.key): run for run in planned(scale, own, **told)}
            return list(every.values())

        return runs

    return {id: Experiment(id, declared["title"], runs_of(declared)) for id, declared in DECLARED[kind].items()}


TABLES = _experiments("tables")
FIGURES = _experiments("figures")
