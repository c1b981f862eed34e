"""Make the runs of experiments that are not made yet, and show what all of them came to."""

import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ..errors import lookup
from ..faces.progress import ProgressObserver, progress_bar
from ..files import write_atomic
from ..training.config import TrainConfig
from ..training.observer import Observer
from ..training.prepare import Prepared, prepare
from ..training.signals import Signals
from . import claims
from .catalogue import FIGURES, TABLES, Asked, Experiment, Planned, labels_in_words
from .figures import FIGURES as DRAWN
from .figures import Drawing
from .plan import Estimator, in_words, plan_lines
from .protocol import Scale
from .runs import InUseError, RunStore
from .tables import Results, by_run, grids, markdown, markdown_table

EXPERIMENTS: dict[str, Experiment] = {**TABLES, **FIGURES, "claims": claims.EXPERIMENT}
POLL = 0.5
"""Seconds between two looks at runs that others are making."""
MARK_STYLES = dict(zip(claims.MARKS.values(), ("green", "red", "yellow"), strict=True))


@dataclass(frozen=True)
class Reproduction:
    """Some experiments at one scale, and where their runs and results are kept."""

    names: tuple[str, ...]
    scale: Scale
    asked: Asked
    out: Path
    threads: int | None = None
    device: str = "auto"
    embedding: str = "pca"

    @property
    def store(self) -> RunStore:
        """Where runs are kept, for all scales."""
        return RunStore(self.out / "runs")

    @property
    def folder(self) -> Path:
        """Where tables and figures go."""
        return self.out / self.scale.name

    def planned(self, name: str) -> list[Planned]:
        """The runs of one experiment."""
        return lookup("experiment", name, EXPERIMENTS).runs(self.scale, self.asked)

    def configs(self) -> list[TrainConfig]:
        """What all of them need to be run, each once, with the threads and the device of this machine."""
        every = {run.key: run.config for name in self.names for run in self.planned(name)}
        return [replace(config, threads=self.threads, device=self.device) for config in every.values()]

    def words(self, *names: str) -> list[str]:
        """The command line that asks for these experiments."""
        asked = self.asked
        seeds = min(asked.seeds, 1 + max(run.config.seed for name in names for run in self.planned(name)))
        words = ["reproduce", *names, "--scale", self.scale.name, "--seeds", str(seeds)]
        for flag, chosen in (("--only", asked.only), ("--noise", asked.noise), ("--data", asked.data)):
            words += [flag, ",".join(map(str, sorted(chosen, key=str)))] if chosen else []
        return words + (["--embedding", self.embedding] if self.embedding != "pca" else [])


def make_runs(reproduction: Reproduction, console: Console, *, jobs: int, signals: Signals) -> None:
    """Make every run that is missing, with others if `jobs` is more than one."""
    configs, store = reproduction.configs(), reproduction.store
    missing = store.missing(configs)
    for config in {(config.source, config.labels): config for config in missing}.values():
        with console.status(f"opening {config.source}"):
            prepare(replace(config, out=str(store.run(config).path) + ".check"))
    with _helped(reproduction, min(jobs, len(missing))), progress_bar(console) as progress:
        whole = progress.add_task("all runs", total=len(configs), state="")
        while True:
            done = len(configs) - len(missing)
            progress.update(whole, completed=done, state=f"{done} of {len(configs)}")
            if not missing:
                break
            if not any(_make(config, store, progress, signals) for config in missing):
                time.sleep(POLL)
            missing = store.missing(missing)


def _make(config: TrainConfig, store: RunStore, progress: Progress, signals: Signals) -> bool:
    """Make a run with a bar of its own, unless it is there or another process is at it; tells whether it was made."""
    if store.result(config) is not None:
        return False
    bars = []

    def observe(prepared: Prepared) -> Observer:
        title = " ".join([config.source, prepared.entry.id, labels_in_words(config), f"seed {config.seed}"])
        bars.append(ProgressObserver(progress, title, prepared.choices.epochs))
        return bars[-1]

    try:
        store.make(config, observe=observe, signals=signals)
    except InUseError:
        return False
    finally:
        for bar in bars:
            progress.remove_task(bar.task)
    return True


@contextmanager
def _helped(reproduction: Reproduction, jobs: int) -> Iterator[None]:
    """The same runs asked for in more processes: each makes those that are free."""
    more = ["--out", str(reproduction.out), "--runs-only", "--device", reproduction.device]
    more += ["--root", reproduction.asked.root] if reproduction.asked.root else []
    more += ["--threads", str(reproduction.threads)] if reproduction.threads else []
    command = [sys.executable, "-m", "labelmend", *reproduction.words(*reproduction.names), *more]
    quiet = subprocess.DEVNULL
    helpers = [subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet) for _ in range(jobs - 1)]
    try:
        yield
    finally:
        for helper in helpers:
            helper.terminate()
        for helper in helpers:
            helper.wait()


def show_plan(reproduction: Reproduction, console: Console) -> None:
    """List the runs with their hyperparameters and what they would cost, and make none."""
    estimate = Estimator(reproduction.scale)
    every: dict[str, Planned] = {}
    for name in reproduction.names:
        runs = reproduction.planned(name)
        every |= {run.key: run for run in runs}
        with console.status("timing a training step of each network"):
            common, lines = plan_lines(runs, estimate)
        title = f"{EXPERIMENTS[name].title}, at the {reproduction.scale.name} scale: {_counted(len(runs))}"
        console.print(title, style="bold", highlight=False)
        console.print(f"all of them: {', '.join(common)}", highlight=False, markup=False)
        _show(lines, console)
    cost = in_words(sum(map(estimate, every.values())))
    made = len(every) - len(reproduction.store.missing(run.config for run in every.values()))
    console.print(f"{_counted(len(every))}, {made} of them made; about {cost} of computing on this machine for all")


def show_results(reproduction: Reproduction, console: Console) -> None:
    """Print each experiment and write it as Markdown, CSV and, if it is a figure, as SVG and PNG.

    Runs that are not made are left out.
    """
    reproduction.folder.mkdir(parents=True, exist_ok=True)
    for name in reproduction.names:
        planned, store = reproduction.planned(name), reproduction.store
        results = {run.key: result for run in planned if (result := store.result(run.config)) is not None}
        runs = [run for run in planned if run.key in results]
        console.print(f"\n{EXPERIMENTS[name].title}", style="bold", highlight=False)
        if len(runs) < len(planned):
            console.print(f"{len(runs)} of {_counted(len(planned))} made", style="yellow", highlight=False)
        if not runs:
            continue
        if name in FIGURES:
            body = _figure(reproduction, name, runs, console)
        elif name in TABLES:
            body = _table(reproduction, name, runs, results, console)
        else:
            body = _claims(reproduction, runs, results, console)
        text = f"## {EXPERIMENTS[name].title}\n\n{body}\n\n{_origin(reproduction, name, results)}\n"
        path = reproduction.folder / f"{name}.md"
        write_atomic(path, text.encode())
        console.print(f"in {path}", style="dim", highlight=False, soft_wrap=True)


def _table(reproduction: Reproduction, name: str, runs: Sequence[Planned], results: Results, console: Console) -> str:
    parts = grids(name, reproduction.scale, runs, results)
    for part in parts:
        console.print(part.title, style="italic")
        _show([[text.replace("**", "") for text in line] for line in part.lines()], console)
    write_atomic(reproduction.folder / f"{name}.csv", by_run(reproduction.scale, runs, results).encode())
    return markdown(parts)


def _figure(reproduction: Reproduction, name: str, runs: Sequence[Planned], console: Console) -> str:
    drawing = Drawing(reproduction.scale, runs, reproduction.store, reproduction.embedding)
    with console.status("drawing"):
        drawn = DRAWN[name](drawing)
        drawn.save(reproduction.folder, name)
    console.print(drawn.caption, highlight=False)
    return f"![{drawn.caption}]({name}.svg)\n\n{drawn.caption}"


def _claims(reproduction: Reproduction, runs: Sequence[Planned], results: Results, console: Console) -> str:
    found = claims.judge_claims(reproduction.scale, reproduction.asked, results)
    lines = claims.verdict_lines(found)
    _show([[_coloured(text) for text in line] for line in lines], console)
    console.print(claims.tally(found), highlight=False)
    write_atomic(reproduction.folder / "claims.csv", claims.by_seed_csv(found).encode())
    write_atomic(reproduction.folder / "claims-runs.csv", by_run(reproduction.scale, runs, results).encode())
    return markdown_table(lines, right_from=3) + f"\n\n{claims.tally(found)}."


def _origin(reproduction: Reproduction, name: str, results: Results) -> str:
    """The command, the commits and the seeds that the numbers came from."""
    command = shlex.join(["labelmend", *reproduction.words(name)])
    commits = sorted({result.commit or f"version {result.version}" for result in results.values()})
    return f"`{command}`: {_counted(len(results))}, commit {', '.join(commits)}"


def _coloured(text: str) -> str:
    return f"[{MARK_STYLES[text[0]]}]{text}" if text[:1] in MARK_STYLES else text


def _counted(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"


def _show(lines: Sequence[Sequence[str]], console: Console) -> None:
    table = Table(*lines[0], box=None, pad_edge=False)
    for line in lines[1:]:
        table.add_row(*line)
    console.print(table, highlight=False)
