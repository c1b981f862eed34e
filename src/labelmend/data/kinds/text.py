"""Texts: short or long, in any language; trained on as the rows that an encoder makes of them, and shown as text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ...errors import InputError
from ..preflight import Problem
from ..text import composed
from .augment import Augment
from .normaliser import Normaliser

if TYPE_CHECKING:
    from . import Inputs

LONGEST_TEXT = 1_000_000
SHOWN = 2_000
"""Characters of a text that are kept for people to see."""


@dataclass(frozen=True)
class Texts:
    """Texts in memory."""

    values: Sequence[str]
    shape: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> str:
        return self.values[row]

    def take(self, rows: Sequence[int]) -> "Texts":
        """Only these texts, in this order."""
        return replace(self, values=[self.values[row] for row in rows])


@dataclass(frozen=True)
class Text:
    """Samples that are texts; `columns` has the name of their column, if they come from a table."""

    columns: Sequence[str] = ()
    flips: bool = False
    name: str = "texts"

    def problems(self, inputs: "Inputs", locations: Sequence[str]) -> list[Problem]:
        """Texts without a character that is seen, and such as are whole books."""
        assert isinstance(inputs, Texts)
        found = []
        for text, location in zip(inputs.values, locations, strict=True):
            if len(text) > LONGEST_TEXT:
                found.append(Problem(location, f"a text of {len(text):,} characters; at most {LONGEST_TEXT:,}"))
            elif not any(char.isprintable() and not char.isspace() for char in text):
                found.append(Problem(location, "an empty text"))
        return found

    def normaliser(self, inputs: "Inputs") -> Normaliser:
        """None: only the rows that are made of texts have statistics."""
        raise InputError("texts are trained on as rows of numbers; make them with labelmend.data.encode first")

    def default_nets(self, shape: Sequence[int], *, on_gpu: bool) -> tuple[Sequence[str], str]:
        """A linear classifier of the rows."""
        return ("linear",), "the samples are texts"

    def augmentation(self, shape: Sequence[int], asked: str, *, gentle: bool) -> tuple[Augment | None, str]:
        """None."""
        return None, "none: texts are used as they are"

    def shown(self, inputs: Tensor, originals: "Inputs | None", rows: Sequence[int]) -> dict[str, list[Any]]:
        """The beginning of each text."""
        return {"text": [composed(originals[row])[:SHOWN] for row in rows] if isinstance(originals, Texts) else []}

    def shown_columns(self, originals: "Inputs | None") -> Sequence[str]:
        """None: a text is not cut into cells."""
        return ()

    def described(self) -> dict[str, Any]:
        """Which column of a table holds the texts."""
        return {"text_column": self.columns[0]} if self.columns else {}
