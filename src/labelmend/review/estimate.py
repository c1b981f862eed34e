"""How many labels are wrong, by what people verified."""

from typing import Any

import numpy as np

from ..run.directory import RunDirectory
from ..run.noise import read_noise
from .answers import Answers
from .labels import Ints, JudgedLabels


class Estimate:
    """The estimate of the noise after the answers so far."""

    def __init__(self, run: RunDirectory, labels: JudgedLabels, answers: Answers) -> None:
        self.labels = labels
        self.answers = answers
        self._noise = read_noise(run)

    def heard(self) -> None:
        """There may be new answers."""

    def teaching(self) -> Ints:
        """Rows that teach most."""
        return np.zeros(0, dtype=np.int64)

    def told(self, wish: float) -> dict[str, Any]:
        """For the page."""
        return {"rate": self._noise["rate"], "interval": self._noise["interval"], "rest": None, "until": None}
