"""From what the user has to what a method trains on."""

from .dataset import Dataset, NoisyLabels, Split
from .noise import inject
from .sources import SourceOptions, open_source

__all__ = ["Dataset", "NoisyLabels", "SourceOptions", "Split", "inject", "open_source"]
