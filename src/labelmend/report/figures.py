"""Figures of a run as inline SVG, in colours that follow the page's light or dark theme."""

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLEAN, NOISY, INK = "#2a7f9e", "#d1495b", "#888888"
METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
KEPT_NUMBERS = re.compile(r"(\d+\.\d{2})\d+")


def loss_histogram(losses: NDArray[np.float64], mixture: Mapping[str, float] | None, kind: str) -> str:
    """Losses of all samples with both components of the fitted mixture over them (the paper's Fig. 2)."""
    figure, axis = _figure(6.4, 3.0)
    axis.hist(losses, bins=60, density=True, color=INK, alpha=0.45, label="samples")
    if mixture is not None:
        grid, densities = component_densities(mixture, kind, float(losses.max()))
        axis.plot(grid, densities[0], color=CLEAN, lw=2, label="clean component")
        axis.plot(grid, densities[1], color=NOISY, lw=2, label="noisy component")
        tallest = np.histogram(losses, bins=60, density=True)[0].max()
        axis.set_ylim(0, 1.15 * tallest)
    axis.set_xlabel("cross-entropy loss")
    axis.set_ylabel("density")
    axis.legend(frameon=False)
    return _svg(figure, "Histogram of the losses with the fitted mixture")


def curves(epochs: Sequence[Mapping[str, Any]]) -> str:
    """Test accuracy, detection AUC and estimated noise rate over the epochs."""
    figure, axis = _figure(6.4, 3.0)
    series = (("test_accuracy", "test accuracy", CLEAN), ("auc", "AUC for wrong labels", INK))
    for key, name, colour in (*series, ("noise_rate", "estimated noise rate", NOISY)):
        points = [(e["epoch"], e[key]) for e in epochs if e[key] is not None]
        if points:
            axis.plot(*zip(*points, strict=True), color=colour, lw=2, label=name, marker="." if len(points) < 5 else "")
    axis.set_xlabel("epoch")
    axis.set_ylim(0, 1.02)
    axis.legend(frameon=False, loc="center right")
    return _svg(figure, "Accuracy, AUC and noise rate by epoch")


def component_densities(
    mixture: Mapping[str, float], kind: str, largest: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted densities of the two components over raw losses, [2, n]."""
    import torch

    from ..mixture import noise_model

    model = noise_model(kind)
    first, second = model.mixture.parameter_names
    sides = ((mixture[f"{first}_{side}"], mixture[f"{second}_{side}"]) for side in ("clean", "noisy"))
    model.mixture.weights_ = (mixture["weight_clean"], mixture["weight_noisy"])
    model.mixture.parameters_ = (next(sides), next(sides))
    model.low, model.span = mixture["low"], mixture["span"]
    grid = np.linspace(2e-3, 1, 600) * largest
    scaled = model.scale(model.scaling.warp(torch.from_numpy(grid)))
    stretch = np.gradient(scaled.numpy(), grid)
    return grid, model.mixture.density(scaled).numpy() * stretch


def _figure(width: float, height: float) -> tuple["Figure", Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axis = figure.add_subplot()
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(colors=INK)
    axis.spines[:].set_color(INK)
    axis.xaxis.label.set_color(INK)
    axis.yaxis.label.set_color(INK)
    return figure, axis


def _svg(figure: "Figure", title: str) -> str:
    """The figure as SVG text: transparent, with text as text, and coordinates of two decimals."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "labelmend"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = METADATA.sub("", KEPT_NUMBERS.sub(r"\1", svg[svg.index("<svg") :]))
    return svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)
