"""The `labelmend reproduce` command. Imports nothing slow before it is called."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ..errors import InputError, InterruptedRunError, lookup
from ..faces.console import err, out
from ..faces.options import Threads, described
from ..training.config import TrainConfig

if TYPE_CHECKING:
    from ..training.signals import Signals
    from .protocol import Scale
    from .reproduce import Reproduction

ALL = "all"


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="EXPERIMENT...",
            help="table1 to table5, tinyimagenet, clothing1m, fig1, fig2, fig3, appendix-a (Fig. 4), frequency, "
            "em-iterations, fixed-weights, details (paper's text against released code), cifar10n (human labels), "
            "memorising (networks and epochs from which plain training memorises), claims, or all.",
        ),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            help="small: digits and Fashion-MNIST on a CPU, minutes; medium: all of CIFAR-10 on a CPU, hours; "
            "paper: the published protocol, for GPUs."
        ),
    ] = "small",
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Seeds of every run: 0, 1 and so on.")] = 1,
    only: Annotated[str | None, typer.Option(help="Only these methods, such as ce,dy-h.")] = None,
    noise: Annotated[str | None, typer.Option(help="Only these noise levels in percent, such as 50,80.")] = None,
    data: Annotated[str | None, typer.Option(help="Only these data sets, such as digits or cifar10.")] = None,
    root: Annotated[
        str | None, typer.Option(help="Folder that holds the data sets, each in a folder of its name or all in one.")
    ] = None,
    out_dir: Annotated[
        Path, typer.Option("--out", help="Folder for runs, which are made once and kept, and for results.")
    ] = Path("reproduction"),
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Processes that make runs side by side.")] = 1,
    threads: Threads = None,
    device: Annotated[str, described("device")] = TrainConfig.device,
    embedding: Annotated[str, typer.Option(help="How fig3 draws features: pca, or umap with its extra.")] = "pca",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the runs with hyperparameters and estimated cost; make none.")
    ] = False,
    so_far: Annotated[
        bool, typer.Option("--so-far", help="Show what the runs came to that are made; make none.")
    ] = False,
    runs_only: Annotated[
        bool, typer.Option("--runs-only", help="Make the runs without printing or writing results.")
    ] = False,
) -> None:
    """Make the paper's tables and figures, and check what it claims.

    Every run is made once, whichever tables need it.
    If it is interrupted, the same command continues.
    Results are OUT/SCALE/EXPERIMENT.md and .csv, and .svg and .png of figures.

    Try: labelmend reproduce table1 --only ce,dy-h --noise 50
    """
    from ..training.signals import Signals

    signals = Signals()  # before the slow imports
    from ..report.embedding import check_embedding
    from .reproduce import show_plan, show_results

    check_embedding(embedding)
    asked = {"seeds": seeds, "root": root, "only": only, "noise": noise, "data": data}
    reproduction = replace(
        _chosen(names or [], scale, asked, or_all=dry_run), out=out_dir, device=device, embedding=embedding
    )
    if dry_run:
        show_plan(reproduction, out)
    elif so_far:
        show_results(reproduction, out)
    else:
        _carry_out(reproduction, jobs, threads, signals, show=not runs_only)
    signals.done()


def _chosen(names: Sequence[str], scale: str, asked: Mapping[str, Any], *, or_all: bool) -> "Reproduction":
    """The named experiments that have runs, as asked for by the words of the command line."""
    from ..methods import find
    from .catalogue import Asked
    from .protocol import SCALES
    from .reproduce import EXPERIMENTS, Reproduction

    chosen = lookup("scale", scale, SCALES)
    if not names and not or_all:
        raise InputError(f"name what to reproduce: {', '.join(EXPERIMENTS)} or {ALL}")
    for name in names:
        lookup("experiment", name, {**EXPERIMENTS, ALL: None})
    methods = frozenset(find(name).id for name in _split(asked["only"]))
    wanted = Asked(asked["seeds"], asked["root"], methods, _levels(asked["noise"]), _stages(asked["data"], chosen))
    every = tuple(EXPERIMENTS) if not names or ALL in names else tuple(dict.fromkeys(names))
    reproduction = Reproduction(every, chosen, wanted, Path())
    with_runs = tuple(name for name in every if reproduction.planned(name))
    for name in names:
        if name not in (*with_runs, ALL) or not with_runs:
            raise InputError(f"{name} has no run with these methods, noise levels and data sets")
    return replace(reproduction, names=with_runs)


def _carry_out(reproduction: "Reproduction", jobs: int, threads: int | None, signals: "Signals", *, show: bool) -> None:
    from ..training.threads import available_cores
    from .reproduce import make_runs, show_results

    threads = threads or (max(1, available_cores() // jobs) if jobs > 1 else None)
    reproduction = replace(reproduction, threads=threads)
    try:
        make_runs(reproduction, out if show else Console(quiet=True), jobs=jobs, signals=signals)
    except InterruptedRunError as error:
        err.print("labelmend: interrupted; finished runs are kept, and the same command continues", highlight=False)
        raise typer.Exit(128 + error.signal) from None
    if show:
        show_results(reproduction, out)


def _levels(text: str | None) -> frozenset[int]:
    try:
        return frozenset(int(level) for level in _split(text))
    except ValueError:
        raise InputError(f"--noise takes whole percentages, such as 50,80, not {text!r}") from None


def _stages(text: str | None, scale: "Scale") -> frozenset[str]:
    known = {name: None for role, stage in scale.stages.items() for name in (role, stage.source)}
    for name in _split(text):
        lookup("data set", name, known)
    return frozenset(_split(text))


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]
