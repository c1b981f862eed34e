"""Rows of numbers: tables and embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..preflight import Problem
from .augment import Augment
from .normaliser import Normaliser

if TYPE_CHECKING:
    from . import Inputs

COUNTED_AT_ONCE = 1 << 26
"""Numbers whose moments are taken together; of more, some columns at a time, so that memory lasts."""


@dataclass(frozen=True)
class Features:
    """Rows of numbers, float32 [N, columns]; the columns may have names."""

    columns: Sequence[str] = ()
    flips: bool = False
    name: str = "features"

    def problems(self, inputs: "Inputs", locations: Sequence[str]) -> list[Problem]:
        """Rows with a gap or an infinity."""
        assert isinstance(inputs, Tensor)
        rows = (~inputs.isfinite()).any(dim=1).nonzero()[:, 0].tolist()
        return [Problem(locations[row], "a missing or infinite feature") for row in rows]

    def normaliser(self, inputs: "Inputs") -> Normaliser:
        """Mean and standard deviation of each column."""
        assert isinstance(inputs, Tensor)
        together = inputs.shape[1] if inputs.numel() <= COUNTED_AT_ONCE else max(1, COUNTED_AT_ONCE // len(inputs))
        moments = [
            (part.double().mean(dim=0), part.double().std(dim=0, correction=0))
            for part in torch.split(inputs, together, dim=1)
        ]
        mean, std = (torch.cat(values) for values in zip(*moments, strict=True))
        return Normaliser.from_moments(mean, std)

    def default_nets(self, shape: Sequence[int], *, on_gpu: bool) -> tuple[Sequence[str], str]:
        """A multilayer perceptron."""
        return ("mlp",), f"the samples are rows of {shape[0]} features"

    def augmentation(self, shape: Sequence[int], asked: str, *, gentle: bool) -> tuple[Augment | None, str]:
        """None."""
        return None, "none: feature rows are used as they are"

    def shown(self, inputs: Tensor, originals: "Inputs | None", rows: Sequence[int]) -> dict[str, list[Any]]:
        """The values of each row."""
        return {"features": inputs.tolist()}

    def shown_columns(self, originals: "Inputs | None") -> Sequence[str]:
        """Those of the features."""
        return self.columns

    def described(self) -> dict[str, Any]:
        """Nothing: the shape says all."""
        return {}
