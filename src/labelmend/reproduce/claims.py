"""What the paper says of its methods: each statement as the runs that decide it and what they must come to."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from .catalogue import (
    CE,
    CIFAR,
    DY_H,
    DY_S,
    EM_5,
    EM_20,
    EVERY_5,
    EVERY_HALF,
    FIXED,
    GMM,
    M_DYR_H,
    M_DYR_S,
    MD_DYR_H,
    MD_DYR_SH,
    ST_H,
    WITHOUT_R,
    Asked,
    Experiment,
    M,
    Planned,
    planned,
)
from .protocol import Row, Scale
from .runs import Result

LITTLE = 2.0
"""Points of accuracy up to which a change counts as little."""
Measure = Callable[[Result], float | None]


@dataclass(frozen=True)
class Needed:
    """A run that decides a claim."""

    row: Row
    noise: int
    kind: str = "symmetric"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper: what is measured on a run, or by how much it is above another run's, in which bounds.

    Accuracies are measured in points.
    """

    id: str
    says: str
    where: str
    measure: Measure
    first: Needed
    second: Needed | None = None
    least: float = -math.inf
    most: float = math.inf
    digits: int = 1

    def planned(self, scale: Scale, asked: Asked, data: str) -> list[Planned]:
        """Its runs on one data set: those of the first, seed by seed, and then those of the second."""
        needed = [need for need in (self.first, self.second) if need is not None]
        found = [planned(scale, asked, (data,), (need.row,), (need.noise,), kind=need.kind) for need in needed]
        return [run for runs in found for run in runs] if all(found) else []

    def effect(self, results: list[Result]) -> float | None:
        """What is measured on the first run, less that on the second; None if a run diverged."""
        values = [self.measure(result) for result in results]
        if any(value is None for value in values):
            return None
        first, *second = (value for value in values if value is not None)
        return first - sum(second)

    @property
    def wanted(self) -> str:
        """What the effect must come to, in words."""
        if self.least == -self.most:
            return f"within ±{self.most:g}"
        if self.least == 0:
            return "above 0"
        return f"at least {self.least:g}" if math.isfinite(self.least) else f"at most {self.most:g}"


def last(result: Result) -> float | None:
    """Accuracy after the last epoch."""
    return None if result.last is None else 100 * result.last


def dropped(result: Result) -> float | None:
    """How far the last epoch is under the best."""
    return None if result.best is None or result.last is None else 100 * (result.best - result.last)


def largest(result: Result) -> float | None:
    """Percentage of the test samples in the network's favourite class."""
    return None if result.largest is None else 100 * result.largest


def auc(result: Result) -> float | None:
    """How well the noise model tells wrong labels from right ones."""
    return result.auc


def _above(id: str, says: str, where: str, first: Row, second: Row, noise: int, measure: Measure = last) -> Claim:
    digits = 3 if measure is auc else 1
    return Claim(id, says, where, measure, Needed(first, noise), Needed(second, noise), least=0.0, digits=digits)


def _little(id: str, says: str, where: str, changed: Row) -> Claim:
    return Claim(id, says, where, last, Needed(changed, 80), Needed(M_DYR_H, 80), -LITTLE, LITTLE)


def _memorises(noise: int) -> Claim:
    says = f"CE memorises: at {noise} % it ends at least 10 points under its best"
    return Claim(f"memorises-{noise}", says, "Table 2", dropped, Needed(CE, noise), least=10.0)


def _steady(noise: int) -> Claim:
    says = f"M-DYR-H ends within 1.5 points of its best at {noise} %"
    return Claim(f"steady-{noise}", says, "Table 2", dropped, Needed(M_DYR_H, noise), most=1.5)


def _tells(noise: int) -> Claim:
    says = f"the mixture's AUC ends above 0.98 at {noise} %"
    return Claim(f"auc-{noise}", says, "Fig. 4b", auc, Needed(M_DYR_H, noise), least=0.98, digits=3)


CLAIMS = (
    _memorises(50),
    _memorises(80),
    _above("dy-h-above-st-h", "DY-H ends above ST-H at 80 %", "Table 1", DY_H, ST_H, 80),
    _above("hard-above-soft", "hard above soft: DY-H ends above DY-S at 80 %", "Table 1", DY_H, DY_S, 80),
    _above("hard-above-soft-mixup", "the same with mixup: M-DYR-H above M-DYR-S", "Table 2", M_DYR_H, M_DYR_S, 80),
    _above("mixup-above-ce-20", "mixup ends above CE at 20 %", "Table 2", M, CE, 20),
    _above("mixup-above-ce-50", "mixup ends above CE at 50 %", "Table 2", M, CE, 50),
    _above("mixup-above-ce-80", "mixup ends above CE at 80 %", "Table 2", M, CE, 80),
    _above("m-dyr-h-above-mixup", "M-DYR-H ends above mixup at 80 %", "Table 2", M_DYR_H, M, 80),
    _steady(20),
    _steady(50),
    _steady(80),
    _above("sh-above-h-90", "MD-DYR-SH ends above M-DYR-H at 90 %", "Table 3", MD_DYR_SH, M_DYR_H, 90),
    _above(
        "sh-steadier-90",
        "M-DYR-H falls further from its best than MD-DYR-SH at 90 %",
        "Table 3",
        M_DYR_H,
        MD_DYR_SH,
        90,
        dropped,
    ),
    _above("md-above-m-90", "dynamic mixup: MD-DYR-H ends above M-DYR-H at 90 %", "Table 3", MD_DYR_H, M_DYR_H, 90),
    _above("r-helps-80", "M-DYR-H ends higher with R than without at 80 %", "Sec. 3.4", M_DYR_H, WITHOUT_R, 80),
    _above("r-helps-90", "M-DYR-H ends higher with R than without at 90 %", "Sec. 3.4", M_DYR_H, WITHOUT_R, 90),
    _above(
        "collapse-without-r",
        "without R more of the predictions fall on one class at 90 %",
        "Sec. 3.4",
        WITHOUT_R,
        M_DYR_H,
        90,
        largest,
    ),
    _above("bmm-above-gmm-auc", "BMM above GMM in AUC at 80 %", "Fig. 4c", M_DYR_H, GMM, 80, auc),
    _above("bmm-above-gmm", "BMM above GMM in last accuracy at 80 %", "App. A", M_DYR_H, GMM, 80),
    _above("mixture-above-fixed", "the mixture above fixed weights (0.8 / 0.2) at 80 %", "App. A", M_DYR_H, FIXED, 80),
    _little("every-5", "fitting every 5 epochs changes little at 80 %", "App. A", EVERY_5),
    _little("every-half", "fitting every 0.5 epochs changes little at 80 %", "App. A", EVERY_HALF),
    _little("em-5", "5 EM iterations change little at 80 %", "App. B", EM_5),
    _little("em-20", "20 EM iterations change little at 80 %", "App. B", EM_20),
    _tells(20),
    _tells(50),
    _tells(80),
    Claim(
        "harmless-at-0",
        "without noise M-DYR-H ends at most 2 points under CE",
        "Table 2",
        last,
        Needed(CE, 0),
        Needed(M_DYR_H, 0),
        most=2.0,
    ),
    Claim(
        "excluding-is-harder",
        "M-DYR-H ends lower at 80 % where noise never draws the true label",
        "Tables 2, 5",
        last,
        Needed(M_DYR_H, 80),
        Needed(M_DYR_H, 80, "symmetric-excl"),
        least=0.0,
    ),
)


def claimed(scale: Scale, asked: Asked) -> list[Planned]:
    """Every run that some claim needs, each once."""
    every = [run for claim in CLAIMS for data in CIFAR for run in claim.planned(scale, asked, data)]
    return list({run.key: run for run in every}.values())


EXPERIMENT = Experiment("claims", "What the paper says, checked", claimed)
