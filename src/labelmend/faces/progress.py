"""How a run in progress is shown: a bar on a terminal or in a notebook, and lines elsewhere."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ..training.observer import Observer
from .logs import RunLog
from .notebook import NotebookObserver
from .words import EpochState, duration


class ProgressObserver(Observer):
    """A progress bar over all steps of a run, with accuracy and estimated noise rate beside it."""

    def __init__(self, progress: Progress, title: str, epochs: int) -> None:
        self.progress = progress
        self.state = EpochState(epochs)
        self.steps = 0
        self.task = progress.add_task(title, total=None, state="")

    def stage(self, epoch: int, name: str, steps: int, done: int = 0) -> None:
        if steps:
            self.steps = steps
            self.progress.update(self.task, total=steps * self.state.epochs, completed=steps * (epoch - 1) + done)

    def advance(self) -> None:
        self.progress.advance(self.task)

    def epoch(self, record: dict[str, Any]) -> None:
        self.progress.update(self.task, completed=self.steps * record["epoch"], state=self.state.after(record))

    def warn(self, warning: str) -> None:
        show_warning(warning, self.progress.console)


class LineObserver(Observer):
    """One plain line per epoch, for logs: where the run stands, and the time left at its pace so far."""

    def __init__(self, console: Console, title: str, epochs: int) -> None:
        self.console = console
        self.title = title
        self.state = EpochState(epochs)
        self.started = time.monotonic()
        self.finished = 0

    def stage(self, epoch: int, name: str, steps: int, done: int = 0) -> None:
        if not self.finished and steps:  # what comes before the first epoch says nothing about the others
            self.started = time.monotonic()

    def epoch(self, record: dict[str, Any]) -> None:
        self.finished += 1
        pace = (time.monotonic() - self.started) / self.finished
        left = duration(pace * (self.state.epochs - record["epoch"]))
        line = f"{self.title}: {self.state.after(record)}, {left} left"
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def warn(self, warning: str) -> None:
        show_warning(warning, self.console)


class Observers(Observer):
    """Several observers as one."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.observers = observers

    def stage(self, epoch: int, name: str, steps: int, done: int = 0) -> None:
        for observer in self.observers:
            observer.stage(epoch, name, steps, done)

    def advance(self) -> None:
        for observer in self.observers:
            observer.advance()

    def epoch(self, record: dict[str, Any]) -> None:
        for observer in self.observers:
            observer.epoch(record)

    def warn(self, warning: str) -> None:
        for observer in self.observers:
            observer.warn(warning)


@contextmanager
def observed(console: Console, title: str, epochs: int, *, log: RunLog | None = None) -> Iterator[Observer]:
    """An observer that shows a run on this console as it can be shown there, and keeps the log."""
    logs = [] if log is None else [log]
    try:
        if console.is_jupyter and not console.quiet:
            yield Observers([NotebookObserver(title, epochs), *logs])
        elif console.is_terminal:
            with progress_bar(console) as progress:
                yield Observers([ProgressObserver(progress, title, epochs), *logs])
        else:
            yield Observers([LineObserver(console, title, epochs), *logs])
    finally:
        for each in logs:
            each.close()


def progress_bar(console: Console) -> Progress:
    """The bar that all long commands use."""
    return Progress(
        TextColumn("{task.description:<9}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    )


def show_warning(warning: str, console: Console) -> None:
    """Say that something is not as it should be."""
    console.print(f"warning: {warning}", style="yellow", highlight=False, markup=False)
