"""Gradient-boosted trees as a network: fitted by scikit-learn, kept as tensors, and called like any other network.

Nothing of scikit-learn is stored. A fitted forest is a table of nodes for each tree (the column and the threshold that
a row is compared with, the two nodes that follow, the value of a leaf), so that checkpoints, safetensors, averages over
networks and exports treat it like weights. It cannot be trained by gradients; `Forest.fit` replaces it.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..errors import InputError

TREES = "trees"
DEEPEST = 8
"""Comparisons between the root of a tree and its leaves."""
LEARNING_RATE = 0.1
FEWEST_IN_LEAF = 20
PENALTY = 1.0
"""Of the squared values of leaves (L2), so that leaves of few samples count less."""
LEAST_SHARE = 0.02
"""Share of a target under which it is left out: every share that is kept is one more row to learn."""
UNSEEN = 0.5
"""Samples that a class counts as if there is none of it to learn."""
MOST_ROUNDS, MOST_LEAVES = 1_000, 64


def trees_name(rounds: int, leaves: int) -> str:
    """The name of a forest of so many rounds of boosting, with trees of so many leaves.

    >>> trees_name(60, 8)
    'trees-60x8'
    """
    return f"{TREES}-{rounds}x{leaves}"


def build_trees(name: str, shape: Sequence[int], classes: int) -> "Forest":
    """The forest of this name, `trees-ROUNDSxLEAVES`, before it is fitted."""
    found = re.fullmatch(rf"{TREES}-([1-9]\d{{0,3}})x([1-9]\d?)", name)
    rounds, leaves = (int(part) for part in found.groups()) if found else (0, 0)
    if not found or rounds > MOST_ROUNDS or not 2 <= leaves <= MOST_LEAVES:
        raise InputError(
            f"{name!r:.60} is no forest: write trees, or trees-ROUNDSxLEAVES with up to {MOST_ROUNDS:,} rounds and 2 "
            f"to {MOST_LEAVES} leaves, such as {trees_name(60, 8)}"
        )
    if len(shape) != 1:
        raise InputError(f"net {TREES} takes rows of features, but the samples are images of shape {tuple(shape)}")
    return Forest(shape[0], classes, rounds=rounds, leaves=leaves)


class Forest(nn.Module):
    """Boosted trees: the values of the leaves that a row comes to, summed by class, and a head that adds the prior.

    Buffers have a row for each tree and a column for each node: node 0 is the root, and a leaf follows itself. In a
    forest for two classes each tree gives the log-odds of the second one. The head is not trained; by it the scores of
    the trees are features of a sample, as of any other network.
    """

    column: Tensor
    threshold: Tensor
    left: Tensor
    right: Tensor
    missing_left: Tensor
    value: Tensor

    def __init__(self, columns: int, classes: int, *, rounds: int, leaves: int) -> None:
        super().__init__()
        self.columns, self.classes, self.rounds, self.leaves = columns, classes, rounds, leaves
        self.outputs = 1 if classes == 2 else classes
        shape = (rounds * self.outputs, 2 * leaves - 1)
        self.register_buffer("column", torch.zeros(shape, dtype=torch.int32))
        self.register_buffer("threshold", torch.zeros(shape))
        self.register_buffer("left", torch.zeros(shape, dtype=torch.int16))
        self.register_buffer("right", torch.zeros(shape, dtype=torch.int16))
        self.register_buffer("missing_left", torch.zeros(shape, dtype=torch.bool))
        self.register_buffer("value", torch.zeros(shape))
        with torch.random.fork_rng(devices=[]):  # a new layer draws weights, which are replaced at once
            self.head = nn.Linear(classes, classes)
        nn.init.eye_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def features(self, x: Tensor) -> Tensor:
        """The sum of the trees for each class, [n, C]."""
        return self._by_class(self._by_round(x).sum(dim=1))

    def forward(self, x: Tensor) -> Tensor:
        """Scores whose softmax is the probability of each class, [n, C]."""
        scores: Tensor = self.head(self.features(x))
        return scores

    def staged(self, x: Tensor, rounds: Sequence[int]) -> list[Tensor]:
        """The scores after each of these numbers of rounds, [n, C]."""
        summed = self._by_round(x).cumsum(dim=1)
        return [self.head(self._by_class(summed[:, number - 1])) for number in rounds]

    def _by_class(self, summed: Tensor) -> Tensor:
        """Sums of trees as a score for each class; of two classes, the first one has none."""
        return torch.cat([torch.zeros_like(summed), summed], dim=1) if self.classes == 2 else summed

    def _by_round(self, x: Tensor) -> Tensor:
        """What each round of boosting adds, [n, rounds, trees of a round]."""
        return self._leaf_values(x.flatten(1)).view(-1, self.rounds, self.outputs)

    def _leaf_values(self, rows: Tensor) -> Tensor:
        """The value of the leaf that each row comes to in each tree, [n, trees]."""
        width = self.value.shape[1]
        first = torch.arange(len(self.value), device=rows.device) * width
        at = first.expand(rows.shape[0], -1)  # len() would fix the size of a batch in an exported program
        column, left, right = (each.flatten().long() for each in (self.column, self.left, self.right))
        threshold, missing_left = self.threshold.flatten(), self.missing_left.flatten()
        for _ in range(min(DEEPEST, self.leaves - 1)):
            seen = rows.gather(1, column[at])
            goes_left = (seen <= threshold[at]) | (seen.isnan() & missing_left[at])
            at = first + torch.where(goes_left, left[at], right[at])
        return self.value.flatten()[at]

    def fit(self, x: Tensor, targets: Tensor, *, seed: int, threads: int = 1) -> None:
        """Learn targets [n, C] of rows x [n, columns], in place of whatever was learned before.

        A soft target is a row for each class that it gives a share, weighted by that share. A class of which there is
        no row stays possible, with the prior of half a row.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier
        from threadpoolctl import threadpool_limits

        rows, labels, weights = weighted_rows(targets.detach().cpu().numpy())
        present = np.unique(labels)
        self._forget(np.bincount(labels, weights, self.classes).astype(np.float64))
        if len(present) < 2:
            return
        booster = HistGradientBoostingClassifier(
            learning_rate=LEARNING_RATE,
            max_iter=self.rounds,
            max_leaf_nodes=self.leaves,
            max_depth=DEEPEST,
            min_samples_leaf=min(FEWEST_IN_LEAF, max(1, len(rows) // 20)),
            l2_regularization=PENALTY,
            early_stopping=False,
            random_state=seed % (1 << 32),
        )
        with threadpool_limits(limits=threads, user_api="openmp"):
            booster.fit(x.detach().cpu().numpy()[rows], labels, weights)
        self._take(booster, present)

    @torch.no_grad()
    def _forget(self, counts: NDArray[np.float64]) -> None:
        """No trees, and the prior of these counts of classes."""
        for buffer in self.buffers():
            buffer.zero_()
        prior = np.log(np.maximum(counts, UNSEEN) / counts.sum())
        self.head.bias.copy_(torch.from_numpy(prior))

    @torch.no_grad()
    def _take(self, booster: Any, present: NDArray[np.int64]) -> None:
        """The nodes of a fitted booster; the classes that it knows are these."""
        prior = np.ravel(booster._baseline_prediction)
        two = len(present) == 2
        known = np.array([0.0, prior[0]]) if two else prior
        bias = self.head.bias.detach().cpu().double().numpy().copy()
        shift = known[0] - bias[present[0]]
        bias[present] = known - shift
        self.head.bias.copy_(torch.from_numpy(bias))
        for number, trees in enumerate(booster._predictors):
            for tree, of_class in zip(trees, present[1:] if two else present, strict=True):
                self._set(number * self.outputs + (0 if self.outputs == 1 else int(of_class)), tree.nodes)

    def _set(self, tree: int, nodes: NDArray[Any]) -> None:
        """One tree from scikit-learn's nodes."""
        count, itself = len(nodes), np.arange(len(nodes))
        leaf = nodes["is_leaf"].astype(bool)
        columns = {
            "column": np.where(leaf, 0, nodes["feature_idx"]),
            "threshold": rounded_down(np.where(leaf, 0.0, nodes["num_threshold"])),
            "left": np.where(leaf, itself, nodes["left"]),
            "right": np.where(leaf, itself, nodes["right"]),
            "missing_left": nodes["missing_go_to_left"].astype(bool),
            "value": np.where(leaf, nodes["value"], 0.0),
        }
        for name, values in columns.items():
            buffer = self.get_buffer(name)
            buffer[tree, :count] = torch.from_numpy(values).to(buffer)


def weighted_rows(targets: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Soft targets [n, C] as rows, labels and weights: one of each for every share that is worth a row.

    >>> rows, labels, weights = weighted_rows(np.array([[1.0, 0.0], [0.25, 0.75]]))
    >>> rows.tolist(), labels.tolist(), weights.tolist()
    ([0, 1, 1], [0, 0, 1], [1.0, 0.25, 0.75])
    """
    kept = targets >= np.minimum(LEAST_SHARE, targets.max(axis=1, keepdims=True))
    kept &= targets > 0
    rows, labels = np.nonzero(kept)
    weights = targets[rows, labels].astype(np.float64)
    return rows, labels, weights


def rounded_down(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 that is not above each value: float32 rows compare with it as with the value itself."""
    nearest = values.astype(np.float32)
    below: NDArray[np.float32] = np.where(nearest > values, np.nextafter(nearest, np.float32(-np.inf)), nearest)
    return below
