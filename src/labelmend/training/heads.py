"""Which classifier suits rows of features: the one that predicts held-out given labels best. No truth is needed.

Wide rows, such as embeddings, are memorised by a network that suits a table of ten columns. What is memorised does not
predict the labels of samples that were left out, so that their log-loss tells which network and which weight decay to
take. Wrong labels make every candidate's loss larger by about the same amount, and do not change the order.

All networks are trained at the same time, as one computation with a dimension for them, and by the same steps as in a
run: `HEADS` with a triangular rate. Gradient-boosted trees are fitted one after another (see `trees`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..core import generator
from ..methods.fold_plan import stratified_folds
from ..nets.small import WIDEST
from ..nets.trees import TREES
from .optimiser import HEADS, OptimiserSettings, triangular
from .trees import affordable, held_out_trees

ERRORS = {"linear": 1.0, "mlp": 1.0, TREES: 2.0}
"""Standard errors by which a kind must be better than those before it; the best of many forests is partly luck."""
LINEAR_DECAYS = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
MLP_DECAYS = (1e-2, 3e-2)
MLP_WIDTH = 128
MOST_ROWS = 10_000
"""Rows that candidates are compared on."""
FOLDS = 5
STEPS, FEWEST_EPOCHS, MOST_EPOCHS = 600, 6, 60
"""Steps of a round, and the limits of the epochs that they take."""
EARLY = 3
"""An MLP that stops early has this many times fewer epochs."""
MLP_WORK = 2e10
"""Multiplications that may be spent on the first layers of MLPs; decides in how many folds they are compared."""
ROUNDS, FOLDS_OF_A_RUN = 2, 7
"""What the epochs of a choice are for: `mend` with these folds and rounds."""

Weights = list[Tensor]
Forward = Callable[[Weights, Tensor], Tensor]


@dataclass(frozen=True)
class HeadChoice:
    """A classifier for rows of features, for a run of `mend` with `folds` and two rounds, and the reason in words."""

    net: str
    weight_decay: float
    epochs: int
    reason: str
    folds: int = FOLDS_OF_A_RUN

    @property
    def optimiser(self) -> OptimiserSettings:
        """What the choice was made with and holds for."""
        return replace(HEADS, weight_decay=self.weight_decay)


@dataclass(frozen=True)
class _Candidate:
    """A way to train, and the loss of each held-out sample, [n]: NaN for samples that were not held out."""

    net: str
    weight_decay: float
    early: bool
    losses: Tensor

    @property
    def mean(self) -> float:
        return float(self.losses.nanmean())

    @property
    def kind(self) -> str:
        """What it is called in a reason."""
        return TREES if self.net.startswith(TREES) else self.net

    def shortened(self, epochs: int) -> int:
        """Of so many epochs those that are run; trees learn everything at once."""
        if self.kind == TREES:
            return 1
        return max(2, epochs // EARLY) if self.early else epochs


def choose_head(
    x: Tensor, labels: Tensor, classes: int, *, batch_size: int = 64, seed: int = 0, only: str | None = None
) -> HeadChoice:
    """The classifier with the least log-loss on held-out given labels, for standardised rows x [n, columns].

    An MLP is taken only if it is better than the best linear classifier by more than a standard error of the
    difference, and trees only if they are better than the better one of both by two. `only` compares candidates of
    one kind. Depends on the rows, the labels and the seed, and draws nothing from the global generator.
    """
    some = torch.randperm(len(x), generator=generator(seed, "heads"))[:MOST_ROWS].sort().values.to(x.device)
    comparison = _Comparison(x[some].flatten(1).float(), labels[some], classes, batch_size, seed)
    bests: list[_Candidate] = []
    best: _Candidate | None = None
    kinds: dict[str, Callable[[], list[_Candidate]]] = {
        "linear": comparison.linear,
        "mlp": comparison.mlps,
        TREES: lambda: comparison.trees(best),
    }
    for compare in kinds.values() if only is None else [kinds[only]]:
        candidates = compare()
        if candidates:
            bests.append(min(candidates, key=lambda candidate: candidate.mean))
            best = bests[-1] if best is None or _clearly_better(bests[-1], best) else best
    assert best is not None
    epochs = best.shortened(round_epochs(len(x), batch_size))
    return HeadChoice(best.net, best.weight_decay, ROUNDS * epochs, _reason(best, bests))


def _clearly_better(one: _Candidate, other: _Candidate) -> bool:
    """Whether its held-out loss is less by more than a standard error of the difference, of trees by two."""
    gain = other.losses - one.losses
    gain = gain[gain.isfinite()]
    return float(gain.mean()) > ERRORS[one.kind] * float(gain.std()) / math.sqrt(len(gain))


def round_epochs(samples: int, batch_size: int) -> int:
    """Epochs of a round: about 600 steps, within limits.

    >>> round_epochs(2_000, 64), round_epochs(300, 64), round_epochs(1_000_000, 128)
    (20, 60, 6)
    """
    steps = max(1, samples // batch_size)
    return min(MOST_EPOCHS, max(FEWEST_EPOCHS, -(-STEPS // steps)))


def _reason(best: _Candidate, bests: Sequence[_Candidate]) -> str:
    """The choice in words, with its loss and those of the others on the samples that all were measured on."""
    names = {"linear": "a linear classifier", "mlp": "an MLP", TREES: "gradient-boosted trees"}
    compared = torch.stack([candidate.losses for candidate in bests]).isfinite().all(dim=0)
    loss = {candidate.kind: float(candidate.losses[compared].mean()) for candidate in bests}
    others = [f"{loss[other.kind]:.2f} for {names[other.kind]}" for other in bests if other is not best]
    if best.kind == TREES:
        rounds, leaves = best.net.removeprefix(f"{TREES}-").split("x")
        what = f"gradient-boosted trees, {rounds} rounds of {leaves} leaves"
    else:
        what = f"{'linear' if best.net == 'linear' else 'an MLP'} with weight decay {best.weight_decay:g}"
    against = f", against {' and '.join(others)}" if others else ""
    return f"{what}: log-loss {loss[best.kind]:.2f} on held-out labels{against}"


class _Comparison:
    """Candidates that learn from the same batches, each without one fold, on which it is measured."""

    def __init__(self, x: Tensor, labels: Tensor, classes: int, batch_size: int, seed: int) -> None:
        self.x, self.labels, self.classes = x, labels, classes
        self.batch_size, self.seed = batch_size, seed
        self.epochs = round_epochs(len(x), batch_size)
        self.fold = stratified_folds(labels.cpu(), FOLDS).to(x.device)

    def linear(self) -> list[_Candidate]:
        """Linear classifiers of all weight decays."""
        factor = min(1.0, (WIDEST / self.x.shape[1]) ** 0.5)

        def forward(weights: Weights, x: Tensor) -> Tensor:
            return torch.einsum("nd,dhc->nhc", x * factor, weights[0]) + weights[1]

        losses = self._held_out(forward, [(self.x.shape[1], self.classes)], LINEAR_DECAYS, self.epochs, FOLDS)
        return [_Candidate("linear", decay, False, loss) for decay, loss in zip(LINEAR_DECAYS, losses, strict=True)]

    def mlps(self) -> list[_Candidate]:
        """MLPs as in `nets`, with all weight decays, stopped early or not; wide rows are compared in fewer folds."""
        columns, width = self.x.shape[1], MLP_WIDTH
        work = 3 * columns * width * len(self.x) * self.epochs * len(MLP_DECAYS)
        folds = max(1, min(FOLDS, int(MLP_WORK / work)))

        def forward(weights: Weights, x: Tensor) -> Tensor:
            first, second, head, bias, *norms = weights
            hidden = _normalised(torch.einsum("nd,dhk->nhk", x, first), norms[0], norms[1]).relu()
            hidden = _normalised(torch.einsum("nhk,khm->nhm", hidden, second), norms[2], norms[3]).relu()
            return torch.einsum("nhk,khc->nhc", hidden, head) + bias

        found, shapes = [], [(columns, width), (width, width), (width, self.classes)]
        for early in (False, True):
            epochs = max(2, self.epochs // EARLY) if early else self.epochs
            losses = self._held_out(forward, shapes, MLP_DECAYS, epochs, folds)
            found += [_Candidate("mlp", decay, early, loss) for decay, loss in zip(MLP_DECAYS, losses, strict=True)]
        return found

    def trees(self, best: _Candidate | None) -> list[_Candidate]:
        """Gradient-boosted trees of all sizes; none where they would take too long, unless nothing else is compared."""
        if best is not None and not affordable(len(self.x), self.x.shape[1], self.classes):
            return []
        x, labels, fold = self.x.cpu(), self.labels.cpu(), self.fold.cpu()
        rival = None if best is None else best.losses.cpu()
        losses = held_out_trees(x, labels, self.classes, fold, seed=self.seed, rival=rival)
        return [_Candidate(net, 0.0, False, loss.to(self.x.device)) for net, loss in losses.items()]

    def _held_out(
        self, forward: Forward, shapes: Sequence[tuple[int, int]], decays: Sequence[float], epochs: int, folds: int
    ) -> list[Tensor]:
        """For each weight decay the losses of the samples in the first `folds` folds, [n]."""
        rng, heads = generator(self.seed, "heads", len(shapes), epochs), len(decays) * folds
        weights = [_uniform((inputs, heads, outputs), inputs, rng) for inputs, outputs in shapes]
        weights.append(_uniform((heads, self.classes), shapes[-1][0], rng))
        for _, outputs in shapes[:-1]:
            weights += [torch.ones(heads, outputs), torch.zeros(heads, outputs)]
        weights = [weight.to(self.x.device).requires_grad_() for weight in weights]
        decay = torch.tensor(decays, device=self.x.device).repeat_interleave(folds)[:, None]
        fold = torch.arange(folds, device=self.x.device).repeat(len(decays))
        self._train(forward, weights, decay, fold, epochs, rng)
        with torch.no_grad():
            losses = self._losses(forward(weights, self.x), self.labels)
        losses = losses.masked_fill(self.fold[:, None] != fold, math.nan).view(len(self.x), len(decays), folds)
        return list(losses.nanmean(dim=2).unbind(dim=1))

    def _losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy of each sample and head, [n, heads]."""
        targets = labels[:, None].expand(-1, logits.shape[1])
        return F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")

    def _train(
        self, forward: Forward, weights: Weights, decay: Tensor, fold: Tensor, epochs: int, rng: torch.Generator
    ) -> None:
        """SGD with Nesterov momentum, each head on the samples of other folds than its own."""
        speeds = [torch.zeros_like(weight) for weight in weights]
        batches = max(1, len(self.x) // self.batch_size)
        for step in range(epochs * batches):
            if step % batches == 0:
                order = torch.randperm(len(self.x), generator=rng).to(self.x.device).tensor_split(batches)
            index = order[step % batches]
            learned = (self.fold[index, None] != fold).float()
            losses = self._losses(forward(weights, self.x[index]), self.labels[index]) * learned
            total = (losses.sum(dim=0) / learned.sum(dim=0).clamp_min(1)).sum()
            slopes = torch.autograd.grad(total, weights)
            rate = HEADS.learning_rate * triangular((step + 0.5) / (epochs * batches))
            with torch.no_grad():
                for weight, speed, slope in zip(weights, speeds, slopes, strict=True):
                    decayed = slope + decay * weight
                    speed.mul_(HEADS.momentum).add_(decayed)
                    weight.sub_(rate * (decayed + HEADS.momentum * speed))


def _uniform(shape: tuple[int, ...], inputs: int, rng: torch.Generator) -> Tensor:
    """PyTorch's default for linear layers."""
    return (2 * torch.rand(shape, generator=rng) - 1) / math.sqrt(inputs)


def _normalised(hidden: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """BatchNorm by the samples at hand, which at the end are all of them."""
    mean, variance = hidden.mean(dim=0), hidden.var(dim=0, correction=0)
    return (hidden - mean) * (variance + 1e-5).rsqrt() * scale + shift
