"""Commands that find wrong labels: `demo`, `train`, `labels`, `report`."""

import shlex
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import InputError, InterruptedRunError
from ...training.config import TrainConfig
from ..console import err, out
from ..files import damage_named
from ..options import Decisions, Run, Seed, Threads, explicit, takes_every_option

LABELS_SHOWN = 20
OWN_TO_RESUMING = ("out", "resume", "allow_drift")
"""Options that say how a run is continued; all others are as it was started."""


@takes_every_option(TrainConfig)
def train(context: typer.Context, **given: Any) -> None:
    """Train on your data and judge every label: whether it is wrong, and what it should be.

    Network, epochs and batch size are chosen from the data unless you set them, and every choice is explained.
    The run directory holds the label table (labels.csv, labels.parquet), report.html, the model and checkpoints.

    Try: labelmend train my-images/ --out runs/mine

    Interrupted? labelmend train --out runs/mine --resume
    """
    from ...training.settings import split_pairs
    from ...training.signals import Signals

    signals = Signals()  # before the slow imports
    given |= {"out": str(Path(given["out"])), "settings": split_pairs(given["settings"] or [])}
    config = _resumed(explicit(context, given)) if given["resume"] else _started(given)
    from ..terminal import run_with_progress, show_summary

    try:
        run = run_with_progress(config, out, signals=signals)
    except InterruptedRunError as error:
        if not Path(config.out, "run.json").is_file():
            raise
        again = f"labelmend train --out {shlex.quote(config.out)} --resume"
        err.print(f"labelmend: interrupted; continue with: {again}", highlight=False, markup=False, soft_wrap=True)
        raise typer.Exit(128 + error.signal) from None
    if run.writes:
        show_summary(run, out)
    signals.done()


def _started(given: Mapping[str, Any]) -> TrainConfig:
    if given["source"] is None:
        raise InputError("SOURCE is missing: labelmend train SOURCE --out RUN; only --resume does without it")
    return TrainConfig(**given)


def _resumed(given: dict[str, Any]) -> TrainConfig:
    """The configuration that a run was started with, changed by what was given now."""
    from ...run.directory import RunDirectory

    run = RunDirectory(Path(given["out"]))
    if not run.run_json.is_file():
        raise InputError(f"there is no run to resume in {run.path}")
    before = run.read().get("config")
    if not isinstance(before, dict) or "source" not in before:
        raise InputError(f"{run.run_json} is damaged: it does not say what was run")
    known = {field.name for field in fields(TrainConfig)} - set(OWN_TO_RESUMING)
    started = TrainConfig(out=given["out"], **{name: value for name, value in before.items() if name in known})
    return replace(started, **(given | {"settings": {**started.settings, **given.get("settings", {})}}))


def demo(
    data: Annotated[
        str, typer.Option(metavar="NAME", help="clothes: photographs; or digits: handwritten ones, half of them wrong.")
    ] = "clothes",
    out_dir: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Folder for the two runs; an earlier demo's is replaced.")
    ] = Path("labelmend-demo"),
    epochs: Annotated[
        int | None, typer.Option(help="Passes over the data; by default so many that it takes about a minute.")
    ] = None,
    seed: Seed = TrainConfig.seed,
    threads: Threads = None,
) -> None:
    """See the whole story on real photographs in about a minute: wrong labels, training, finding, correcting, report.

    Try: labelmend demo

    Try: labelmend demo --data digits
    """
    from ...training.signals import Signals

    signals = Signals()  # before the slow imports
    from ..stories import find_story, make_room

    story = find_story(data)
    TrainConfig(
        story.source, str(out_dir), epochs=epochs, seed=seed, threads=threads
    )  # refused before anything is done
    make_room(out_dir)
    out.rule("labelmend demo")
    out.print(f"{story.opening}\n")
    with out.status("loading"):
        from ..demo import tell
    tell(story, out_dir, epochs=epochs, seed=seed, threads=threads, console=out, signals=signals)
    signals.done()


def labels(
    run: Run,
    out_file: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="A .csv or .parquet file; by default the suspects are shown on the screen."
        ),
    ] = None,
    verdict: Annotated[
        str, typer.Option(help="Only these verdicts, joined by commas: keep, relabel, look.")
    ] = "relabel,look",
    top: Annotated[int | None, typer.Option(min=1, help="Only this many, the most suspicious.")] = None,
    cleanlab: Annotated[
        bool, typer.Option("--cleanlab", help="Add is_label_issue, label_score, given_label and predicted_label.")
    ] = False,
    decisions: Decisions = None,
) -> None:
    """List the labels that look wrong, the most suspicious first, or export them.

    What reviewers decided stands in place of what was found.

    Try: labelmend labels runs/mine --top 20

    Try: labelmend labels runs/mine --cleanlab --out issues.csv
    """
    from ...files import write_atomic
    from ...run.decisions import decided_labels
    from ...run.directory import RunDirectory
    from ...run.evidence import suspect_texts
    from ...run.labels import csv_bytes, parquet_bytes, ranked_labels
    from ..terminal import show_labels

    writers = {".csv": csv_bytes, ".parquet": parquet_bytes}
    if out_file is not None and out_file.suffix not in writers:
        raise InputError(f"--out {out_file} must end in .csv or .parquet")
    directory = RunDirectory.existing(run)
    with damage_named(run):
        table = ranked_labels(decided_labels(directory, decisions), verdicts=verdict.split(","), cleanlab=cleanlab)
        if out_file is None:
            show_labels(table.slice(0, top or LABELS_SHOWN), table.num_rows, out, texts=suspect_texts(directory))
            return
        table = table.slice(0, top)
        content = writers[out_file.suffix](table)
    write_atomic(out_file, content)
    out.print(f"{table.num_rows:,} labels in {out_file}", highlight=False, markup=False)


def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="A run directory; two or more are compared on one page.")
    ],
    out_file: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="HTML file; by default RUN/report.html, or comparison.html."),
    ] = None,
    suspects: Annotated[int, typer.Option(min=0, help="How many suspicious samples to show.")] = 200,
    embedding: Annotated[str, typer.Option(help="How to lay out the features: pca or umap.")] = "pca",
    decisions: Decisions = None,
) -> None:
    """Build report.html of a finished run again, or compare several runs on one page.

    Try: labelmend report runs/mine

    Try: labelmend report runs/ce runs/m-dyr-h --out comparison.html
    """
    from ...report.build import build_report
    from ...report.compare import build_comparison
    from ...run.directory import RunDirectory

    found = [RunDirectory.existing(run) for run in runs]
    if decisions is not None and len(found) > 1:
        raise InputError("--decisions is for the report of one run; runs that are compared have their own")
    with damage_named(*runs):
        if len(found) > 1:
            target = out_file or Path("comparison.html")
            build_comparison(found, target)
        else:
            target = out_file or found[0].report
            build_report(found[0], suspects=suspects, embedding_kind=embedding, out=out_file, decisions=decisions)
    out.print(str(target), highlight=False, markup=False, soft_wrap=True)
