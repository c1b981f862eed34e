"""The paper's figures, drawn from what runs left behind; each with the numbers that it shows."""

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from ..data.sources import SourceOptions, open_source
from ..errors import InputError
from ..files import write_atomic
from ..methods.paper import PUBLISHED
from ..methods.timeline import Timeline
from ..mixture import noise_model
from ..report.embedding import PALETTE, class_colours, in_the_plane
from ..report.read import Findings, read_findings
from ..run.directory import RunDirectory
from ..run.evidence import principal_components, read_features
from ..run.model import load_model
from .catalogue import Planned
from .protocol import Scale
from .runs import RunStore
from .tables import csv_text, short

CLEAN, NOISY, INK, ACCENT = "#2a7f9e", "#d1495b", "#333333", "#8a6fc0"
LEVELS = {0: "#9aa0a6", 20: "#2a7f9e", 50: "#8a6fc0", 80: "#d1495b"}
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "svg.hashsalt": "labelmend",
    "svg.fonttype": "none",
}
FIG2_EPOCH = 10
GMM = "GMM"
"""The row with the Gaussian mixture."""
BINS = 40
LEARNED = math.log(2)
"""Loss under which the given label has more than half of the probability."""
MEMORISED = 10.0
"""Points between best and last from which on training counts as memorising, and as many percent of wrong labels."""
WIDE = 8.4


@dataclass(frozen=True)
class Drawn:
    """A figure, what it shows in words, and its numbers as CSV."""

    figure: Figure
    caption: str
    numbers: str

    def save(self, folder: Path, name: str) -> None:
        """Write it as SVG and PNG, with its numbers beside it."""
        with rc_context(STYLE):
            for kind, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 150})):
                buffer = io.BytesIO()
                self.figure.savefig(buffer, format=kind, facecolor="white", **options)
                write_atomic(folder / f"{name}.{kind}", buffer.getvalue())
        write_atomic(folder / f"{name}.csv", self.numbers.encode())


@dataclass(frozen=True)
class Drawing:
    """What figures are drawn from: the runs of an experiment, where they are kept, and options."""

    scale: Scale
    runs: Sequence[Planned]
    store: RunStore
    embedding: str = "pca"

    def findings(self, run: Planned) -> Findings:
        """What a run found."""
        return read_findings(self._kept(run))

    def epochs(self, run: Planned) -> list[dict[str, Any]]:
        """What a run recorded of each epoch."""
        return self._kept(run).epochs()

    def _kept(self, run: Planned) -> RunDirectory:
        directory = self.store.run(run.config)
        if not directory.run_json.is_file():
            raise InputError(
                f"{directory.path} is gone, and its result is not; delete its parent folder to run it again"
            )
        return directory


def fig1(drawing: Drawing) -> Drawn:
    """Median and quartiles of clean and of noisy samples' losses over the epochs (Fig. 1)."""
    runs = drawing.runs
    figure, axes = _axes(1, len(runs), height=3.2, sharey=True)
    numbers: list[list[object]] = []
    for axis, run in zip(axes[0], runs, strict=True):
        losses, wrong = _losses(drawing.findings(run))
        for name, chosen, colour in (("clean", ~wrong, CLEAN), ("noisy", wrong, NOISY)):
            low, middle, high = np.quantile(losses[:, chosen], (0.25, 0.5, 0.75), axis=1)
            epochs = np.arange(1, len(middle) + 1)
            axis.fill_between(epochs, low, high, color=colour, alpha=0.22, linewidth=0)
            axis.plot(epochs, middle, color=colour, lw=2, label=f"{name} samples")
            rows = zip(epochs, low, middle, high, strict=True)
            numbers += [[run.row, name, int(epoch), *map(short, values)] for epoch, *values in rows]
        axis.set(title=f"trained with {run.row}", xlabel="epoch", xlim=(1, len(losses)))
    axes[0][0].set(ylabel="cross-entropy loss", ylim=(0, None))
    axes[0][-1].legend(frameon=False, loc="upper left")
    caption = (
        f"Losses under {runs[0].noise} % noise on {drawing.scale.stages[runs[0].data].source}: medians as lines, the "
        "middle half of the samples as bands."
    )
    return Drawn(figure, caption, csv_text([["row", "samples", "epoch", "lower", "median", "upper"], *numbers]))


def fig2(drawing: Drawing) -> Drawn:
    """Losses early in plain training with the two mixtures fitted to them (Fig. 2)."""
    (run,) = drawing.runs
    losses, wrong = _losses(drawing.findings(run))
    published, drops, _ = PUBLISHED["plain"]
    epoch = Timeline(published, drops, run.config.epochs or published).after(FIG2_EPOCH)
    values = torch.from_numpy(losses[epoch - 1].astype(np.float64))
    figure, axes = _axes(1, 2, height=3.2)
    edges = np.linspace(0, 1, BINS + 1)
    middles = torch.from_numpy((edges[1:] + edges[:-1]) / 2)
    columns: dict[str, NDArray[np.float64]] = {"loss": middles.numpy()}
    for axis, kind, title in zip(axes[0], ("bmm", "gmm"), ("beta mixture", "Gaussian mixture"), strict=True):
        model = noise_model(kind).fit(values)
        scaled = model.scale(values.clone()).numpy()
        weights = np.full(len(scaled), BINS / len(scaled))
        for name, chosen, colour in (("clean", ~wrong, CLEAN), ("noisy", wrong, NOISY)):
            heights = np.histogram(scaled[chosen], edges, weights=weights[chosen])[0]
            axis.stairs(heights, edges, fill=True, color=colour, alpha=0.35, label=f"{name} samples")
            columns[name] = heights
        grid = torch.linspace(0.005, 0.995, 400, dtype=torch.float64)
        for component, colour in zip(model.mixture.density(grid), (CLEAN, NOISY), strict=True):
            axis.plot(grid, component, color=colour, lw=1.4, ls="--")
        axis.plot(grid, model.mixture.density(grid).sum(dim=0), color=INK, lw=1.8, label="mixture")
        columns[kind] = model.mixture.density(middles).sum(dim=0).numpy()
        tallest = max(columns["clean"].max(), columns["noisy"].max())
        axis.set(title=title, xlabel="normalised loss", ylabel="density", xlim=(0, 1), ylim=(0, 1.5 * tallest))
    axes[0][1].legend(frameon=False)
    caption = (
        f"Losses of {drawing.scale.stages[run.data].source} at {run.noise} % noise after {epoch} of "
        f"{run.config.epochs} epochs of cross-entropy, by the truth, with each mixture (solid) and its two components "
        "(dashed)."
    )
    return Drawn(
        figure, caption, csv_text([list(columns), *([*map(short, row)] for row in zip(*columns.values(), strict=True))])
    )


def fig3(drawing: Drawing) -> Drawn:
    """What goes into the last layer, in the plane, for training (top) and validation (bottom) samples (Fig. 3)."""
    runs = drawing.runs
    figure, axes = _axes(2, len(runs), height=5.4)
    numbers: list[list[object]] = []
    shown = runs[0].config
    data, _ = open_source(shown.source, SourceOptions(root=shown.root, size=shown.size))
    if data.test is None or not isinstance(data.test.inputs, torch.Tensor):
        raise InputError(f"{shown.source} has no test samples in memory to draw")
    for column, run in enumerate(runs):
        directory, truth = drawing.store.run(run.config), drawing.findings(run).column("truth")
        kept = read_features(directory)
        if kept is None:
            raise InputError(f"{directory.features} is missing; delete the run's folder to make it again")
        validation, _ = principal_components(load_model(directory).features(data.test.inputs))
        parts = (
            ("training", kept.components, truth[kept.samples]),
            ("validation", validation, data.test.labels.observed.numpy()),
        )
        for axis, (name, points, classes) in zip(axes[:, column], parts, strict=True):
            places = in_the_plane(points, drawing.embedding)
            colours = class_colours(classes, len(data.class_names))
            axis.scatter(*places.T, s=5, c=colours[classes].tolist(), alpha=0.6, linewidths=0, rasterized=True)
            axis.set_xticks([])
            axis.set_yticks([])
            axis.spines[:].set_visible(False)
            axis.set_title(f"{run.row}: {name}")
            numbers += [
                [run.row, name, data.class_names[true], short(x), short(y)]
                for (x, y), true in zip(places, classes, strict=True)
            ]
    if len(data.class_names) <= len(PALETTE):
        dots = [Line2D([], [], ls="", marker="o", color=colour) for colour in colours]
        figure.legend(dots, data.class_names, loc="outside lower center", ncols=10, frameon=False, fontsize=8)
    drawn = "UMAP of the features" if drawing.embedding == "umap" else "The features' first two principal components"
    caption = (
        f"{drawn} of {drawing.scale.stages[runs[0].data].source} under {runs[0].noise} % noise, coloured by the true "
        "class."
    )
    return Drawn(figure, caption, csv_text([["row", "samples", "class", "x", "y"], *numbers]))


def appendix_a(drawing: Drawing) -> Drawn:
    """Accuracy and the mixture's AUC over the epochs of M-DYR-H, and the Gaussian mixture beside it (Fig. 4)."""
    roles = list(dict.fromkeys(run.data for run in drawing.runs))
    figure, axes = _axes(len(roles), 3, height=2.7 * len(roles))
    recorded = {run.key: drawing.epochs(run) for run in drawing.runs}
    numbers = [
        [run.data, run.row, run.noise, run.config.seed, *(record[name] for name in ("epoch", "test_accuracy", "auc"))]
        for run in drawing.runs
        for record in recorded[run.key]
    ]
    for line, role in zip(axes, roles, strict=True):
        own = [run for run in drawing.runs if run.data == role]
        beta = [run for run in own if run.row != GMM]
        for level, colour in LEVELS.items():
            same = [recorded[run.key] for run in beta if run.noise == level]
            _band(line[0], same, "test_accuracy", colour, f"{level} %", percent=True)
            _band(line[1], same, "auc", colour, f"{level} %")
        for name, colour, chosen in (("BMM", NOISY, beta), ("GMM", INK, [run for run in own if run.row == GMM])):
            _band(line[2], [recorded[run.key] for run in chosen if run.noise == 80], "auc", colour, name)
        source = drawing.scale.stages[role].source
        line[0].set(title=f"{source}: accuracy", ylabel="test accuracy (%)", xlabel="epoch")
        line[1].set(title="AUC of the beta mixture", ylabel="AUC", xlabel="epoch")
        line[2].set(title="BMM and GMM at 80 %", ylabel="AUC", xlabel="epoch")
        for axis in line:
            if axis.lines:
                axis.legend(frameon=False, fontsize=8)
    seeds = len({run.config.seed for run in drawing.runs})
    over = "one seed" if seeds == 1 else f"mean and range of {seeds} seeds"
    caption = f"M-DYR-H over its epochs, {over}, for each noise level; and with the Gaussian mixture."
    columns = ["data", "row", "noise", "seed", "epoch", "accuracy", "auc"]
    return Drawn(figure, caption, csv_text([columns, *numbers]))


def memorising(drawing: Drawing) -> Drawn:
    """How far plain training ends under its best, and how many wrong labels it learned, by passes over the images."""
    numbers: list[list[object]] = []
    curves: dict[str, list[tuple[int, float, float]]] = {}
    for run in drawing.runs:
        records, (losses, wrong) = drawing.epochs(run), _losses(drawing.findings(run))
        accuracies = [record["test_accuracy"] for record in records]
        best, last, learned = max(accuracies), accuracies[-1], float((losses[-1, wrong] < LEARNED).mean())
        net, augmented, epochs = run.config.net, run.config.settings["augment"], len(records)
        images = drawing.scale.stages[run.data].samples
        numbers.append([net, augmented, images, epochs, run.config.seed, *map(short, (best, last, learned))])
        name = f"{images:,} images, {net}, {'not augmented' if augmented == 'none' else augmented}"
        curves.setdefault(name, []).append((epochs, best - last, learned))
    figure, (line,) = _axes(1, 2, height=3.2)
    for (name, points), colour in zip(curves.items(), (*LEVELS.values(), INK), strict=False):
        passes, lost, share = np.asarray(sorted(points)).T
        line[0].plot(passes, 100 * lost, color=colour, marker="o", lw=1.6, label=name)
        line[1].plot(passes, 100 * share, color=colour, marker="o", lw=1.6, label=name)
    lengths = sorted({epochs for points in curves.values() for epochs, *_ in points})
    titles = ("best accuracy less the last", "wrong labels learned")
    for axis, title, unit in zip(line, titles, ("points", "%"), strict=True):
        axis.axhline(MEMORISED, color=INK, lw=1, ls="--")
        axis.set(title=title, xlabel="epochs of the run", ylabel=unit, xscale="log")
        axis.set_xticks(lengths, labels=map(str, lengths))
        axis.minorticks_off()
        axis.set_ylim(0, max(axis.get_ylim()[1], 1.2 * MEMORISED))
    line[0].legend(frameon=False, fontsize=8, loc="center left")
    run = drawing.runs[0]
    caption = (
        f"Plain cross-entropy on {drawing.scale.stages[run.data].source} at {run.noise} % noise: points of accuracy "
        "between the best epoch and the last, and the share of wrong labels that get more than half of the "
        f"probability in the end. Dashed: {MEMORISED:g}, from which on it counts as memorising."
    )
    columns = ["net", "augment", "images", "epochs", "seed", "best", "last", "learned"]
    return Drawn(figure, caption, csv_text([columns, *numbers]))


FIGURES: dict[str, Callable[[Drawing], Drawn]] = {
    "fig1": fig1,
    "fig2": fig2,
    "fig3": fig3,
    "appendix-a": appendix_a,
    "memorising": memorising,
}


def _axes(rows: int, columns: int, *, height: float, sharey: bool = False) -> tuple[Figure, Any]:
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDE, height), layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False, sharey=sharey)


def _band(
    axis: Any, runs: list[list[dict[str, Any]]], name: str, colour: str, label: str, *, percent: bool = False
) -> None:
    """Mean and range over seeds; nothing where nothing was measured."""
    series = [[record[name] for record in records] for records in runs]
    if not series or any(value is None for values in series for value in values):
        return
    values = np.asarray(series) * (100 if percent else 1)
    epochs = np.arange(1, values.shape[1] + 1)
    axis.fill_between(epochs, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.2, linewidth=0)
    axis.plot(epochs, values.mean(axis=0), color=colour, lw=1.6, label=label)


def _losses(findings: Findings) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Losses of every epoch, [epochs, n], and which samples are really noisy."""
    kept = findings.losses_by_epoch()
    if kept is None:
        raise InputError(f"{findings.run.losses} is missing; delete the run's folder to make it again")
    losses, rows = kept
    wrong = findings.column("truth") != findings.column("given")
    return losses.astype(np.float32), wrong[rows]
