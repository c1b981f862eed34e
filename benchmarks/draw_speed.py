"""Pictures of what speed.py measured, each as SVG and PNG.

    python benchmarks/draw_speed.py benchmarks/results/speed.json --out docs/images

speed-epochs, speed-mixture, speed-growth and speed-profile; sections that the file lacks are left out.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

OURS, THEIRS, INK, FAINT = "#2a7f9e", "#d1495b", "#333333", "#999999"
SYSTEM_COLOURS = {
    "ce": "#bbbbbb",
    "m fast": "#a9d3e0",
    "m-dyr-h fast": "#2a7f9e",
    "m-dyr-h paper": "#1b5468",
    "md-dyr-sh fast": "#b39ddb",
    "md-dyr-sh paper": "#6a4fa3",
    "reference": "#d1495b",
}
GROUP_COLOURS = (
    "#2a7f9e", "#1b5468", "#e0a030", "#e9c46a", "#8a6fc0", "#d1495b", "#6aa84f", "#b5d6a7", "#cccccc", "#999999",
)  # fmt: skip
WIDTH = 8.0
LEAST_LABELLED = 0.04


def epochs(section: dict[str, Any]) -> Figure:
    """Cost of an epoch of every system in multiples of plain cross-entropy."""
    figure, axis = plt.subplots(figsize=(WIDTH, 4.2))
    names = list(SYSTEM_COLOURS)
    width = 0.86 / len(names)
    for place, name in enumerate(names):
        ratios = [found["systems"][name]["to_ce"] for found in section.values()]
        positions = [net + (place - (len(names) - 1) / 2) * width for net in range(len(section))]
        bars = axis.bar(positions, ratios, 0.92 * width, color=SYSTEM_COLOURS[name], label=name)
        axis.bar_label(bars, fmt="%.2f", fontsize=9, padding=3, color=INK, rotation=90)
    axis.axhline(1.0, color=INK, lw=1, ls="--")
    axis.set_xticks(range(len(section)), list(section))
    axis.tick_params(axis="x", length=0)
    axis.set_ylabel("cost of an epoch, ce = 1")
    axis.margins(y=0.15)
    axis.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    return figure


def mixture(section: dict[str, Any]) -> Figure:
    """Seconds of a fit against the number of losses."""
    figure, axis = plt.subplots(figsize=(WIDTH, 4.0))
    rows = section["sizes"]
    compared = [row for row in rows if "scipy_fit" in row]
    sizes = [row["samples"] for row in rows]
    axis.plot([row["samples"] for row in compared], [row["scipy_fit"] for row in compared], "s-", color=THEIRS)
    axis.plot(sizes, [row["fit_percentiles"] for row in rows], "o--", color=OURS, mfc="white")
    axis.plot(sizes, [row["fit"] for row in rows], "o-", color=OURS)
    axis.plot(sizes, [row["posterior"] for row in rows], "^:", color=FAINT)
    axis.set(xscale="log", yscale="log", xlabel="losses", ylabel="seconds")
    axis.legend(
        ("SciPy, fit", "labelmend, fit, scaled as SciPy's", "labelmend, fit", "labelmend, posterior"),
        frameon=False, loc="upper left",
    )  # fmt: skip
    last = compared[-1]
    ratios = sorted(last[f"scipy_to_{ours}"] for ours in ("fit", "fit_percentiles"))
    axis.annotate(
        f"{ratios[0]:.0f} to {ratios[1]:.0f} times", (last["samples"], last["scipy_fit"]), xytext=(-8, -5),
        textcoords="offset points", color=THEIRS, ha="right", va="bottom",
    )  # fmt: skip
    axis.grid(True, color="#eeeeee")
    return figure


def growth(section: dict[str, Any]) -> Figure:
    """Time per sample while one thing grows at a time."""
    figure, axes = plt.subplots(1, 3, figsize=(WIDTH, 3.2), layout="constrained")
    for axis, (what, unit) in zip(axes, (("samples", ""), ("classes", ""), ("side", ", px")), strict=True):
        rows = section[what]
        places, spent = [row[what] for row in rows], [1e3 * row["seconds_per_sample"] for row in rows]
        axis.plot(places, spent, "o-", color=OURS)
        if what == "side":
            by_area = [spent[0] * (side / places[0]) ** 2 for side in places]
            axis.plot(places, by_area, ":", color=FAINT, label="as the area")
            axis.legend(frameon=False, loc="upper left")
        axis.set_xscale("log")
        axis.set_xticks(places, [short(place) for place in places])
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.minorticks_off()
        axis.set_ylim(0, 1.25 * max(spent))
        axis.set_xlabel(f"{'image side' if what == 'side' else what}{unit}")
        axis.grid(True, color="#eeeeee")
    axes[0].set_ylabel("ms per sample and epoch")
    return figure


def short(number: int) -> str:
    return f"{number / 1000:g}k" if number >= 1000 else str(number)


def profile(section: dict[str, Any]) -> Figure:
    """Where the time of the mean epoch goes, as one bar."""
    figure, axis = plt.subplots(figsize=(WIDTH, 1.4))
    figure.subplots_adjust(left=0, right=1)
    begin = 0.0
    for (name, share), colour in zip(section["shares"]["mean"].items(), GROUP_COLOURS, strict=True):
        axis.barh(0, share, left=begin, color=colour, height=0.6, label=f"{name}, {100 * share:.1f} %")
        if share >= LEAST_LABELLED:
            axis.text(
                begin + share / 2, 0, f"{100 * share:.0f} %", ha="center", va="center", color="white", weight="bold"
            )
        begin += share
    axis.set_xlim(0, 1)
    axis.set_ylim(-0.35, 0.35)
    axis.axis("off")
    axis.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, 0.0), frameon=False, fontsize=10)
    return figure


PICTURES: dict[str, Callable[[dict[str, Any]], Figure]] = {
    "epochs": epochs,
    "mixture": mixture,
    "growth": growth,
    "profile": profile,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    matplotlib.use("agg")
    plt.rcParams.update({
        "font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "savefig.facecolor": "white",
        "svg.hashsalt": "labelmend", "svg.fonttype": "path",
    })  # fmt: skip
    measured = json.loads(asked.results.read_text())
    asked.out.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        if name in measured:
            figure = draw(measured[name])
            for kind, metadata in (("svg", {"Date": None}), ("png", {})):
                figure.savefig(asked.out / f"speed-{name}.{kind}", dpi=150, bbox_inches="tight", metadata=metadata)
            plt.close(figure)


if __name__ == "__main__":
    main()
