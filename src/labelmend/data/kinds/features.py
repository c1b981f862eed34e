"""Rows of numbers: tables and embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ..preflight import Problem
from .augment import Augment
from .normaliser import Normaliser

if TYPE_CHECKING:
    from .images import ImageFiles
    from .text import Texts


@dataclass(frozen=True)
class Features:
    """Rows of numbers, float32 [N, columns]; the columns may have names."""

    columns: Sequence[str] = ()
    flips: bool = False
    name: str = "features"

    def problems(self, inputs: "Tensor | ImageFiles | Texts", locations: Sequence[str]) -> list[Problem]:
        """Rows with a gap or an infinity."""
        assert isinstance(inputs, Tensor)
        rows = (~inputs.isfinite()).any(dim=1).nonzero()[:, 0].tolist()
        return [Problem(locations[row], "a missing or infinite feature") for row in rows]

    def normaliser(self, inputs: "Tensor | ImageFiles | Texts") -> Normaliser:
        """Mean and standard deviation of each column."""
        assert isinstance(inputs, Tensor)
        return Normaliser.from_moments(inputs.double().mean(dim=0), inputs.double().std(dim=0, correction=0))

    def default_nets(self, shape: Sequence[int], *, on_gpu: bool) -> tuple[Sequence[str], str]:
        """A multilayer perceptron."""
        return ("mlp",), f"the samples are rows of {shape[0]} features"

    def augmentation(self, shape: Sequence[int], asked: str, *, gentle: bool) -> tuple[Augment | None, str]:
        """None."""
        return None, "none: feature rows are used as they are"

    def shown(
        self, inputs: Tensor, originals: "ImageFiles | Texts | None", rows: Sequence[int]
    ) -> dict[str, list[Any]]:
        """The values of each row."""
        return {"features": inputs.tolist()}
