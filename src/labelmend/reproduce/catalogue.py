"""Every experiment of the paper as a function from a scale and seeds to complete run configurations."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace

from ..training.config import TrainConfig
from .protocol import Row, Scale

CE_PLAIN = Row("CE", "ce", "plain")
ST_S = Row("ST-S", "st-s", "plain")
ST_H = Row("ST-H", "st-h", "plain")
DY_S = Row("DY-S", "dy-s", "plain")
DY_H = Row("DY-H", "dy-h", "plain")
CE = Row("CE", "ce")
M = Row("M", "m")
M_DYR_S = Row("M-DYR-S", "m-dyr-s")
M_DYR_H = Row("M-DYR-H", "m-dyr-h")
MD_DYR_H = Row("MD-DYR-H", "md-dyr-h")
MD_DYR_SH = Row("MD-DYR-SH", "md-dyr-sh")
BOOTSTRAPPING = Row("Bootstrapping", "st-h")
FORWARD = Row("Forward", "forward", ours=False)
MENTORNET = Row("MentorNet", "mentornet", ours=False, trusted=True)
D2L = Row("D2L", "d2l", ours=False)
L2RW = Row("L2RW", "l2rw", ours=False, trusted=True)
ITERATIVE = Row("Iterative", "iterative", ours=False)
GMM = Row("GMM", "m-dyr-h", changed={"noise_model": "gmm"})
WITHOUT_R = Row("M-DYR-H without R", "m-dyr-h", changed={"eta": "0"})
FIXED = Row("fixed 0.8 / 0.2", "m-dyr-h", changed={"fixed_share": "0.2"})
EVERY_5 = Row("every 5 epochs", "m-dyr-h", changed={"track_every": "5"})
EVERY_HALF = Row("every 0.5 epochs", "m-dyr-h", changed={"track_every": "0.5"})
EM_5 = Row("5 iterations", "m-dyr-h", changed={"em_iterations": "5"})
EM_20 = Row("20 iterations", "m-dyr-h", changed={"em_iterations": "20"})
RELEASED_S = Row("M-DYR-S, released", "m-dyr-s", changed={"details": "released"})
RELEASED_H = Row("M-DYR-H, released", "m-dyr-h", changed={"details": "released"})

CIFAR = ("cifar10", "cifar100")
USUAL = (0, 20, 50, 80)


CIRCUMSTANCES = {field.name for field in fields(TrainConfig) if field.metadata["circumstance"]}
"""Where and how a run is made, which does not make it another one."""
KEY_DIGITS = 16


def key(config: TrainConfig) -> str:
    """The name of a run: a digest of everything in its configuration that decides what comes out."""
    decisive = {name: value for name, value in asdict(config).items() if name not in CIRCUMSTANCES}
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:KEY_DIGITS]


@dataclass(frozen=True)
class Planned:
    """A run and its place: whose data it plays, its line, its noise level and its whole configuration."""

    data: str
    row: str
    noise: int | None
    config: TrainConfig

    @property
    def key(self) -> str:
        """The name of the run."""
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
    data: Sequence[str],
    rows: Iterable[Row],
    noise: Sequence[int | None],
    *,
    kind: str = "symmetric",
) -> list[Planned]:
    """Every row on every data set at every noise level, one seed after the other."""
    lines = list(rows)
    every = [
        Planned(role, row.name, level, scale.config(role, row, level, seed, kind=kind, root=asked.root))
        for seed in range(asked.seeds)
        for role in data
        for row in lines
        for level in noise
    ]
    return [run for run in every if asked.wants(scale, run)]


def table1(scale: Scale, asked: Asked) -> list[Planned]:
    """Static and dynamic bootstrapping on CIFAR-10, by the schedule without mixup."""
    return planned(scale, asked, CIFAR[:1], (CE_PLAIN, ST_S, ST_H, DY_S, DY_H), USUAL)


def table2(scale: Scale, asked: Asked) -> list[Planned]:
    """Mixup joined with dynamic bootstrapping."""
    return planned(scale, asked, CIFAR, (CE, M, M_DYR_S, M_DYR_H), USUAL)


def table3(scale: Scale, asked: Asked) -> list[Planned]:
    """Extreme noise."""
    return planned(scale, asked, CIFAR, (M_DYR_H, MD_DYR_H, MD_DYR_SH), (70, 80, 85, 90))


def table4(scale: Scale, asked: Asked) -> list[Planned]:
    """Other systems, trained alike."""
    return planned(scale, asked, CIFAR, (BOOTSTRAPPING, FORWARD, M, M_DYR_H, MD_DYR_SH), (*USUAL, 90))


def table5(scale: Scale, asked: Asked) -> list[Planned]:
    """Noise that never draws the true label; Wang et al. have no row for CIFAR-100."""
    rows = (MENTORNET, D2L, L2RW, ITERATIVE, M_DYR_H, MD_DYR_SH)
    runs = planned(scale, asked, CIFAR, rows, (20, 40, 60, 80), kind="symmetric-excl")
    return [run for run in runs if (run.data, run.row) != ("cifar100", ITERATIVE.name)]


def tinyimagenet(scale: Scale, asked: Asked) -> list[Planned]:
    """Two hundred classes."""
    return planned(scale, asked, ("tiny-imagenet",), (M, M_DYR_H, MD_DYR_SH), (20, 50, 80))


def clothing1m(scale: Scale, asked: Asked) -> list[Planned]:
    """Labels that are wrong as they came."""
    return planned(scale, asked, ("clothing1m",), (CE, M_DYR_H), (None,))


def _first_seed(asked: Asked) -> Asked:
    """A figure that shows single runs needs no others."""
    return replace(asked, seeds=1)


def fig1(scale: Scale, asked: Asked) -> list[Planned]:
    """Losses of clean and noisy samples over the epochs, under plain training and under the proposed objective."""
    return planned(scale, _first_seed(asked), CIFAR[:1], (CE, M_DYR_H), (80,))


def fig2(scale: Scale, asked: Asked) -> list[Planned]:
    """Losses early in plain training, with both mixtures."""
    return planned(scale, _first_seed(asked), CIFAR[:1], (CE_PLAIN,), (50,))


def fig3(scale: Scale, asked: Asked) -> list[Planned]:
    """Where three methods put training and validation samples."""
    return planned(scale, _first_seed(asked), CIFAR[:1], (CE, M, M_DYR_H), (80,))


def appendix_a(scale: Scale, asked: Asked) -> list[Planned]:
    """Figure 4: accuracy and AUC over the epochs, and the Gaussian mixture beside the beta mixture."""
    watched = planned(scale, asked, scale.ablated, (M_DYR_H,), USUAL)
    return watched + planned(scale, asked, scale.ablated, (GMM,), (80,))


def _ablation(name: str, *rows: Row) -> Runs:
    """M-DYR-H at 80 %, under the name that it has here, beside its changed selves."""

    def runs(scale: Scale, asked: Asked) -> list[Planned]:
        return planned(scale, asked, scale.ablated, (Row(name, M_DYR_H.method), *rows), (80,))

    return runs


def details(scale: Scale, asked: Asked) -> list[Planned]:
    """Table 2's rows by the paper's text and by the authors' code, which trains CE and M alike."""
    return planned(scale, asked, CIFAR, (M_DYR_S, RELEASED_S, M_DYR_H, RELEASED_H), USUAL)


TABLES = {
    experiment.id: experiment
    for experiment in (
        Experiment("table1", "Table 1: static and dynamic bootstrapping", table1),
        Experiment("table2", "Table 2: mixup and dynamic bootstrapping", table2),
        Experiment("table3", "Table 3: extreme noise", table3),
        Experiment("table4", "Table 4: other systems, trained alike", table4),
        Experiment("table5", "Table 5: noise that never draws the true label", table5),
        Experiment("tinyimagenet", "Table 6: TinyImageNet", tinyimagenet),
        Experiment("clothing1m", "Clothing1M: labels that are wrong as they came", clothing1m),
        Experiment(
            "frequency", "Appendix A: how often the mixture is fitted", _ablation("every epoch", EVERY_5, EVERY_HALF)
        ),
        Experiment("em-iterations", "Appendix B: EM iterations", _ablation("10 iterations", EM_5, EM_20)),
        Experiment("fixed-weights", "Appendix A: fixed weights in place of the mixture's", _ablation("mixture", FIXED)),
        Experiment("details", "Table 2 by the paper's text and by the released code", details),
    )
}
FIGURES = {
    experiment.id: experiment
    for experiment in (
        Experiment("fig1", "Figure 1: losses while training", fig1),
        Experiment("fig2", "Figure 2: the mixtures", fig2),
        Experiment("fig3", "Figure 3: embeddings", fig3),
        Experiment("appendix-a", "Figure 4: accuracy, AUC, and BMM against GMM", appendix_a),
    )
}
