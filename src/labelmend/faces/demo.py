"""The whole story in about a minute: make labels of real images wrong, train twice, find the wrong ones."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..data.readers.named import NAMED
from ..detect.summary import headline
from ..files import write_atomic
from ..run.directory import RunDirectory
from ..run.evidence import read_suspects
from ..training.config import TrainConfig
from ..training.signals import Signals
from .pictures import Captioned, Layout, fitted, layout, row_of_pictures
from .stories import Story
from .terminal import histogram, run_with_progress

SHOWN = 10
MISTAKES = "mistakes.csv"
PLAIN = "ce"
YOURS = "labelmend train my-images/ --out runs/mine"


@dataclass(frozen=True)
class Judged:
    """A finished run, and the columns of its label table."""

    run: RunDirectory
    columns: dict[str, NDArray[Any]]

    @classmethod
    def read(cls, run: RunDirectory) -> "Judged":
        """From the files of the run."""
        labels = pq.read_table(run.labels_parquet).to_pydict()
        return cls(run, {name: np.asarray(values) for name, values in labels.items()})

    @property
    def ranked(self) -> NDArray[np.int64]:
        """Rows, the most suspicious first."""
        return np.argsort(self.columns["rank"])


def tell(
    story: Story,
    folder: Path,
    *,
    epochs: int | None,
    limit: int | None = None,
    seed: int,
    threads: int | None,
    console: Console,
    signals: Signals,
) -> None:
    """Run and narrate a demonstration whose opening has been printed; its two runs are left in `folder`."""
    asked = TrainConfig(
        story.source,
        str(folder / story.method),
        method=story.method,
        net=story.net,
        epochs=epochs or story.epochs,
        time=None if epochs else story.time,
        noise=story.noise or f"matrix:{_write_mistakes(story, folder)}",
        limit=limit,
        seed=seed,
        threads=threads,
    )
    robust = run_with_progress(asked, console, signals=signals, title="labelmend")
    chosen = robust.read()["chosen"]  # the plain training gets what labelmend chose, so that only the method differs
    same = replace(asked, net=chosen["net"], epochs=chosen["epochs"], time=None)
    same = replace(same, method=PLAIN, out=str(folder / PLAIN), settings={"precision": chosen["precision"]})
    plain = run_with_progress(same, console, signals=signals, quiet=True, report=False, title="plain")
    _compare(story, {f"plain training ({PLAIN})": plain, f"labelmend ({story.method})": robust}, console)
    _show_labels(story, Judged.read(robust), console)


def _write_mistakes(story: Story, folder: Path) -> Path:
    """The file of the matrix that labels are drawn from: row = true class, column = given class."""
    names = list(NAMED[story.source](None).class_names)
    rates = np.full((len(names), len(names)), story.slips / (len(names) - 1))
    np.fill_diagonal(rates, 1 - story.slips)
    for source, targets in story.taken_for.items():
        for target, rate in targets.items():
            rates[names.index(source), names.index(target)] += rate
            rates[names.index(source), names.index(source)] -= rate
    path = folder / MISTAKES
    write_atomic(path, "".join(",".join(f"{rate:.9f}" for rate in row) + "\n" for row in rates).encode())
    return path


def _compare(story: Story, runs: dict[str, RunDirectory], console: Console) -> None:
    table = Table("", "best accuracy", "last accuracy", "memorised", box=None, pad_edge=False)
    for name, run in runs.items():
        summary = run.read()["summary"]
        best, last = summary["best_accuracy"], summary["last_accuracy"]
        table.add_row(name, f"{best:.1%}", f"{last:.1%}", f"{100 * (best - last):.1f} points lost")
        held = run.read()["data"]["test_samples"]
    console.print(f"\n[bold]Accuracy on {held} test {story.sample} with right labels[/bold]")
    console.print(table, highlight=False)


def _show_labels(story: Story, judged: Judged, console: Console) -> None:
    columns = judged.columns
    fits = layout(console) if story.pictures else None
    if story.pictures:
        noise = json.loads(judged.run.noise_json.read_bytes())
        console.print("\n[bold]What labelmend found[/bold]")
        console.print(headline(noise, len(columns["id"])), highlight=False, markup=False)
    else:
        console.print("\n[bold]What the mixture saw[/bold]: losses of all samples (square-root scale), suspects in red")
        console.print(histogram(columns["loss"], columns["verdict"] != "keep"))
    if fits is None:
        _show_table(judged, console)
    else:
        _show_pictures(judged, fits, console)
    before = (columns["given"] != columns["truth"]).mean()
    after = (columns["suggested"] != columns["truth"]).mean()
    auc = judged.run.read()["summary"]["auc"]
    better = "bold green" if after < before else "bold"
    console.print(
        f"\nWrong labels: [bold]{before:.1%}[/bold] before, [{better}]{after:.1%}[/{better}] after taking "
        f"the suggestions (AUC {auc:.4f}).",
        highlight=False,
    )
    run = judged.run
    lines = (f"Every label: {run.labels_csv}", f"Report:      {run.report}", f"Your data:   {YOURS}")
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _show_table(judged: Judged, console: Console) -> None:
    columns = judged.columns
    table = Table("sample", "given", "suggested", "P(wrong)", "true", box=None, pad_edge=False)
    for i in judged.ranked[:SHOWN]:
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


def _show_pictures(judged: Judged, fits: Layout, console: Console) -> None:
    """A row of the most suspicious labels, and a row of the most frequent mistakes."""
    first = judged.ranked[: fits.across].tolist()
    frequent = frequent_mistakes(judged, without=first)[: fits.across]
    counts = [Text(f"one of {count:,} such labels", style="dim") for _, count in frequent]
    _show_row("The most suspicious labels", judged, first, [], fits, console)
    if frequent:
        rows = [row for row, _ in frequent]
        _show_row("What was mistaken for what most often", judged, rows, counts, fits, console)


def frequent_mistakes(judged: Judged, *, without: Sequence[int]) -> list[tuple[int, int]]:
    """For each pair of given and suggested label, the most suspicious row that was not shown, and the pair's count."""
    columns = judged.columns
    pairs = [
        (row, (columns["given"][row], columns["suggested"][row]))
        for row in judged.ranked.tolist()
        if columns["verdict"][row] == "relabel"
    ]
    counts = Counter(pair for _, pair in pairs)
    first = {pair: row for row, pair in reversed(pairs) if row not in without}
    return [(first[pair], count) for pair, count in counts.most_common() if pair in first]


def _show_row(
    title: str, judged: Judged, rows: Sequence[int], more: Sequence[Text], fits: Layout, console: Console
) -> None:
    evidence, _ = read_suspects(judged.run) or (None, [])
    ids = [] if evidence is None else evidence["id"].to_pylist()
    drawn = []
    for position, row in enumerate(rows):
        id = judged.columns["id"][row]
        if evidence is None or id not in ids:
            continue
        content = evidence["picture"][ids.index(id)].as_py()
        caption = [*_caption(judged.columns, row), *more[position : position + 1]]
        drawn.append(Captioned(fitted(content, fits.side), caption))
    if drawn:
        console.print(f"\n[bold]{title}[/bold]")
        console.print(row_of_pictures(drawn), highlight=False, soft_wrap=True)


def _caption(columns: dict[str, NDArray[Any]], row: int) -> list[Text]:
    """The label and what it should be, and whether that is so."""
    given, suggested, truth = (str(columns[name][row]) for name in ("given", "suggested", "truth"))
    if columns["verdict"][row] == "relabel":
        labels = Text.assemble((given, "red strike"), (" → ", "dim"), (suggested, "bold"))
        found = suggested == truth
    else:
        labels = Text.assemble((given, "red"), (" looks wrong", "dim"))
        found = given != truth
    told = "the label was right" if given == truth else f"truth: {truth}"
    return [labels, Text.assemble(("✓ ", "green") if found else ("✗ ", "red"), (told, "dim"))]
