"""What a notebook shows: a run, its corrections, and one progress bar that is updated in place.

The bar is plain HTML under a display id of IPython, so that it needs no widgets: without ipywidgets, rich's bar would
show nothing until the end and warn at every refresh.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from ..detect.summary import headline
from ..detect.table import SHOWN, SHOWN_COLUMNS
from ..errors import InputError
from ..markup import html_block, html_facts, html_lines, html_table, html_text
from ..run.decisions import decided_labels
from ..run.directory import RunDirectory
from ..run.labels import ranked_labels
from ..run.noise import read_noise
from ..training.observer import Observer
from .words import EpochState, duration

SECONDS_BETWEEN = 0.25
"""Least time between two updates of an output: each one is a message to the browser."""
LONGEST_WARNING = 400


class InPlace:
    """One output of a notebook, replaced whenever something new is shown."""

    def __init__(self) -> None:
        self.output: Any = None
        self.shown_at = 0.0

    def show(self, html: str, *, at_once: bool = False) -> None:
        """Replace what is shown, unless that was done a moment ago."""
        now = time.monotonic()
        if self.output is not None and not at_once and now - self.shown_at < SECONDS_BETWEEN:
            return
        self.shown_at = now
        ipython = import_module("IPython.display")
        if self.output is None:
            self.output = ipython.display(ipython.HTML(html), display_id=True)
        else:
            self.output.update(ipython.HTML(html))


class NotebookStatus:
    """A line that says what is being done."""

    def __init__(self) -> None:
        self.place = InPlace()

    def update(self, text: str) -> None:
        """Say something else."""
        self.place.show(f"<em>{html_text(text)}…</em>")

    def close(self) -> None:
        """Leave nothing behind."""
        self.place.show("", at_once=True)


@contextmanager
def notebook_status(text: str) -> Iterator[NotebookStatus]:
    """A line that is there for as long as the work inside takes."""
    status = NotebookStatus()
    status.update(text)
    try:
        yield status
    finally:
        status.close()


class NotebookObserver(Observer):
    """A progress bar over all steps of a run, with accuracy, estimated noise rate and time left beside it."""

    def __init__(self, title: str, epochs: int) -> None:
        self.title, self.state = title, EpochState(epochs)
        self.place = InPlace()
        self.done, self.steps, self.began_with = 0, 0, 0
        self.said = ""
        self.warnings: list[str] = []
        self.started = time.monotonic()

    def stage(self, epoch: int, name: str, steps: int, done: int = 0) -> None:
        if steps and not self.steps:  # what comes before the first step says nothing about the others
            self.started, self.began_with = time.monotonic(), steps * (epoch - 1) + done
        if steps:
            self.steps, self.done = steps, steps * (epoch - 1) + done
        self._show()

    def advance(self) -> None:
        self.done += 1
        self._show()

    def epoch(self, record: dict[str, Any]) -> None:
        self.done, self.said = self.steps * record["epoch"], self.state.after(record)
        self._show(at_once=record["epoch"] == self.state.epochs)

    def warn(self, warning: str) -> None:
        self.warnings.append(f"warning: {warning}")
        self._show(at_once=True)

    def _show(self, *, at_once: bool = False) -> None:
        total, passed = self.steps * self.state.epochs, time.monotonic() - self.started
        new = self.done - self.began_with
        left = f", {duration(passed / new * (total - self.done))} left" if new > 0 and self.done < total else ""
        bar = f'<progress value="{self.done}" max="{max(total, 1)}" style="width:16em"></progress>'
        said = html_text(f"{self.said}, {duration(passed)}{left}" if self.said else f"{duration(passed)}{left}")
        warned = "".join(f"<div>{html_text(warning, longest=LONGEST_WARNING)}</div>" for warning in self.warnings)
        self.place.show(f"<div>{html_text(self.title)} {bar} {said}</div>{warned}", at_once=at_once)


def run_html(run: RunDirectory) -> str:
    """What was found in a run, what was trained, and its most suspicious labels."""
    title = f"labelmend run in {run.path}"
    try:
        described, noise = run.read(), read_noise(run)
        suspects = ranked_labels(decided_labels(run), top=SHOWN).select(list(SHOWN_COLUMNS))
    except InputError as error:
        return html_block(html_lines(title, str(error)))
    samples = described["data"]["samples"]
    rows = zip(*(column.to_pylist() for column in suspects.columns), strict=True)
    return html_block(
        html_lines(title, headline(noise, samples), noise.get("advice") or ""),
        html_facts(_facts(described)),
        html_table(SHOWN_COLUMNS, rows, below=f"the {suspects.num_rows:,} most suspicious of {samples:,} labels"),
    )


def _facts(described: dict[str, Any]) -> list[tuple[str, object]]:
    data, chosen, summary = described["data"], described.get("chosen", {}), described.get("summary", {})
    found: list[tuple[str, object]] = [
        ("data", f"{data['name']}: {data['samples']:,} samples, {len(data['classes']):,} classes")
    ]
    if chosen:
        method = chosen.get("method") or described["config"].get("method")
        found.append(("trained", f"{method}, {chosen['net']}, {chosen['epochs']} epochs"))
    if summary.get("last_accuracy") is not None:
        found.append(("accuracy", f"{summary['last_accuracy']:.3f} on {data['test_samples']:,} test samples"))
    if summary.get("auc") is not None:
        found.append(("AUC", f"{summary['auc']:.4f} for telling wrong labels from right ones"))
    return found


def corrections_html(given: Sequence[str], corrected: Sequence[str | None]) -> str:
    """How many labels would change, and the most frequent changes."""
    changes = Counter((old, new) for old, new in zip(given, corrected, strict=True) if new != old)
    rows = [(old, "left out" if new is None else new, count) for (old, new), count in changes.most_common(SHOWN)]
    return html_block(
        html_lines(
            f"{changes.total():,} of {len(given):,} labels would change",
            "Nothing is written before corrections.write(folder), which leaves the original as it is.",
        ),
        html_table(("given", "corrected", "samples"), rows, below=f"{len(rows):,} of {len(changes):,} kinds of change"),
    )
