"""Pictures of what judging.py measured, each as SVG and PNG: judging-reliability and judging-risk."""

from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

OURS, THEIRS, FAINT = "#2a7f9e", "#d1495b", "#999999"
COLOURS = {"cleanlab normalized_margin": THEIRS, "labelmend": OURS}
NAMES = {"labelmend": "labelmend, P(wrong)", "cleanlab normalized_margin": "cleanlab, 1 - normalised margin"}
LARGEST_DOT = 160


def draw(results: dict[str, Any], folder: Path) -> None:
    """Draw all pictures into the folder."""
    matplotlib.use("agg")
    plt.rcParams.update({
        "font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "savefig.facecolor": "white",
        "svg.hashsalt": "labelmend", "svg.fonttype": "path",
    })  # fmt: skip
    for name, panel in (("reliability", reliability), ("risk", risk)):
        figure = _panels(results, panel)
        for kind, metadata in (("svg", {"Date": None}), ("png", {})):
            figure.savefig(folder / f"judging-{name}.{kind}", dpi=130, metadata=metadata)
        plt.close(figure)


def reliability(axis: Axes, rows: dict[str, Any]) -> None:
    """Share of really wrong labels against P(wrong), in ten bins; the area of a dot is the share of the samples."""
    axis.plot([0, 1], [0, 1], color=FAINT, lw=1, ls="--")
    for system, colour in COLOURS.items():
        counts, said, real = np.array(rows[system]["bins"]).T
        axis.plot(said, real, "-", color=colour, lw=1.2, label=NAMES[system])
        axis.scatter(said, real, s=8 + LARGEST_DOT * counts / counts.sum(), color=colour, alpha=0.8)
    axis.set(xlabel="P(wrong)", ylabel="share really wrong", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))


def risk(axis: Axes, rows: dict[str, Any]) -> None:
    """Share of wrong labels among those that are trusted most."""
    for system, colour in COLOURS.items():
        shares = rows[system]["risk"]
        axis.plot(np.linspace(1 / len(shares), 1, len(shares)), shares, color=colour, lw=1.5, label=NAMES[system])
    axis.axhline(rows["labelmend"]["real_rate"], color=FAINT, lw=1, ls="--")
    axis.set(xlabel="share of labels kept, surest first", ylabel="share wrong among them", xlim=(0, 1))
    axis.set_ylim(bottom=0)


def _panels(results: dict[str, Any], panel: Any) -> Figure:
    """One panel a set, and the legend in the place of the sixth."""
    figure, axes = plt.subplots(2, 3, figsize=(10, 6.4), layout="constrained")
    places = list(axes.flat)
    for axis, (name, found) in zip(places, results["sets"].items(), strict=False):
        panel(axis, {row["system"]: row for row in found["systems"]})
        axis.set_title(name, fontsize=10)
        axis.grid(True, color="#eeeeee")
        axis.set_axisbelow(True)
    for axis in places[len(results["sets"]) :]:
        axis.axis("off")
    places[-1].legend(*places[0].get_legend_handles_labels(), loc="center", frameon=False)
    return figure
