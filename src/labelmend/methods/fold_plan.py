"""Which folds each network leaves out: one fold each, or a line of a finite projective plane."""

import torch
from torch import Tensor

from ..core import generator

LINES = {1: (0,), 3: (0, 1), 7: (0, 1, 3), 13: (0, 1, 3, 9)}
"""For each number of folds, those of line 0; line i has them moved on by i. Any two folds are on exactly one line."""


def left_out(folds: int, *, whole_lines: bool) -> Tensor:
    """Whether each network leaves out each fold, [networks, folds]: one fold each, or a whole line."""
    moved = (torch.arange(folds)[None] - torch.arange(folds)[:, None]) % folds
    return torch.isin(moved, torch.tensor(LINES[folds] if whole_lines else (0,)))


def lines_between(folds: int) -> tuple[Tensor, Tensor]:
    """Where each fold is in line 0, [folds], and where the second of two folds is in the line through both.

    A fold is in several lines, each time in another position, so that the position tells the line. Entries that nobody
    may ask for are 0.
    """
    position = torch.zeros(folds, dtype=torch.long)
    between = torch.zeros(folds, folds, dtype=torch.long)
    for place, fold in enumerate(LINES[folds]):
        position[fold] = place
        for other in LINES[folds]:
            for line in range(folds if other != fold else 0):
                between[(other + line) % folds, (fold + line) % folds] = place
    return position, between


def stratified_folds(labels: Tensor, folds: int) -> Tensor:
    """The fold of each sample, every class spread evenly over the folds; depends on the labels only.

    >>> stratified_folds(torch.tensor([0, 1, 0, 1, 0, 1, 0, 1]), 2).bincount().tolist()
    [4, 4]
    """
    order = torch.randperm(len(labels), generator=generator(0, "folds"))
    by_class = order[labels[order].sort(stable=True).indices]
    fold = torch.empty(len(labels), dtype=torch.long)
    fold[by_class] = torch.arange(len(labels)) % folds
    return fold
