"""What the command prints: choices, summaries, tables, and a histogram in characters."""

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, get_type_hints

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..data.preflight import PreflightError
from ..data.samples import Samples
from ..detect.summary import headline
from ..errors import InputError, visible
from ..files import to_json, write_atomic
from ..methods import RegisteredMethod
from ..report.build import build_report
from ..run.directory import RunDirectory
from ..training.config import TrainConfig
from ..training.prepare import Prepared, prepare
from ..training.session import train
from ..training.settings import describe
from ..training.signals import Signals
from .logs import RunLog, check_tool
from .notebook import notebook_status
from .progress import observed

NOTES_SHOWN = 5
COLUMNS_SHOWN = 40
WIDEST_TEXT = 200
BLOCKS = " ▁▂▃▄▅▆▇█"


def run_with_progress(
    config: TrainConfig,
    console: Console,
    *,
    data: Samples | None = None,
    signals: Signals | None = None,
    quiet: bool = False,
    report: bool = True,
    title: str | None = None,
) -> RunDirectory:
    """Prepare and train, showing what was chosen and why, and then the progress.

    `data` are samples of Python objects, in place of the configuration's source. Of several processes that train
    together, only the first prints. Progress is shown under `title`, by default the method.
    """
    console = console if os.environ.get("RANK", "0") == "0" else Console(quiet=True)
    if config.log is not None:
        check_tool(config.log, Path(config.out))
    with _status(console, "preparing") as status:
        prepared = _prepared(config, data, status)
    if not quiet:
        show_choices(prepared, console)
    log = None
    if config.log is not None and prepared.run.writes:
        log = RunLog(config.log, prepared.run, settings=_logged_settings(prepared))
    with observed(console, title or prepared.entry.id, prepared.choices.epochs, log=log) as observer:
        run, _ = train(
            prepared, observer=observer, signals=signals, afterwards=build_report if report else lambda run: None
        )
    return run


class _Status(Protocol):
    """A line that says what is being done."""

    def update(self, text: str, /) -> None: ...


def _status(console: Console, text: str) -> AbstractContextManager[_Status]:
    """A line that is there while something is done; of rich's, a notebook would need widgets."""
    if console.is_jupyter and not console.quiet:
        return notebook_status(text)
    return console.status(text)


def _logged_settings(prepared: Prepared) -> dict[str, Any]:
    """What other tools keep beside the curves of a run: what was asked for and what was chosen."""
    asked = {name: value for name, value in asdict(prepared.config).items() if value not in (None, {}, "")}
    chosen = {name: getattr(prepared.choices, name) for name in ("method", "net", "epochs", "batch_size")}
    return asked | chosen | asdict(prepared.options)


def _prepared(config: TrainConfig, data: Samples | None, status: _Status) -> Prepared:
    """A checked run; unusable samples are listed in a file beside the run directory that was not made."""
    try:
        return prepare(config, data=data, advance=_counter(status), progress=_features_counter(status))
    except PreflightError as error:
        listed = Path(f"{config.out}.preflight.json")
        try:
            listed.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(listed, to_json(error.preflight.to_dict()))
        except OSError as lost:
            raise InputError(f"{error}\n  they cannot be listed in {listed}: {lost.strerror or lost}") from None
        raise InputError(f"{error}\n  all of them are listed in {listed}") from None


def _counter(status: _Status) -> Callable[[int], None]:
    checked = 0

    def advance(done: int) -> None:
        nonlocal checked
        checked += done
        if checked % 500 == 0:
            status.update(f"reading and checking images: {checked:,}")

    return advance


def _features_counter(status: _Status) -> Callable[[int, int], None]:
    def progress(done: int, of: int) -> None:
        status.update(f"computing features: {done:,} of {of:,}")

    return progress


def show_choices(prepared: Prepared, console: Console) -> None:
    """Print the data, and every choice with its reason."""
    data, chosen, noise = prepared.data, prepared.choices, prepared.noise
    grid = Table.grid(padding=(0, 2))
    grid.add_row(
        "data",
        f"{data.name}: {len(data):,} samples of {'x'.join(map(str, data.shape))}, {len(data.class_names)} classes",
    )
    if noise is not None:
        nominal = "" if noise["nominal"] is None else f"nominal {noise['nominal']:.1%}, "
        grid.add_row("noise", f"{noise['kind']}, {nominal}really wrong {noise['real']:.1%}")
    if prepared.preflight.skipped:
        grid.add_row("skipped", f"{prepared.preflight.skipped:,} unusable samples, listed in preflight.json")
    for note in prepared.preflight.notes[:NOTES_SHOWN]:
        grid.add_row("note", str(note))
    if len(prepared.preflight.notes) > NOTES_SHOWN:
        grid.add_row("note", f"and {len(prepared.preflight.notes) - NOTES_SHOWN:,} more in preflight.json")
    if not chosen.reasons["features"].startswith("none"):
        grid.add_row("features", chosen.reasons["features"])
    grid.add_row("method", f"{chosen.method} ({chosen.reasons['method']})")
    grid.add_row("net", f"{chosen.net} ({chosen.reasons['net']})")
    grid.add_row("epochs", f"{chosen.epochs} ({chosen.reasons['epochs']})")
    grid.add_row("batch", f"{chosen.batch_size} ({chosen.reasons['batch_size']})")
    grid.add_row("augment", chosen.reasons["augment"])
    if chosen.precision != "no":
        grid.add_row("precision", chosen.reasons["precision"])
    if chosen.seconds:
        grid.add_row("done", f"at about {datetime.now() + timedelta(seconds=chosen.seconds):%H:%M}")
    console.print(grid, highlight=False, markup=False)
    show_columns(data.kind.described().get("columns", []), console)


def show_columns(columns: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print what was made of each column of a table."""
    if not columns:
        return
    table = Table("column", "taken as", "features", "what is in it", box=None, pad_edge=False)
    for column in columns[:COLUMNS_SHOWN]:
        made = str(column["features"]) if column["features"] else ""
        table.add_row(*(Text(visible(cell)) for cell in (column["name"], column["role"], made, column["reason"])))
    console.print(table, highlight=False)
    if len(columns) > COLUMNS_SHOWN:
        console.print(f"and {len(columns) - COLUMNS_SHOWN:,} more columns in run.json", highlight=False)


def show_summary(run: RunDirectory, console: Console) -> None:
    """Print the results of a finished run, and where its files are."""
    described = run.read()
    summary = described["summary"]
    grid = Table.grid(padding=(0, 2))
    if summary["last_accuracy"] is not None:
        grid.add_row("accuracy", f"last {summary['last_accuracy']:.3f}, best {summary['best_accuracy']:.3f}")
    noise = json.loads(run.noise_json.read_bytes())
    grid.add_row("found", headline(noise, described["data"]["samples"]))
    if noise["advice"]:
        grid.add_row("advice", noise["advice"])
    if summary["auc"] is not None:
        grid.add_row("AUC", f"{summary['auc']:.4f} for telling wrong labels from right ones")
    if summary.get("f1") is not None:
        grid.add_row(
            "F1", f"{summary['f1']:.4f} of the flagged labels, calibration error {summary['calibration_error']:.3f}"
        )
    console.print(grid, highlight=False, markup=False)
    lines = [f"labels    {run.labels_csv}", f"report    {run.report}"]
    if noise["flagged"] and described["config"]["source"]:
        lines.append(f"next      labelmend apply {shlex.quote(str(run.path))} --out DEST shows what would change")
    for line in lines:  # not in the grid, which would break a long path or command in two
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def show_labels(labels: pa.Table, count: int, console: Console, *, texts: Mapping[str, str] | None = None) -> None:
    """Print rows of the label table, with their `texts` by id if they have such, and how many there are in all."""
    decided = "decided" in labels.column_names
    table = Table("sample", "given", "suggested", "P(wrong)", "steady", "verdict", box=None, pad_edge=False)
    if decided:
        table.add_column("decided by")
    if texts:
        table.add_column("text", no_wrap=True, overflow="ellipsis", ratio=1)
    for row in labels.to_pylist():
        numbers = f"{row['noisy_probability']:.3f}", f"{row['steadiness']:.0%}"
        who = [Text(visible((row["reviewer"] or "somebody") if row["decided"] else ""))] if decided else []
        text = [Text(visible(" ".join(texts.get(row["id"], "")[:WIDEST_TEXT].split())))] if texts else []
        table.add_row(
            Text(row["id"]), Text(row["given"]), Text(row["suggested"]), *numbers, row["verdict"], *who, *text
        )
    console.print(table, highlight=False)
    console.print(f"{labels.num_rows:,} of {count:,}; --out FILE exports them", highlight=False)


def histogram(losses: NDArray[np.float64], suspected: NDArray[np.bool_], *, width: int = 64, height: int = 6) -> Text:
    """Losses as bars of characters, the suspected ones in red on top of the rest."""
    edges = np.linspace(0, max(float(losses.max()), 1e-9), width + 1)
    kept = np.histogram(losses[~suspected], edges)[0]
    all_of = np.histogram(losses, edges)[0]
    scale = height * 8 / max(np.sqrt(all_of.max()), 1)
    text = Text()
    for row in range(height - 1, -1, -1):
        for low, high in zip(np.sqrt(kept) * scale, np.sqrt(all_of) * scale, strict=True):
            filled = int(np.clip(round(high) - row * 8, 0, 8))
            text.append(BLOCKS[filled], style="cyan" if low >= row * 8 + filled / 2 and low > 0 else "red")
        text.append("\n")
    text.append(f"0{'loss':^{width - 8}}{edges[-1]:>7.2f}", style="dim")
    return text


def show_methods(entries: Mapping[str, RegisteredMethod], console: Console) -> None:
    """Print all methods, one line each."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for entry in entries.values():
        table.add_row(entry.id, entry.summary + ("; needs --trusted" if entry.needs_trusted else ""))
    console.print(table, highlight=False)


def show_settings(entry: RegisteredMethod, optimisation: type, console: Console) -> None:
    """Print what `--set` takes for one method."""
    console.print(f"{entry.id}: {entry.summary}\n", highlight=False, markup=False)
    if entry.needs_trusted:
        console.print("Needs --trusted: samples whose labels are known to be right.\n", highlight=False)
    table = Table("--set", "takes", "default", "meaning", box=None, pad_edge=False)
    for kind in (entry.options, optimisation):
        hints = get_type_hints(kind)
        for field in fields(kind):
            table.add_row(field.name, describe(hints[field.name]), str(field.default), field.metadata.get("help", ""))
    console.print(table, highlight=False, markup=False)
