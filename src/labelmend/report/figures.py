"""Figures of a run as inline SVG, in colours that follow the page's light or dark theme.

No text of the user's goes into a figure: names stand in the page, next to it.
"""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Epochs = Sequence[Mapping[str, Any]]
Floats = NDArray[np.float64]

CLEAN, NOISY, INK, BELIEF = "#2a7f9e", "#d1495b", "#888888", "#8a6fc0"
THEME = {CLEAN: "var(--clean)", NOISY: "var(--wrong)", INK: "var(--faint)", BELIEF: "var(--belief)"}
HALF, WIDE = (4.7, 2.9), (9.2, 3.4)
MOST_BINS = 70
MOST_EPOCHS = 200
METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
GROUP_IDS = re.compile(r'<g id="[a-zA-Z]\w*_\d+"')
KEPT_NUMBERS = re.compile(r"(\d+\.\d{2})\d+")


def group_histogram(
    values: Floats,
    flagged: NDArray[np.bool_],
    mixture: Mapping[str, float] | None,
    *,
    on: str,
    threshold: float,
    size: tuple[float, float] = HALF,
) -> str:
    """Margins or losses of all samples, the mixture fitted to them, and P(wrong) with its threshold (Fig. 2)."""
    figure, axis = _figure(size)
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
        densities, probability = group_densities(mixture, grid)
        curves = densities * len(finite) * (edges[1] - edges[0])
        axis.plot(grid, curves[0], color=CLEAN, lw=1.8, label="clean component")
        axis.plot(grid, curves[1], color=NOISY, lw=1.8, label="noisy component")
        _belief(axis, grid, probability, threshold)
        tallest = max(tallest, min(curves.max(), 1.5 * tallest))
    if tallest > 20 * np.median(everything[everything > 0]):
        axis.set_yscale("function", functions=(np.sqrt, np.square))
    axis.set_ylim(0, 1.12 * tallest)
    axis.set_xlim(edges[0], edges[-1])
    axis.set_xlabel(on)
    axis.set_ylabel("samples")
    return _svg(figure, f"Histogram of each sample's {on} with the fitted mixture and the probability of a wrong label")


def _belief(axis: Any, grid: Floats, probability: Floats, threshold: float) -> None:
    """P(wrong) on a second axis, and a line where it passes the threshold."""
    second = _second_axis(axis, "P(wrong)")
    second.plot(grid, probability, color=BELIEF, lw=1.2, ls="--", label="P(wrong)")
    beyond = probability > threshold
    if beyond.any() and not beyond.all():
        second.axvline(grid[beyond.argmax()], color=BELIEF, lw=1, ls=":", label=f"threshold, {threshold:.2f}")


def group_densities(mixture: Mapping[str, Any], values: Floats) -> tuple[Floats, Floats]:
    """Weighted densities of the clean and the noisy samples, [2, n], and P(wrong), over values as they were fitted."""
    import torch

    from ..mixture import noise_model

    if "means_clean" in mixture:
        return _densities_by_class(mixture, values)
    model = noise_model("bmm" if "alpha_clean" in mixture else "gmm")
    names = model.mixture.parameter_names
    clean, noisy = (tuple(mixture[f"{name}_{side}"] for name in names) for side in ("clean", "noisy"))
    model.mixture.weights_ = (mixture["weight_clean"], mixture["weight_noisy"])
    model.mixture.parameters_ = ((clean[0], clean[1]), (noisy[0], noisy[1]))
    model.low, model.span, model.verdict = mixture["low"], mixture["span"], None
    points = torch.from_numpy(values)
    return model.mixture.density(model.scale(points)).numpy() / model.span, model.posterior(points).numpy()


def _densities_by_class(mixture: Mapping[str, Any], values: Floats) -> tuple[Floats, Floats]:
    """A clean group for each class, all of one weight, and one noisy group; P(wrong) never falls with the margin."""
    from scipy.stats import norm

    centres = np.append(mixture["means_clean"], mixture["mean_noisy"])
    variances = np.append(np.full(len(centres) - 1, mixture["variance_clean"]), mixture["variance_noisy"])
    normal = norm.pdf(values, centres[:, None], np.sqrt(variances)[:, None])
    noisy = mixture["weight_noisy"] * normal[-1]
    clean = (1 - mixture["weight_noisy"]) * normal[:-1].mean(axis=0)
    return np.stack([clean, noisy]), np.maximum.accumulate(noisy / (clean + noisy + 1e-300))


def curves(epochs: Epochs, *, size: tuple[float, float] = HALF) -> str:
    """Test accuracy, detection AUC and estimated noise rate over the epochs."""
    figure, axis = _figure(size)
    series = (("test_accuracy", "test accuracy", CLEAN), ("auc", "AUC for wrong labels", BELIEF))
    for key, name, colour in (*series, ("noise_rate", "estimated noise rate", NOISY)):
        _line(axis, [(e["epoch"], e[key]) for e in epochs if e[key] is not None], color=colour, label=name)
    axis.set_ylim(0, 1.02)
    return _by_epoch(figure, axis, epochs, "Accuracy, AUC and noise rate by epoch")


def loss_bands(losses: NDArray[np.float16], flagged: NDArray[np.bool_], epochs: Epochs) -> str:
    """Median and quartiles of the loss of kept and of flagged samples over the epochs (Fig. 1)."""
    figure, axis = _figure(HALF)
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
    figure, axis = _figure(HALF)
    for side, colour in (("clean", CLEAN), ("noisy", NOISY)):
        means = [(epoch, component_mean(mixture, side)) for epoch, mixture in fitted]
        _line(axis, means, color=colour, label=f"mean, {side}")
    if decided_by == "losses":
        axis.set_ylim(bottom=0)
    axis.set_ylabel("loss" if decided_by == "losses" else "log-odds")
    second = _second_axis(axis, "weight")
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
    figure, axis = _figure(size)
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
    return _svg(figure, title)


def both_widths(draw: Callable[..., str], *arguments: Any, **options: Any) -> str:
    """A figure drawn twice, for wide and for narrow screens, of which the page shows one."""
    wide, narrow = (draw(*arguments, size=size, **options) for size in (WIDE, HALF))
    return f'<div class="on-wide">{wide}</div><div class="on-narrow">{narrow}</div>'


def _key(figure: "Figure") -> str:
    """The legend as a list in HTML, which wraps on any screen."""
    entries = [pair for axis in figure.axes for pair in zip(*axis.get_legend_handles_labels(), strict=True)]
    marks = "".join(f"<li>{_mark(handle)}{label}</li>" for handle, label in entries)
    return f'<ul class="legend key">{marks}</ul>' if entries else ""


def _mark(handle: Any) -> str:
    from matplotlib.colors import to_hex

    if not hasattr(handle, "get_linestyle") or hasattr(handle, "get_facecolor"):
        return f'<i class="fill" style="--c:{to_hex(handle.get_facecolor())}"></i>'
    kind = {"--": "dashed", ":": "dotted"}.get(handle.get_linestyle(), "solid")
    return f'<i style="--c:{to_hex(handle.get_color())};border-top-style:{kind}"></i>'


def _figure(size: tuple[float, float]) -> tuple["Figure", Any]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"font.size": 8.5}):
        figure = Figure(figsize=size, layout="constrained")
        axis = figure.add_subplot()
    axis.spines[["top", "right"]].set_visible(False)
    _tint(axis)
    return figure, axis


def _second_axis(axis: Any, name: str) -> Any:
    second = axis.twinx()
    second.set_ylim(0, 1.02)
    second.set_ylabel(name)
    second.spines[["top", "left"]].set_visible(False)
    _tint(second)
    return second


def _tint(axis: Any) -> None:
    axis.tick_params(which="both", colors=INK, labelsize=8.5)
    axis.spines[:].set_color(INK)
    for label in (axis.xaxis.label, axis.yaxis.label):
        label.set(color=INK, size=8.5)


def _svg(figure: "Figure", title: str) -> str:
    """The figure as SVG text: transparent, with text as text, and coordinates of two decimals."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "labelmend", "font.size": 8.5}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = GROUP_IDS.sub("<g", METADATA.sub("", KEPT_NUMBERS.sub(r"\1", svg[svg.index("<svg") :])))
    svg = _key(figure) + svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)
    for colour, variable in THEME.items():
        svg = svg.replace(colour, variable)
    return svg
