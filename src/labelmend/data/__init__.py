"""From what the user has to what a method trains on."""

from .noise import inject
from .samples import NoisyLabels, Samples
from .sources import SourceOptions, open_source

__all__ = ["NoisyLabels", "Samples", "SourceOptions", "inject", "open_source"]
