"""From what the user has to what a method trains on."""

from .dataset import Dataset, NoisyLabels, Split
from .noise import inject
from .sources import open_source

__all__ = ["Dataset", "NoisyLabels", "Split", "inject", "open_source"]
