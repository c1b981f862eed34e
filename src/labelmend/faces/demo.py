"""The whole story in about a minute: corrupt real images' labels, train twice, find the wrong ones, correct them."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from ..errors import InputError
from ..run.directory import RunDirectory
from ..training.config import TrainConfig
from ..training.signals import Signals
from .terminal import histogram, run_with_progress

MARKER = ".labelmend-demo"
SHOWN = 10


def tell(folder: Path, *, epochs: int, seed: int, threads: int | None, console: Console, signals: Signals) -> None:
    """Run and narrate the demonstration; its two runs are left in `folder`."""
    asked = TrainConfig("digits", str(folder), epochs=epochs, noise="symmetric:0.5", seed=seed, threads=threads)
    _clear(folder)
    console.rule("labelmend demo")
    console.print(
        "Real handwritten digits. Half of their labels are now redrawn at random, and nobody tells the training which. "
        "Two networks learn from them: one plainly, one with labelmend.\n"
    )
    runs = {}
    for method in ("ce", "m-dyr-h"):
        config = replace(asked, method=method, out=str(folder / method))
        runs[method] = run_with_progress(config, console, signals=signals, quiet=method != "ce")
    (folder / MARKER).touch()
    _compare(runs, console)
    _show_labels(runs["m-dyr-h"], console)


def _clear(folder: Path) -> None:
    if not folder.exists():
        folder.mkdir(parents=True)
    elif (folder / MARKER).is_file():
        shutil.rmtree(folder)
        folder.mkdir()
    elif not folder.is_dir() or any(folder.iterdir()):
        raise InputError(f"{folder} exists and was not made by the demo; choose another folder with --out")
    (folder / MARKER).touch()


def _compare(runs: dict[str, RunDirectory], console: Console) -> None:
    table = Table("", "best accuracy", "last accuracy", "memorised", box=None, pad_edge=False)
    for method, name in (("ce", "plain training (ce)"), ("m-dyr-h", "labelmend (m-dyr-h)")):
        summary = runs[method].read()["summary"]
        best, last = summary["best_accuracy"], summary["last_accuracy"]
        table.add_row(name, f"{best:.1%}", f"{last:.1%}", f"{100 * (best - last):.1f} points lost")
    held = runs["ce"].read()["data"]["test_samples"]
    console.print(f"\n[bold]Accuracy on {held} test images with right labels[/bold]")
    console.print(table, highlight=False)


def _show_labels(run: RunDirectory, console: Console) -> None:
    labels = pq.read_table(run.labels_parquet).to_pydict()
    columns = {name: np.asarray(values) for name, values in labels.items()}
    suspected = columns["verdict"] != "keep"
    console.print("\n[bold]What the mixture saw[/bold]: losses of all samples (square-root scale), suspects in red")
    console.print(histogram(columns["loss"], suspected))
    table = Table("sample", "given", "suggested", "P(wrong)", "true", box=None, pad_edge=False)
    order = np.argsort(columns["rank"])
    for i in order[:SHOWN]:
        right = "[green]✓[/green]" if columns["suggested"][i] == columns["truth"][i] else "[red]✗[/red]"
        probability = f"{columns['noisy_probability'][i]:.3f}"
        table.add_row(
            columns["id"][i],
            columns["given"][i],
            columns["suggested"][i],
            probability,
            f"{columns['truth'][i]} {right}",
        )
    console.print(f"\n[bold]The {SHOWN} most suspicious labels[/bold]")
    console.print(table, highlight=False)
    before = (columns["given"] != columns["truth"]).mean()
    after = (columns["suggested"] != columns["truth"]).mean()
    auc = run.read()["summary"]["auc"]
    console.print(
        f"\nWrong labels: [bold]{before:.1%}[/bold] before, [bold green]{after:.1%}[/bold green] after taking "
        f"the suggestions (AUC {auc:.4f}).",
        highlight=False,
    )
    console.print(f"Every label: {run.labels_csv}\nReport:      {run.report}", highlight=False, soft_wrap=True)
