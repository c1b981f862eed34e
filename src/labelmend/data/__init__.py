"""From what the user has to what a method trains on."""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .noise import inject
    from .samples import NoisyLabels, Samples
    from .sources import SourceOptions, open_source

__all__ = ["NoisyLabels", "Samples", "SourceOptions", "inject", "open_source"]

__getattr__ = lazily(
    __name__,
    {
        "NoisyLabels": "samples",
        "Samples": "samples",
        "SourceOptions": "sources",
        "inject": "noise",
        "open_source": "sources",
    },
)
