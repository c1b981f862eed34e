"""Three scales: the paper's data, network and schedule; on two cores its data in hours, or its claims in minutes."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from ..training.config import TrainConfig

APPENDIX_B = {"learning_rate": "0.1", "momentum": "0.9", "weight_decay": "0.0001", "precision": "no"}
"""SGD as in Appendix B; its batch size and augmentation depend on the data."""
AS_WRITTEN = {
    "details": "paper",
    "noise_model": "bmm",
    "em_iterations": "10",
    "track_every": "1",
    "eta": "1.0",
    "mixup_alpha": "32.0",
}
"""The paper's own methods as its text has them."""
DECLARED = tomllib.loads(files(__package__).joinpath("experiments.toml").read_text(encoding="utf-8"))
"""Scales, rows and experiments as they are written down."""
HUMAN_LABELS = ("labels.npz", "CIFAR-10_human.pt")
"""Names of the file of CIFAR-10N's labels, ours and that of its authors."""


@dataclass(frozen=True)
class Row:
    """A line of a table: a method, the schedule it is trained by and what is changed in it.

    `ours` are the methods of the paper itself. A row may stand `only_on` some of the paper's data sets, and have a
    network and a number of epochs of its own.
    """

    name: str
    method: str
    schedule: str = "mixup"
    changed: Mapping[str, str] = field(default_factory=dict)
    ours: bool = True
    trusted: bool = False
    only_on: list[str] | None = None
    net: str | None = None
    epochs: int | None = None


@dataclass(frozen=True)
class Stage:
    """What stands for one of the paper's data sets: the data, the network and the epochs of each schedule.

    `labels` names those of CIFAR-10N that are given in place of the data set's own.
    """

    title: str
    source: str
    net: str
    epochs: Mapping[str, int]
    batch_size: int
    augment: str
    samples: int
    tested: int
    shape: list[int]
    classes: int
    limit: int | None = None
    size: int | None = None
    init: str | None = None
    labels: str | None = None
    trusted: int = 10
    changed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Scale:
    """A stage for each of the paper's data sets; the ablations of its appendix run on some of them.

    Runs of a `costly` scale are made for its tables and figures only: claims are checked as far as those decide them.
    """

    name: str
    stages: Mapping[str, Stage]
    ablated: tuple[str, ...]
    costly: bool = False

    def config(
        self, data: str, row: Row, noise: int | None, seed: int, *, kind: str = "symmetric", root: str | None = None
    ) -> TrainConfig:
        """The complete configuration of one run, apart from `out`."""
        stage = self.stages[data]
        settings = {**APPENDIX_B, "batch_size": str(stage.batch_size), "augment": stage.augment, **stage.changed}
        if row.ours:
            settings |= {**AS_WRITTEN, "schedule": row.schedule}
        return TrainConfig(
            source=stage.source,
            out="",
            method=row.method,
            net=row.net or stage.net,
            epochs=row.epochs or stage.epochs[row.schedule],
            noise=None if noise is None else f"{kind}:{noise / 100:g}",
            labels=None if stage.labels is None else f"{_human_labels(root)}:{stage.labels}",
            trusted=f"{stage.trusted}-per-class" if row.trusted else None,
            root=_own_folder(root, stage.source),
            size=stage.size,
            init=stage.init,
            limit=stage.limit,
            seed=seed,
            settings=settings | dict(row.changed),
        )


def _own_folder(root: str | None, source: str) -> str | None:
    """The data set's own folder in the root, if it has one."""
    if root is not None and (Path(root) / source).is_dir():
        return str(Path(root) / source)
    return root


def _human_labels(root: str | None) -> str:
    """CIFAR-10N's file in its own folder of the root or in the root itself; where it would be, if there is none."""
    places = [Path(root or "data") / folder / name for folder in ("cifar10n", ".") for name in HUMAN_LABELS]
    return str(next((place for place in places if place.is_file()), places[0]))


def _scale(name: str, *, ablated: tuple[str, ...], costly: bool = False) -> Scale:
    declared = DECLARED["scales"][name]
    stages = {data: declared.get(stage.get("like"), {}) | stage for data, stage in declared.items()}
    for stage in stages.values():
        stage.pop("like", None)
    return Scale(name, {data: Stage(**stage) for data, stage in stages.items()}, ablated, costly)


SMALL = _scale("small", ablated=("cifar10", "cifar100"))
MEDIUM = _scale("medium", ablated=("cifar10",), costly=True)
PAPER = _scale("paper", ablated=("cifar10",))
SCALES = {scale.name: scale for scale in (SMALL, MEDIUM, PAPER)}
