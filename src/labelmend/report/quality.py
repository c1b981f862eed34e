"""How good the judgement was, where the truth is known: calibration of P(wrong), quality of the flags and the order."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
TEN = 10
SIGMAS = 1.96


@dataclass(frozen=True)
class Bins:
    """Labels in equal bins of P(wrong): how many, their mean P(wrong), and the share that is really wrong."""

    edges: Floats
    counts: NDArray[np.int64]
    promised: Floats
    wrong: Floats

    @property
    def calibration_error(self) -> float:
        """The expected calibration error: the mean gap between promised and real share, weighted by the counts."""
        return float((self.counts * np.abs(self.promised - self.wrong)).sum() / max(self.counts.sum(), 1))

    def intervals(self) -> Floats:
        """Where the share of wrong labels of each bin lies with 95 % confidence (Wilson), [2, bins]."""
        n, share = np.maximum(self.counts, 1), self.wrong
        centre = share + SIGMAS**2 / (2 * n)
        half = SIGMAS * np.sqrt(share * (1 - share) / n + SIGMAS**2 / (4 * n**2))
        return np.clip(np.stack([centre - half, centre + half]) / (1 + SIGMAS**2 / n), 0, 1)


def reliability_bins(probability: Floats, wrong: Flags, bins: int = TEN) -> Bins:
    """Labels by their P(wrong), in equal bins."""
    at = np.minimum((probability * bins).astype(int), bins - 1)
    counts = np.bincount(at, minlength=bins)
    promised, real = (
        np.bincount(at, weights=values, minlength=bins) / np.maximum(counts, 1) for values in (probability, wrong)
    )
    return Bins(np.linspace(0, 1, bins + 1), counts, promised, real)


def flag_quality(flagged: Flags, wrong: Flags) -> dict[str, float | None]:
    """Precision, recall and F1 of the flags; None where nothing is flagged or, for the recall, nothing is wrong."""
    right, flags, errors = (int(found.sum()) for found in (flagged & wrong, flagged, wrong))
    return {
        "precision": right / flags if flags else None,
        "recall": right / errors if errors else None,
        "f1": 2 * right / (flags + errors) if flags else None,
    }


def risks(rank: NDArray[np.int64], wrong: Flags) -> tuple[Floats, Floats]:
    """The share of wrong labels among the k least doubtful, for k from 1 to n; and the same for a perfect order."""
    number = np.arange(1, len(wrong) + 1)
    return np.cumsum(wrong[np.argsort(-rank)]) / number, np.cumsum(np.sort(wrong)) / number
