"""The label table: for each sample, whether its label is wrong and which one it should have."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

VERDICTS = ("keep", "relabel", "look")
THRESHOLD = 0.5
"""A label is flagged when it is likelier wrong than right, and replaced when another is likelier than all else."""


@dataclass(frozen=True)
class LabelTable:
    """One row a sample, in the order of the data set; classes are indices into `class_names`.

    `rival` is the class that a label should be if it is wrong, and `agreement` how sure that is then;
    a higher `score` is a more suspicious label.
    """

    ids: Sequence[str]
    class_names: Sequence[str]
    given: NDArray[np.int64]
    noisy_probability: NDArray[np.float64]
    rival: NDArray[np.int64]
    agreement: NDArray[np.float64]
    loss: NDArray[np.float64]
    margin: NDArray[np.float64]
    steadiness: NDArray[np.float64]
    score: NDArray[np.float64]
    truth: NDArray[np.int64] | None = None

    @cached_property
    def verdict(self) -> NDArray[np.str_]:
        """`keep` what is likelier right than wrong; `relabel` where the rival is likelier than all else; or `look`."""
        sure = self.noisy_probability * self.agreement > THRESHOLD
        return np.where(self.noisy_probability <= THRESHOLD, "keep", np.where(sure, "relabel", "look"))

    @cached_property
    def suggested(self) -> NDArray[np.int64]:
        """The label to have: the rival where the verdict is `relabel`, and otherwise the given one."""
        return np.where(self.verdict == "relabel", self.rival, self.given)

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """How likely the suggested label is right."""
        wrong = self.noisy_probability
        return np.where(self.verdict == "relabel", wrong * self.agreement, 1 - wrong)

    def suspects(self) -> NDArray[np.int64]:
        """Rows whose label is more likely wrong than right, the most suspicious first."""
        order = np.argsort(self.rank)
        found: NDArray[np.int64] = order[self.verdict[order] != "keep"]
        return found

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """Place of each row among all, the most suspicious first; from 1."""
        return np.argsort(np.argsort(-self.score, kind="stable")) + 1
