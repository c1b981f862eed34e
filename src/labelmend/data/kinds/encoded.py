"""Features that an encoder computed: trained on as rows of numbers, shown as what they were made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .features import Features
from .normaliser import Normaliser

if TYPE_CHECKING:
    from ..text import TextEncoder
    from . import Inputs, Kind


@dataclass(frozen=True)
class Encoding:
    """What rows of features were made of, and how.

    `identity` names the encoder with its weights; it is empty where the rows are the user's own. `shape` is that of one
    sample as the encoder takes it, and `mirrored` tells that features are the mean over a sample and its mirror image.
    """

    encoder: str
    identity: str = ""
    shape: tuple[int, ...] = ()
    mirrored: bool = False

    @property
    def from_file(self) -> bool:
        """Whether the rows are the user's own, so that labelmend cannot compute them for other samples."""
        return not self.identity


@dataclass(frozen=True)
class Encoded(Features):
    """Rows of features of samples that are of another kind to a person: `of` says of which.

    `fitted` is the encoder, where it was fitted to the texts of this run and belongs to its model.
    """

    of: "Kind | None" = None
    encoding: Encoding | None = None
    fitted: "TextEncoder | None" = None

    def normaliser(self, inputs: "Inputs") -> Normaliser:
        """Mean and standard deviation of each column; of fitted columns, whose scales mean something, one for all."""
        if self.fitted is None:
            return super().normaliser(inputs)
        assert isinstance(inputs, Tensor)
        variance, mean = torch.var_mean(inputs.double(), dim=0, correction=0)
        return Normaliser.from_moments(mean, variance.mean().sqrt().expand_as(mean))

    def shown(self, inputs: Tensor, originals: "Inputs | None", rows: Sequence[int]) -> dict[str, list[Any]]:
        """The original samples, as their own kind shows them; `inputs` are theirs."""
        return super().shown(inputs, originals, rows) if self.of is None else self.of.shown(inputs, originals, rows)

    def shown_columns(self, originals: "Inputs | None") -> Sequence[str]:
        """Those of the original samples."""
        return self.columns if self.of is None else self.of.shown_columns(originals)
