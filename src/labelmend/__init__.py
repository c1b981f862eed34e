"""labelmend: find wrong labels, train on them all the same, and get them fixed.

import labelmend as lm

run = lm.train("photos/", out="runs/photos")
run.suspects(20)

table = lm.judge(labels, probabilities)

model = lm.LabelMendClassifier().fit(X, y)
model.label_issues_
"""

from typing import TYPE_CHECKING, Any

from .errors import InputError
from .training.config import TrainConfig

if TYPE_CHECKING:
    from .faces.estimator import LabelMendClassifier
    from .faces.python import Run, judge, load, train
    from .faces.tracker import Tracker

__version__ = "0.2.0"
__all__ = ["InputError", "LabelMendClassifier", "Run", "Tracker", "TrainConfig", "judge", "load", "train"]

_HOMES = dict.fromkeys(("Run", "judge", "load", "train"), "faces.python") | {
    "LabelMendClassifier": "faces.estimator",
    "Tracker": "faces.tracker",
}


def __getattr__(name: str) -> Any:
    """Import what needs PyTorch only when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
