"""The label table: for each sample, whether its label is wrong and which one it should have."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, lookup
from ..markup import html_block, html_lines, html_table
from .judge import FOUND, Judgement
from .predictions import Floats, Ints

VERDICTS = ("keep", "relabel", "look")
SURE = 0.5
"""A label is replaced when another one is likelier than all the rest."""
SHOWN = 10
"""Rows that a notebook shows."""
SHOWN_COLUMNS = ("rank", "id", "given", "suggested", "noisy_probability", "confidence", "verdict")
COLUMNS = (
    "id",
    "given",
    "noisy_probability",
    "suggested",
    "confidence",
    "loss",
    "margin",
    "steadiness",
    "verdict",
    "rank",
    "truth",
)


@dataclass(frozen=True)
class LabelTable:
    """One row per sample, in the order of the data set; classes are indices into `class_names`.

    `rival` is the class that a label should be if it is wrong, and `agreement` how sure that is then; a higher `score`
    is a more suspicious label. Labels whose P(wrong) reaches `threshold` are flagged; None flags none. Columns are read
    by name, as `table["noisy_probability"]`: `id given noisy_probability suggested confidence loss margin steadiness
    verdict rank`, and `truth` where it is known. `noise` is what is known of all labels together, as
    `summary.describe_noise` gives it.
    """

    ids: Sequence[str]
    class_names: Sequence[str]
    given: Ints
    noisy_probability: Floats
    rival: Ints
    agreement: Floats
    loss: Floats
    margin: Floats
    steadiness: Floats
    score: Floats
    truth: Ints | None = None
    threshold: float | None = SURE
    noise: dict[str, Any] | None = None

    @classmethod
    def of(
        cls,
        judgement: Judgement,
        given: Ints,
        *,
        ids: Sequence[str],
        class_names: Sequence[str],
        truth: Ints | None = None,
    ) -> "LabelTable":
        """The table of a judgement."""
        return cls(
            ids=ids,
            class_names=class_names,
            given=given,
            noisy_probability=judgement.probability,
            rival=judgement.rival,
            agreement=judgement.agreement,
            loss=judgement.loss,
            margin=judgement.margin,
            steadiness=judgement.steadiness,
            score=judgement.score,
            truth=truth,
            threshold=judgement.threshold if judgement.finding == FOUND else None,
        )

    def __len__(self) -> int:
        return len(self.given)

    def __repr__(self) -> str:
        return f"<label table of {len(self):,} samples: {self.noise['headline'] if self.noise else 'not summarised'}>"

    def _repr_html_(self) -> str:
        """What was found and the most suspicious labels, for notebooks."""
        rows = np.argsort(self.rank)[:SHOWN]
        shown = zip(*(self[name][rows].tolist() for name in SHOWN_COLUMNS), strict=True)
        found = self.noise["headline"] if self.noise else "Not summarised."
        return html_block(
            html_lines(f"Label table of {len(self):,} samples, {len(self.class_names):,} classes", found),
            html_table(SHOWN_COLUMNS, shown, below=f"the {len(rows):,} most suspicious of {len(self):,}"),
        )

    @property
    def noise_rate(self) -> float:
        """Estimated share of wrong labels."""
        return float(self._described("rate"))

    @property
    def noise_interval(self) -> tuple[float, float]:
        """The range in which that share should lie; what the judge assumes is part of it, and nothing is guaranteed."""
        low, high = self._described("interval")
        return float(low), float(high)

    @property
    def finding(self) -> str:
        """`wrong labels found`, `looks clean` or `cannot judge`."""
        return str(self._described("finding"))

    def summary(self) -> str:
        """What was found, in sentences for everybody."""
        return str(self._described("headline"))

    def _described(self, key: str) -> Any:
        if self.noise is None:
            raise InputError("this label table was made without a summary of its noise; labelmend.judge gives one")
        return self.noise[key]

    @property
    def wrong(self) -> NDArray[np.bool_] | None:
        """Which labels are really wrong, where the truth is known."""
        return None if self.truth is None else np.asarray(self.given != self.truth)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [name for name in COLUMNS if name != "truth" or self.truth is not None]

    def __getitem__(self, column: str) -> NDArray[Any]:
        """A column; classes by their names."""
        lookup("column", column, dict.fromkeys(self.columns))
        if column == "id":
            return np.asarray(self.ids, dtype=object)
        values: NDArray[Any] = getattr(self, column)
        if column in ("given", "suggested", "truth"):
            values = np.asarray(self.class_names, dtype=object)[values]
        return values

    def to_pandas(self, rows: Any = slice(None)) -> Any:
        """The table, or these rows of it, as a DataFrame."""
        import pandas

        return pandas.DataFrame({name: self[name][rows] for name in self.columns}, index=np.arange(len(self))[rows])

    @cached_property
    def flagged(self) -> NDArray[np.bool_]:
        """Labels that look wrong."""
        if self.threshold is None:
            return np.zeros(len(self), dtype=bool)
        found: NDArray[np.bool_] = self.noisy_probability >= self.threshold
        return found

    @cached_property
    def verdict(self) -> NDArray[np.str_]:
        """`keep` what is not flagged; `relabel` where the rival is likelier than all else; or `look`."""
        sure = self.noisy_probability * self.agreement > SURE
        return np.where(self.flagged, np.where(sure, "relabel", "look"), "keep")

    @cached_property
    def suggested(self) -> NDArray[np.int64]:
        """The label to have: the rival where the verdict is `relabel`, and otherwise the given one."""
        return np.where(self.verdict == "relabel", self.rival, self.given)

    @cached_property
    def confidence(self) -> Floats:
        """How likely the suggested label is right."""
        wrong = self.noisy_probability
        return np.where(self.verdict == "relabel", wrong * self.agreement, 1 - wrong)

    def suspects(self) -> NDArray[np.int64]:
        """Rows of the flagged labels, the most suspicious first."""
        order = np.argsort(self.rank)
        found: NDArray[np.int64] = order[self.verdict[order] != "keep"]
        return found

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """Place of each row among all, the most suspicious first; from 1."""
        return np.argsort(np.argsort(-self.score, kind="stable")) + 1
