"""labelmend: train on wrong labels, and get them fixed."""

from typing import Any

from .errors import InputError
from .training.config import TrainConfig

__version__ = "0.1.0"
__all__ = [
    "BetaMixture",
    "GaussianMixture",
    "InputError",
    "NoiseModel",
    "TrainConfig",
    "as_dataset",
    "load_model",
    "prepare",
    "train",
]

_HOMES = {
    "BetaMixture": "mixture",
    "GaussianMixture": "mixture",
    "NoiseModel": "mixture",
    "as_dataset": "data.readers.objects",
    "load_model": "run.model",
    "prepare": "training.prepare",
    "train": "training.session",
}


def __getattr__(name: str) -> Any:
    """Import what needs PyTorch only when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
