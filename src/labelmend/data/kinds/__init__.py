"""Kinds of data: how each is decoded, normalised, augmented and shown, and which network it gets by default."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ...lazy import lazily

if TYPE_CHECKING:
    from torch import Tensor

    from ..preflight import Problem
    from ..table_encoding import TableRows
    from .augment import Augment
    from .images import ImageFiles
    from .normaliser import Normaliser
    from .text import Texts

    Inputs: TypeAlias = Tensor | ImageFiles | TableRows | Texts
    """Samples in memory, in files that are decoded when needed, or a table or texts that are not encoded yet."""


class Kind(Protocol):
    """What the rest of the library asks of a kind of data. Whatever depends on the kind is answered here."""

    @property
    def name(self) -> str:
        """The word for it in run.json and model.json."""

    @property
    def columns(self) -> Sequence[str]:
        """Names of the values of a sample, where they have names."""

    def problems(self, inputs: "Inputs", locations: Sequence[str]) -> "list[Problem]":
        """Samples that cannot be trained on, as far as that can be told without decoding them."""

    def normaliser(self, inputs: "Inputs") -> "Normaliser":
        """Statistics of the training inputs."""

    @property
    def flips(self) -> bool:
        """Whether a mirrored sample means the same."""

    def default_nets(self, shape: Sequence[int], *, on_gpu: bool) -> tuple[Sequence[str], str]:
        """Networks for samples of this shape, the cheapest first, of which the time decides; and why these."""

    def augmentation(self, shape: Sequence[int], asked: str, *, gentle: bool) -> "tuple[Augment | None, str]":
        """How training views are made, as asked ("auto" leaves it open), and why; `gentle` moves them half as far."""

    def shown(self, inputs: "Tensor", originals: "Inputs | None", rows: Sequence[int]) -> dict[str, list[Any]]:
        """What a person sees of these samples, `inputs` being theirs: a column of pictures, texts, values or cells."""

    def shown_columns(self, originals: "Inputs | None") -> Sequence[str]:
        """Names of the values or cells that a person sees of a sample, where they have names."""

    def described(self) -> dict[str, Any]:
        """What run.json says of the data beside its shape, as plain values."""


__all__ = ["Augment", "Kind", "Normaliser"]

__getattr__ = lazily(__name__, {"Augment": "augment", "Normaliser": "normaliser"})
