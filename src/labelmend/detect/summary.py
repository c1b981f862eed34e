"""What the label table says of the data set as a whole: noise rate, classes, confusion, and how far to trust it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..markup import html_block, html_facts, html_lines, html_table
from .judge import CLEAN, FOUND, UNKNOWN, Judgement
from .table import LabelTable

ADVICE = (
    "A stronger network would help: more samples; features of a pretrained network (the extra photos or text); or more "
    "time for images without them (--time). Predictions of your own model can be judged with labelmend judge."
)


MOST_PAIRED = 1_000
"""Classes up to which the transition matrix is given: of 5,000 classes it would have 25 million entries."""
BINS = 10
CLASSES_SHOWN = 10
"""Classes that a notebook shows."""


class NoiseSummary(dict[str, Any]):
    """What is known of all labels together, by the names that noise.json has; notebooks show it as a page."""

    def _repr_html_(self) -> str:
        samples = sum(entry["samples"] for entry in self["classes"])
        low, high = self["interval"]
        facts = [
            ("estimated share of wrong labels", f"{self['rate']:.1%}, between {low:.1%} and {high:.1%}"),
            ("flagged", f"{self['flagged']:,}: {self['relabel']:,} to relabel, {self['look']:,} to look at"),
        ]
        worst = sorted(self["classes"], key=lambda entry: -entry["rate"])[:CLASSES_SHOWN]
        classes = [(entry["name"], entry["samples"], f"{entry['rate']:.1%}", entry["flagged"]) for entry in worst]
        finding = str(self.get("finding") or "judged")
        return html_block(
            html_lines(finding[:1].upper() + finding[1:], headline(self, samples), self.get("advice") or ""),
            html_facts(facts),
            html_table(
                ("class", "samples", "wrong", "flagged"),
                classes,
                below=f"the {len(worst):,} noisiest of {len(self['classes']):,} classes",
            ),
        )


def summarised(table: LabelTable, judgement: Judgement) -> LabelTable:
    """The table of a judgement, with what is known of all labels together."""
    return replace(table, noise=describe_noise(table, judgement))


def describe_noise(table: LabelTable, judgement: Judgement) -> NoiseSummary:
    """The content of `noise.json`."""
    verdicts, flagged = table.verdict, table.flagged
    agreed = None
    if len(table.class_names) <= MOST_PAIRED:
        agreed = np.round(transition(table) if judgement.transition is None else judgement.transition, 5).tolist()
    described = {
        "finding": judgement.finding,
        "headline": "",
        "advice": ADVICE if judgement.finding == UNKNOWN else None,
        "evidence": judgement.finding == FOUND,
        "reason": judgement.reason,
        "rate": judgement.rate,
        "interval": list(judgement.interval),
        "threshold": judgement.threshold,
        "flagged": int(flagged.sum()),
        "relabel": int((verdicts == "relabel").sum()),
        "look": int((verdicts == "look").sum()),
        "expected_precision": float(table.noisy_probability[flagged].mean()) if flagged.any() else None,
        "fitted": judgement.fitted,
        "classes": class_rates(table),
        "transition": agreed,
    }
    return NoiseSummary(described | {"headline": headline(described, len(table))})


def headline(noise: Mapping[str, Any], samples: int) -> str:
    """What was found, in sentences for everybody; version 0.1 wrote no finding."""
    finding = noise.get("finding") or (FOUND if noise["evidence"] else CLEAN)
    if finding == FOUND:
        low, high = noise["interval"]
        right = noise["expected_precision"]
        really = "" if right is None else f"; about {right:.0%} of the flagged labels should really be wrong"
        return (
            f"About {noise['rate']:.1%} of {samples:,} labels look wrong (between {low:.1%} and {high:.1%}): "
            f"{noise['flagged']:,} are flagged, {noise['relabel']:,} to relabel and {noise['look']:,} to look at"
            f"{really}."
        )
    if finding == CLEAN:
        return f"The labels look clean: no evidence of wrong ones among {samples:,}, so every label is kept."
    doubtful = "The most doubtful labels are ranked, and none is flagged."
    return f"Whether labels are wrong cannot be told, because {noise['reason']}. {doubtful}"


def detection_quality(table: LabelTable) -> dict[str, float] | None:
    """How well wrong labels were found, where the truth is known.

    `calibration_error` is the mean distance between P(wrong) and the share of wrong labels, over ten bins of P(wrong).
    """
    wrong, flagged = table.wrong, table.flagged
    if wrong is None:
        return None
    found = int((wrong & flagged).sum())
    bins = np.minimum((table.noisy_probability * BINS).astype(int), BINS - 1)
    apart = np.bincount(bins, weights=table.noisy_probability - wrong, minlength=BINS)
    return {
        "precision": found / max(int(flagged.sum()), 1),
        "recall": found / max(int(wrong.sum()), 1),
        "f1": 2 * found / max(int(flagged.sum()) + int(wrong.sum()), 1),
        "calibration_error": float(np.abs(apart).sum() / len(table)),
    }


def class_rates(table: LabelTable) -> list[dict[str, Any]]:
    """For each class: how many samples are labelled so, which share of them wrongly, and how many are flagged."""
    classes = len(table.class_names)
    samples = np.bincount(table.given, minlength=classes)
    wrong = np.bincount(table.given, weights=table.noisy_probability, minlength=classes)
    flagged = np.bincount(table.given[table.flagged], minlength=classes)
    return [
        {"name": name, "samples": int(n), "rate": float(w / n) if n else 0.0, "flagged": int(f)}
        for name, n, w, f in zip(table.class_names, samples, wrong, flagged, strict=True)
    ]


def transition(table: LabelTable) -> NDArray[np.float64]:
    """Estimated P(labelled j | should be i), [C, C].

    A sample counts with 1 - P(wrong) for its given class, with P(wrong) times the agreement on its rival for that one,
    and with the rest for the remaining classes alike. A class to which no sample should belong keeps its labels.
    """
    classes = len(table.class_names)
    wrong, agreement = table.noisy_probability, table.agreement
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
