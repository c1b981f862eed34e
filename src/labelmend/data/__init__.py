"""From what the user has to what a method trains on."""

from .noise import inject
from .samples import Dataset, NoisyLabels, Split
from .sources import SourceOptions, open_source

__all__ = ["Dataset", "NoisyLabels", "SourceOptions", "Split", "inject", "open_source"]
