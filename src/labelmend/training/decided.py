"""Training on labels that people decided: they are taken, and trusted."""

from dataclasses import replace
from pathlib import Path

import torch

from ..data.samples import Samples
from ..errors import InputError
from ..run.decisions import LEFT_OUT, RELABEL, SKIP, read_decisions, standing
from ..run.directory import RunDirectory


def take_decisions(text: str, data: Samples) -> Samples:
    """The data set with the labels of a file of decisions, or of a run, as trusted ones.

    Samples that are bad or none of the classes are left out. A `skip` says nothing. Samples that are trusted already
    stay so.
    """
    path = _file(text)
    said = standing(read_decisions(path, classes=data.class_names, ids=frozenset(data.ids)))
    holds = {id: what for id, what in said.items() if what.decision != SKIP}
    if not holds:
        raise InputError(f"{path} decides nothing: it has no line with another decision than skip or undo")
    before = set() if data.trusted is None else {data.ids[row] for row in data.trusted.tolist()}
    out = {id for id, what in holds.items() if what.decision in LEFT_OUT}
    rows = [row for row, id in enumerate(data.ids) if id not in out]
    kept = replace(data, trusted=None).take(rows) if out else data
    place = {name: label for label, name in enumerate(data.class_names)}
    observed = kept.labels.observed.clone()
    trusted = []
    for row, id in enumerate(kept.ids):
        if id in holds and holds[id].decision == RELABEL:
            observed[row] = place[holds[id].label]
        if id in holds or id in before:
            trusted.append(row)
    labels = kept.labels.with_observed(observed)
    return replace(kept, labels=labels, trusted=torch.tensor(trusted, dtype=torch.int64) if trusted else None)


def _file(text: str) -> Path:
    """The file of decisions that is meant by a path to it or to a run."""
    if not Path(text).is_dir():
        return Path(text)
    path = RunDirectory.existing(text).decisions
    if not path.is_file():
        raise InputError(f"nobody decided anything in {text} yet; labelmend review {text} asks for decisions")
    return path
