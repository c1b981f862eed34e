"""Ways to train on wrong labels."""

from .registry import RegisteredMethod, find, method, methods

__all__ = ["RegisteredMethod", "find", "method", "methods"]
