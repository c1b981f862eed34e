"""Figures of a run: what the network saw of the samples, how training went, and how far P(wrong) can be trusted."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .quality import Bins
from .svg import BELIEF, CLEAN, HALF, INK, NOISY, new_figure, second_axis, to_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Epochs = Sequence[Mapping[str, Any]]
Floats = NDArray[np.float64]

MOST_BINS = 70
MOST_EPOCHS = 200
MOST_POINTS = 400


def group_histogram(
    values: Floats,
    probability: Floats,
    flagged: NDArray[np.bool_],
    mixture: Mapping[str, float] | None,
    *,
    on: str,
    threshold: float,
    size: tuple[float, float] = HALF,
) -> str:
    """Margins or losses of all samples, the mixture fitted to them if any, and the mean P(wrong) of each bin (Fig. 2).

    P(wrong) is drawn as it stands in the table, because a label is not judged by one of these numbers alone.
    """
    figure, axis = new_figure(size)
    usable = np.isfinite(values)
    finite = values[usable]
    bins = int(np.clip(2 * np.sqrt(len(finite)), 12, MOST_BINS))
    edges = np.linspace(finite.min() - 0.01, finite.max() + 0.01, bins + 1)
    everything = np.histogram(finite, edges)[0]
    kept = np.histogram(finite[~flagged[usable]], edges)[0]
    axis.stairs(kept, edges, fill=True, color=INK, alpha=0.4, label="kept")
    if flagged.any():
        axis.stairs(everything, edges, baseline=kept, fill=True, color=NOISY, alpha=0.35, label="flagged")
    tallest = everything.max()
    if mixture is not None:
        grid = np.linspace(edges[0], edges[-1], 400)
        components = group_densities(mixture, grid) * len(finite) * (edges[1] - edges[0])
        axis.plot(grid, components[0], color=CLEAN, lw=1.8, label="clean component")
        axis.plot(grid, components[1], color=NOISY, lw=1.8, label="noisy component")
        tallest = max(tallest, min(components.max(), 1.5 * tallest))
    filled = everything > 0
    mean = np.histogram(finite, edges, weights=probability[usable])[0][filled] / everything[filled]
    second = second_axis(axis, "P(wrong)")
    second.plot(((edges[:-1] + edges[1:]) / 2)[filled], mean, color=BELIEF, lw=1.2, ls="--", label="mean P(wrong)")
    if flagged.any():
        second.axhline(threshold, color=BELIEF, lw=1, ls=":", label=f"flagged from {threshold:.2f}")
    if tallest > 20 * np.median(everything[filled]):
        axis.set_yscale("function", functions=(np.sqrt, np.square))
    axis.set_ylim(0, 1.12 * tallest)
    axis.set_xlim(edges[0], edges[-1])
    axis.set_xlabel(on)
    axis.set_ylabel("samples")
    fitted = "" if mixture is None else "the fitted mixture and "
    return to_svg(figure, f"Histogram of each sample's {on} with {fitted}the mean probability of a wrong label")


def group_densities(mixture: Mapping[str, Any], values: Floats) -> Floats:
    """Weighted densities of the clean and the noisy samples, [2, n], over values as they were fitted."""
    import torch

    from ..mixture import noise_model

    if "means_clean" in mixture:
        return _densities_by_class(mixture, values)
    model = noise_model("bmm" if "alpha_clean" in mixture else "gmm")
    names = model.mixture.parameter_names
    clean, noisy = (tuple(mixture[f"{name}_{side}"] for name in names) for side in ("clean", "noisy"))
    model.mixture.weights_ = (mixture["weight_clean"], mixture["weight_noisy"])
    model.mixture.parameters_ = ((clean[0], clean[1]), (noisy[0], noisy[1]))
    model.low, model.span = mixture["low"], mixture["span"]
    densities: Floats = model.mixture.density(model.scale(torch.from_numpy(values))).numpy()
    return densities / model.span


def _densities_by_class(mixture: Mapping[str, Any], values: Floats) -> Floats:
    """A clean group for each class, all of one weight, and one noisy group."""
    from scipy.stats import norm

    centres = np.append(mixture["means_clean"], mixture["mean_noisy"])
    variances = np.append(np.full(len(centres) - 1, mixture["variance_clean"]), mixture["variance_noisy"])
    normal = norm.pdf(values, centres[:, None], np.sqrt(variances)[:, None])
    clean = (1 - mixture["weight_noisy"]) * normal[:-1].mean(axis=0)
    return np.stack([clean, mixture["weight_noisy"] * normal[-1]])


def reliability(bins: Bins) -> str:
    """The real share of wrong labels in each bin of P(wrong), with its 95 % interval and the number of labels."""
    figure, axis = new_figure(HALF)
    filled = np.flatnonzero(bins.counts)
    centre, (low, high) = (bins.edges[:-1] + bins.edges[1:])[filled] / 2, bins.intervals()[:, filled]
    axis.stairs(bins.wrong, bins.edges, fill=True, color=NOISY, alpha=0.35, label="really wrong")
    axis.vlines(centre, low, high, color=NOISY, lw=1)
    axis.plot([0, 1], [0, 1], color=BELIEF, lw=1.2, ls="--", label="as promised")
    for x, count in zip(centre, bins.counts[filled], strict=True):
        axis.annotate(
            f"{count:,}" if count < 100_000 else f"{count / 1000:,.0f}k", (x, 1.03), ha="center", fontsize=7.5
        )
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 1.1)
    axis.set_yticks(np.linspace(0, 1, 6))
    axis.set_xlabel("P(wrong)")
    axis.set_ylabel("share of wrong labels")
    return to_svg(figure, "Real share of wrong labels in ten bins of the probability of a wrong label")


def risk_coverage(risk: Floats, best: Floats, kept: float) -> str:
    """The share of wrong labels among those that remain when the most doubtful are left out, from all to none.

    `best` is the same for a perfect order, and `kept` the share of labels that are not flagged.
    """
    figure, axis = new_figure(HALF)
    coverage = np.linspace(0, 1, len(risk) + 1)[1:]
    shown = np.unique(np.linspace(0, len(risk) - 1, MOST_POINTS).astype(int))
    axis.plot(coverage[shown], risk[shown], color=NOISY, lw=1.7, label="by rank")
    axis.plot(coverage[shown], best[shown], color=CLEAN, lw=1.2, ls="--", label="perfect order")
    if kept < 1:
        axis.axvline(kept, color=BELIEF, lw=1, ls=":", label="flagged left out")
    axis.set_xlim(0, 1)
    axis.set_ylim(0, max(1.15 * float(np.quantile(risk, 0.98)), 0.01))  # the first few labels jump
    axis.set_xlabel("share of labels kept")
    axis.set_ylabel("wrong among them")
    return to_svg(figure, "Share of wrong labels among those kept, by the share of labels kept")


def curves(epochs: Epochs, *, size: tuple[float, float] = HALF) -> str:
    """Test accuracy, detection AUC and estimated noise rate over the epochs."""
    figure, axis = new_figure(size)
    series = (("test_accuracy", "test accuracy", CLEAN), ("auc", "AUC for wrong labels", BELIEF))
    for key, name, colour in (*series, ("noise_rate", "noise rate as training saw it", NOISY)):
        _line(axis, [(e["epoch"], e[key]) for e in epochs if e[key] is not None], color=colour, label=name)
    axis.set_ylim(0, 1.02)
    return _by_epoch(figure, axis, epochs, "Accuracy, AUC and noise rate by epoch")


def loss_bands(losses: NDArray[np.float16], flagged: NDArray[np.bool_], epochs: Epochs) -> str:
    """Median and quartiles of the loss of kept and of flagged samples over the epochs (Fig. 1)."""
    figure, axis = new_figure(HALF)
    tracked = np.array([e["epoch"] for e in epochs if e.get("tracked", True)][: len(losses)])
    chosen = np.unique(np.linspace(0, len(tracked) - 1, min(len(tracked), MOST_EPOCHS)).astype(int))
    finite = np.nan_to_num(losses[chosen].astype(np.float32), posinf=65504.0)
    for group, name, colour in ((~flagged, "kept", CLEAN), (flagged, "flagged", NOISY)):
        if group.any():
            low, middle, high = np.quantile(finite[:, group], (0.25, 0.5, 0.75), axis=1)
            axis.fill_between(tracked[chosen], low, high, color=colour, alpha=0.22, lw=0)
            _line(axis, list(zip(tracked[chosen], middle, strict=True)), color=colour, label=name)
    axis.set_ylim(bottom=0)
    axis.set_ylabel("loss")
    return _by_epoch(figure, axis, epochs, "Median and quartiles of the loss of kept and flagged samples by epoch")


def mixture_path(epochs: Epochs, decided_by: str) -> str | None:
    """Means of both components, and the weight of the noisy one, in the epochs in which this mixture decided.

    `decided_by` is "losses" or "rival_log_odds"; None if the mixture decided in no epoch.
    """
    fitted = [(e["epoch"], e["mixture"]) for e in epochs if e["mixture"] and e["decided_by"] == decided_by]
    if not fitted:
        return None
    figure, axis = new_figure(HALF)
    for side, colour in (("clean", CLEAN), ("noisy", NOISY)):
        means = [(epoch, component_mean(mixture, side)) for epoch, mixture in fitted]
        _line(axis, means, color=colour, label=f"mean, {side}")
    if decided_by == "losses":
        axis.set_ylim(bottom=0)
    axis.set_ylabel("loss" if decided_by == "losses" else "log-odds")
    second = second_axis(axis, "weight")
    weights = [(epoch, mixture["weight_noisy"]) for epoch, mixture in fitted]
    _line(second, weights, color=BELIEF, label="weight, noisy", ls="--")
    return _by_epoch(figure, axis, epochs, "Means and weight of the mixture's components by epoch")


def component_mean(mixture: Mapping[str, float], side: str) -> float:
    """Mean of a component, as a loss or as log-odds: on the scale of what the mixture was fitted to."""
    if f"alpha_{side}" in mixture:
        alpha, beta = mixture[f"alpha_{side}"], mixture[f"beta_{side}"]
        scaled = alpha / (alpha + beta)
    else:
        scaled = mixture[f"mean_{side}"]
    return float(scaled * mixture["span"] + mixture["low"])


def phases(epochs: Epochs) -> list[tuple[int, str]]:
    """First epoch and name of each stage of the training."""
    changed = [(e["epoch"], e["phase"]) for e in epochs]
    return [pair for pair, before in zip(changed, [(0, None), *changed], strict=False) if pair[1] != before[1]]


def accuracy_curves(runs: Sequence[tuple[Epochs, str]], *, size: tuple[float, float] = HALF) -> str:
    """Test accuracy of several runs over each other, each in its colour."""
    figure, axis = new_figure(size)
    for epochs, colour in runs:
        points = [(e["epoch"], e["test_accuracy"]) for e in epochs if e["test_accuracy"] is not None]
        _line(axis, points, color=colour)
    axis.set_ylabel("test accuracy")
    return _by_epoch(figure, axis, (), "Test accuracy of all runs by epoch")


def _line(axis: Any, points: Sequence[tuple[float, float]], **style: Any) -> None:
    if points:
        axis.plot(*zip(*points, strict=True), **{"lw": 1.7, "marker": "." if len(points) < 5 else ""} | style)


def _by_epoch(figure: "Figure", axis: Any, epochs: Epochs, title: str) -> str:
    """Finish a figure over epochs, with a thin numbered line where each phase begins."""
    starts = phases(epochs)
    for number, (epoch, _) in enumerate(starts[:12] if len(starts) > 1 else [], start=1):
        axis.axvline(epoch, color=INK, lw=0.6, zorder=0)
        axis.annotate(f" {number}", (epoch, 1), xycoords=("data", "axes fraction"), va="top", fontsize=7.5)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_xlabel("epoch")
    return to_svg(figure, title)
