"""Ways to train on wrong labels."""

from .registry import Entry, find, method, methods

__all__ = ["Entry", "find", "method", "methods"]
