"""What the label table says of the data set as a whole: noise rate, classes, confusion, and how far to trust it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .judge import Judgement
from .table import THRESHOLD, LabelTable


def describe_noise(table: LabelTable, judgement: Judgement) -> dict[str, Any]:
    """The content of `noise.json`."""
    flagged = table.verdict != "keep"
    return {
        "evidence": judgement.reason is None,
        "reason": judgement.reason,
        "rate": judgement.rate,
        "interval": list(judgement.interval),
        "threshold": THRESHOLD,
        "flagged": int(flagged.sum()),
        "relabel": int((table.verdict == "relabel").sum()),
        "look": int((table.verdict == "look").sum()),
        "expected_precision": float(table.noisy_probability[flagged].mean()) if flagged.any() else None,
        "classes": class_rates(table),
        "transition": np.round(transition(table, judgement.agreement.cpu().numpy()), 5).tolist(),
    }


def class_rates(table: LabelTable) -> list[dict[str, Any]]:
    """For each class: how many samples are labelled so, which share of them wrongly, and how many are flagged."""
    classes = len(table.class_names)
    samples = np.bincount(table.given, minlength=classes)
    wrong = np.bincount(table.given, weights=table.noisy_probability, minlength=classes)
    flagged = np.bincount(table.given[table.verdict != "keep"], minlength=classes)
    return [
        {"name": name, "samples": int(n), "rate": float(w / n) if n else 0.0, "flagged": int(f)}
        for name, n, w, f in zip(table.class_names, samples, wrong, flagged, strict=True)
    ]


def transition(table: LabelTable, agreement: NDArray[np.float64]) -> NDArray[np.float64]:
    """Estimated P(labelled j | should be i), [C, C].

    A sample counts with 1 - P(wrong) for its given class, with P(wrong) times the agreement on its rival for that one,
    and with the rest for the remaining classes alike. A class to which no sample should belong keeps its labels.
    """
    classes = len(table.class_names)
    wrong = table.noisy_probability
    counts = np.zeros((classes, classes))
    np.add.at(counts, (table.given, table.given), 1 - wrong)
    sure = agreement if classes > 2 else np.ones_like(agreement)
    np.add.at(counts, (table.rival, table.given), wrong * sure)
    if classes > 2:
        rest = np.bincount(table.given, weights=wrong * (1 - sure), minlength=classes) / (classes - 2)
        counts += rest
        spread = wrong * (1 - sure) / (classes - 2)
        np.add.at(counts, (table.given, table.given), -spread)
        np.add.at(counts, (table.rival, table.given), -spread)
    total = counts.sum(axis=1, keepdims=True)
    return np.where(total > 0, counts / np.where(total > 0, total, 1), np.eye(classes))
