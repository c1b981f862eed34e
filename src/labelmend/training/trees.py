"""How many rounds of boosting, and how large trees, predict held-out given labels best.

One fit tells the loss after each number of rounds, because later trees only add to earlier ones. Trees that predict
clearly worse than a network already does, after enough rounds to tell, are not looked at further.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..nets.trees import Forest, trees_name

ROUNDS = (10, 15, 25, 40, 60, 100)
"""Rounds of boosting that are compared."""
LEAVES = (8, 31)
ENOUGH_ROUNDS = 40
"""Rounds after which small trees tell whether trees suit the data."""
CLEARLY = 2.0
"""Standard errors by which trees may be behind a network and still be looked at."""
FOLDS = 3
"""Folds of the comparison on which trees are measured."""
FEWEST_ROWS = 40
"""Rows under which trees have nothing to divide: a leaf holds up to 20."""
MOST_WORK = 3e6
"""Rows times columns times trees of a round, above which trees would take longer than networks and are not tried."""


def affordable(rows: int, columns: int, classes: int) -> bool:
    """Whether so many rows are enough to grow trees, and few enough to compare them in some seconds.

    Of more columns than rows, as embeddings of few pictures have, single columns tell too little to divide by.
    """
    work = rows * columns * (1 if classes == 2 else classes)
    return max(FEWEST_ROWS, columns) <= rows and work <= MOST_WORK


def held_out_trees(
    x: Tensor, labels: Tensor, classes: int, fold: Tensor, *, seed: int, rival: Tensor | None = None
) -> dict[str, Tensor]:
    """The losses of held-out samples by the name of the forest, [n]: NaN for samples that were not held out.

    `rival` are losses of the best network on the same samples; where trees are far behind, only one forest comes back.
    """
    if rival is not None:
        small = trees_name(ENOUGH_ROUNDS, LEAVES[0])
        losses = _staged(x, labels, classes, fold, (ENOUGH_ROUNDS,), LEAVES[0], folds=1, seed=seed)[small]
        behind = (losses - rival)[losses.isfinite() & rival.isfinite()]
        if float(behind.mean()) > CLEARLY * float(behind.std()) / math.sqrt(len(behind)):
            return {small: losses}
    found: dict[str, Tensor] = {}
    for leaves in LEAVES:
        found |= _staged(x, labels, classes, fold, ROUNDS, leaves, folds=FOLDS, seed=seed)
    return found


def _staged(
    x: Tensor,
    labels: Tensor,
    classes: int,
    fold: Tensor,
    rounds: tuple[int, ...],
    leaves: int,
    *,
    folds: int,
    seed: int,
) -> dict[str, Tensor]:
    """Losses after each of these rounds, in the first `folds` folds."""
    losses = torch.full((len(rounds), len(x)), math.nan)
    for out in range(folds):
        held, learned = fold == out, fold != out
        forest = Forest(x.shape[1], classes, rounds=rounds[-1], leaves=leaves)
        forest.fit(x[learned], F.one_hot(labels[learned], classes).float(), seed=seed)
        with torch.no_grad():
            scores = forest.staged(x[held], rounds)
        for stage, logits in zip(losses, scores, strict=True):
            stage[held] = F.cross_entropy(logits, labels[held], reduction="none")
    return {trees_name(number, leaves): stage for number, stage in zip(rounds, losses, strict=True)}
