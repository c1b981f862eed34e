"""Which classes are confused: the heat map, the worst pairs and the noise of each class."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .read import Findings

MOST_CLASSES = 30
MOST_PAIRS = 8
LEAST_SHARE = 0.005
MOST_RATES = 200


def confusion(findings: Findings) -> dict[str, Any] | None:
    """The content of the section about classes; no heat map and no pairs without transitions, None without flags."""
    if not findings.flagged.any():
        return None
    noise, names = findings.noise, findings.classes
    rates = sorted(noise["classes"], key=lambda row: (-row["rate"], -row["flagged"]))
    shown: dict[str, Any] = {"rates": rates[:MOST_RATES], "classes": len(names), "names": [], "rows": [], "pairs": []}
    if not noise["transition"]:
        return shown
    transition = np.asarray(noise["transition"], dtype=np.float64)
    chosen = noisiest(transition)
    part = transition[np.ix_(chosen, chosen)]
    return shown | {
        "names": [names[i] for i in chosen],
        "rows": shades(part),
        "pairs": worst_pairs(transition, names, _flagged_pairs(findings)),
    }


def noisiest(transition: NDArray[np.float64]) -> list[int]:
    """All classes if there are few; else the 30 with most wrong labels in or out, in the order of the data."""
    if len(transition) <= MOST_CLASSES:
        return list(range(len(transition)))
    wrong = transition * (1 - np.eye(len(transition)))
    worst = np.argsort(-(wrong.sum(axis=0) + wrong.sum(axis=1)), kind="stable")[:MOST_CLASSES]
    return sorted(worst.tolist())


def shades(part: NDArray[np.float64]) -> list[list[dict[str, Any]]]:
    """The share and the colour strength, 0 to 1, of each cell; wrong labels are scaled by the largest of them."""
    inside = np.eye(len(part), dtype=bool)
    worst = max(float(part[~inside].max(initial=0)), 0.15)
    strength = np.where(inside, part, np.sqrt(np.clip(part / worst, 0, 1)))
    return [
        [{"share": share, "strength": round(deep, 3)} for share, deep in zip(*row, strict=True)]
        for row in zip(part.tolist(), strength.tolist(), strict=True)
    ]


def worst_pairs(
    transition: NDArray[np.float64], names: list[str], flagged: NDArray[np.int64]
) -> list[tuple[str, str, float, int]]:
    """(class it should be, label it got, share of that class, flagged samples), the greatest share first."""
    wrong = transition * (1 - np.eye(len(transition)))
    order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_PAIRS]
    cells = [divmod(int(cell), len(wrong)) for cell in order]
    found = [(names[i], names[j], float(wrong[i, j]), int(flagged[i, j])) for i, j in cells]
    return [pair for pair in found if pair[2] >= LEAST_SHARE]


def _flagged_pairs(findings: Findings) -> NDArray[np.int64]:
    classes, flagged = len(findings.classes), findings.flagged
    cells = findings.column("suggested")[flagged] * classes + findings.column("given")[flagged]
    return np.bincount(cells, minlength=classes * classes).reshape(classes, classes)
