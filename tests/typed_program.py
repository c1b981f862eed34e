"""A user's program: `make test` checks it with `mypy --strict`, which needs the types that the package exports."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import labelmend as lm
from labelmend import InputError, LabelMendClassifier, Run, Tracker, TrainConfig


def judged(labels: Sequence[int], probabilities: NDArray[np.float64]) -> tuple[float, list[int]]:
    """The noise rate by predictions of a model of one's own, and the rows of the most suspicious labels."""
    table = lm.judge(labels, probabilities, class_names=["cat", "dog"])
    rate: float = table.noise_rate
    flagged: NDArray[np.bool_] = table.flagged
    rows = [int(row) for row in table.suspects() if flagged[row]]
    print(table.summary(), table.finding)
    return rate, rows


def trained(source: str | Path, out: Path) -> Run:
    """A finished run, made anew or read."""
    try:
        run = lm.train(str(source), out=out, epochs=3, seed=1)
    except InputError as error:
        print(error)
        run = lm.load(out)
    low, high = run.noise_interval
    print(run.summary(), run.noise_rate, low <= high)
    return run


def corrected(run: Run, dest: Path) -> list[str | None]:
    """The labels as they should be, written beside the report."""
    corrections = run.corrections(min_confidence=0.9, drop=True)
    written: Path = corrections.write(dest)
    report: Path = run.report(dest.with_suffix(".html"))
    print(len(corrections), written, report)
    return corrections.labels


def watched(model: nn.Module, x: Tensor, y: Tensor, *, epochs: int) -> float:
    """The noise rate that a loop of one's own comes to."""
    tracker = Tracker(y, classes=10, epochs=epochs)
    for _ in range(epochs):
        for index in torch.randperm(len(x)).view(-1, 32):
            inputs, mixing = tracker.mix(x[index], index)
            loss: Tensor = tracker.loss(model(inputs), mixing)
            torch.autograd.backward(loss)
        tracker.end_epoch()
    state = tracker.state_dict()
    tracker.load_state_dict(state)
    return tracker.noise_rate or 0.0


def fitted(x: NDArray[np.float64], y: NDArray[np.int64]) -> NDArray[np.floating[Any]]:
    """Probabilities of a classifier that was not misled; and a configuration, for those who need one."""
    config = TrainConfig(source="digits", out="runs/digits", epochs=2)
    print(config.method, config.settings)
    probabilities: NDArray[np.floating[Any]] = LabelMendClassifier().fit(x, y).predict_proba(x)
    return probabilities
