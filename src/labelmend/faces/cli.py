"""The `labelmend` command."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError, InterruptedRunError, StorageError, visible
from ..training.config import MOST_THREADS, Optimisation, TrainConfig
from .console import err, out

if TYPE_CHECKING:
    from ..fix.corrections import Corrections


app = typer.Typer(
    help="Train on wrong labels, and get them fixed: one run, no clean subset, no known noise rate.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
CHANGES_SHOWN = 15
LABELS_SHOWN = 20
MANY = 2000
MOST_WORKERS = 256

Source = Annotated[
    str,
    typer.Argument(
        help="A folder with one subfolder a class; a .csv, .tsv or .parquet with an image column or feature columns "
        "and a label column; an .npz with arrays x and y; or one of digits, mnist, fashion-mnist, cifar10, cifar100, "
        "tiny-imagenet, clothing1m."
    ),
]
Root = Annotated[
    str | None, typer.Option(help="Folder of a named data set's files, or of the images that a table names.")
]
Size = Annotated[int | None, typer.Option(help="Bring images to this many pixels square.")]
ImageColumn = Annotated[str | None, typer.Option(help="Column of image paths or bytes in a table.")]
LabelColumn = Annotated[str | None, typer.Option(help="Column of labels in a table.")]
IdColumn = Annotated[str | None, typer.Option(help="Column of ids in a table.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Go on without unusable samples.")]
Run = Annotated[Path, typer.Argument(help="A run directory that 'labelmend train' made.")]


@app.command()
def train(
    source: Source,
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the run; must not hold one yet.")],
    method: Annotated[str, typer.Option(help="How to train; 'labelmend methods' lists them.")] = TrainConfig.method,
    net: Annotated[
        str | None, typer.Option(help="preact-resnet18, resnet50, slim-resnet, convnet, mlp or timm:NAME.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the data.")] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            help="Make labels wrong first: symmetric:R redraws a share R from all classes, symmetric-excl:R from the "
            "other classes; asymmetric:R[:map.json], pair:R, instance:R, matrix:FILE."
        ),
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="Take the labels from FILE or FILE:KEY (.npz or .csv), such as CIFAR-10N's.")
    ] = None,
    trusted: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|N-per-class",
            help="Samples whose labels are right, for methods that learn from some: a .csv with a column id (and one "
            "of labels, if the given ones are not right), or a .txt with an id a line; or, where the truth is known as "
            "after --noise, so many of each class, such as 10-per-class.",
        ),
    ] = None,
    test: Annotated[str | None, typer.Option(help="A source of the same kind to evaluate on.")] = None,
    root: Root = None,
    image_column: ImageColumn = None,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    size: Size = None,
    skip_bad: SkipBad = False,
    memory: Annotated[
        float, typer.Option(help="GiB of decoded images to hold in memory; larger sets are streamed from disk.")
    ] = TrainConfig.memory,
    workers: Annotated[
        int, typer.Option(min=0, max=MOST_WORKERS, help="Processes that decode streamed images.")
    ] = TrainConfig.workers,
    init: Annotated[
        str | None,
        typer.Option(help="Start from these weights (.safetensors, or timm:NAME); layers of another shape stay new."),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Train on this many samples, drawn at random.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = TrainConfig.seed,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = TrainConfig.device,
    threads: Annotated[int | None, typer.Option(max=MOST_THREADS, help="CPU threads; chosen from the network.")] = None,
    compile_steps: Annotated[
        str, typer.Option("--compile", help="torch.compile: on, off, or auto, which tries it on long runs.")
    ] = TrainConfig.compile,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; 'labelmend methods ID' lists them."),
    ] = None,
    save_every: Annotated[
        float, typer.Option(help="Minutes between checkpoints inside an epoch; there is always one after it.")
    ] = TrainConfig.save_every,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    allow_drift: Annotated[
        bool, typer.Option("--allow-drift", help="Resume with other threads, processes or versions all the same.")
    ] = False,
) -> None:
    """Train robustly and judge every label.

    What you leave open (net, epochs, batch size) is chosen from the data, and the choice explained. The run
    directory holds run.json, epochs.jsonl, labels.csv and labels.parquet, the model, checkpoints and report.html.

    Try: labelmend train digits --noise symmetric:0.5 --out runs/digits
    """
    from ..training.settings import split_pairs

    config = TrainConfig(
        source=source,
        out=str(out_dir),
        method=method,
        net=net,
        epochs=epochs,
        noise=noise,
        labels=labels,
        trusted=trusted,
        test=test,
        root=root,
        image_column=image_column,
        label_column=label_column,
        id_column=id_column,
        size=size,
        skip_bad=skip_bad,
        memory=memory,
        workers=workers,
        init=init,
        limit=limit,
        seed=seed,
        device=device,
        threads=threads,
        compile=compile_steps,
        settings=split_pairs(settings or []),
        save_every=save_every,
        resume=resume,
        allow_drift=allow_drift,
    )
    from ..training.signals import Signals

    signals = Signals()  # before the slow imports
    from .terminal import run_with_progress, show_summary

    run = run_with_progress(config, out, signals=signals)
    if run.writes:
        show_summary(run, out)
    signals.done()


@app.command()
def demo(
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the two runs; replaced if it is a demo's.")] = Path(
        "labelmend-demo"
    ),
    epochs: Annotated[int, typer.Option(help="Passes over the data.")] = 30,
    seed: Annotated[int, typer.Option(help="Same seed, same story.")] = TrainConfig.seed,
    threads: Annotated[int | None, typer.Option(max=MOST_THREADS, help="CPU threads; chosen from the network.")] = None,
) -> None:
    """Tell the whole story on real images in about a minute: corrupt, train, find, correct, report."""
    from ..training.signals import Signals

    signals = Signals()
    from .demo import tell

    tell(out_dir, epochs=epochs, seed=seed, threads=threads, console=out, signals=signals)
    signals.done()


@app.command()
def predict(
    run: Run,
    source: Source,
    out_file: Annotated[Path | None, typer.Option("--out", help="CSV file; by default the screen.")] = None,
    root: Root = None,
    image_column: ImageColumn = None,
    id_column: IdColumn = None,
    skip_bad: SkipBad = False,
) -> None:
    """Predict classes with the model of a run; the source needs no labels.

    Try: labelmend predict runs/digits digits --out predictions.csv
    """
    from ..data.readers.table import Columns
    from ..data.sources import SourceOptions, open_inputs
    from ..files import write_atomic
    from ..run.directory import RunDirectory
    from ..run.labels import predictions_csv
    from ..run.model import load_model

    if out_file is not None and (not out_file.name or (out_file.exists() and not out_file.is_file())):
        raise InputError(f"--out {out_file} is no file that can be replaced")
    options = SourceOptions(root=root, columns=Columns(image_column, None, id_column), skip_bad=skip_bad)
    with err.status("predicting"):
        model = load_model(RunDirectory.existing(run))
        inputs, ids = open_inputs(source, model.shape, options)
        table = predictions_csv(ids, model.class_names, model.probabilities(inputs))
    if out_file is None:
        if sys.stdout.isatty():
            table = "\n".join(map(visible, table.decode(errors="surrogateescape").split("\n"))).encode()
        sys.stdout.buffer.write(table)
        return
    write_atomic(out_file, table)
    out.print(f"{len(ids):,} predictions in {out_file}", highlight=False, markup=False)


@app.command()
def noise(
    source: Source,
    kind: Annotated[str, typer.Option("--noise", help="Kind and rate, such as symmetric:0.4; see 'train --help'.")],
    out_file: Annotated[Path, typer.Option("--out", help="The .npz label file to write.")],
    seed: Annotated[int, typer.Option(help="Same seed, same noise.")] = TrainConfig.seed,
    root: Root = None,
    image_column: ImageColumn = None,
    label_column: LabelColumn = None,
    id_column: IdColumn = None,
    skip_bad: SkipBad = False,
) -> None:
    """Make a noisy label file that others can train on: 'labelmend train SOURCE --labels FILE'.

    Try: labelmend noise digits --noise symmetric:0.4 --out noisy.npz
    """
    from ..core import generator
    from ..data import SourceOptions, inject, open_source
    from ..data.label_file import write_label_file
    from ..data.noise import NoiseSpec, wrong_rate
    from ..data.readers.table import Columns

    spec = NoiseSpec.parse(kind)
    options = SourceOptions(None, root, Columns(image_column, label_column, id_column), skip_bad=skip_bad)
    with out.status("reading"):
        data = inject(open_source(source, options)[0], spec, generator(seed, "noise"))
    write_label_file(out_file, data, spec=spec, seed=seed)
    rates = f"nominal {spec.rate:.1%}, really wrong {wrong_rate(data.labels):.1%}"
    out.print(f"{out_file}: {len(data):,} labels, {rates}", markup=False)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="A run directory; with two or more, they are compared.")],
    out_file: Annotated[
        Path | None, typer.Option("--out", help="HTML file; by default RUN/report.html, or comparison.html.")
    ] = None,
    suspects: Annotated[int, typer.Option(min=0, help="How many suspicious samples to show.")] = 200,
    embedding: Annotated[str, typer.Option(help="How to lay out the features: pca or umap.")] = "pca",
) -> None:
    """(Re)build report.html of a finished run, or compare several runs on one page.

    Try: labelmend report runs/digits, or labelmend report runs/ce runs/m-dyr-h --out comparison.html
    """
    from ..report.build import build_report
    from ..report.compare import build_comparison
    from ..run.directory import RunDirectory

    places = [RunDirectory.existing(run) for run in runs]
    with damage_named(*runs):
        if len(places) > 1:
            target = out_file or Path("comparison.html")
            build_comparison(places, target)
        else:
            target = out_file or places[0].report
            build_report(places[0], suspects=suspects, embedding_kind=embedding, out=out_file)
    out.print(str(target), highlight=False, markup=False, soft_wrap=True)


@app.command()
def labels(
    run: Run,
    out_file: Annotated[
        Path | None, typer.Option("--out", help="A .csv or .parquet file; by default the screen shows the suspects.")
    ] = None,
    verdict: Annotated[
        str, typer.Option(help="Only these verdicts, joined by commas: keep, relabel, look.")
    ] = "relabel,look",
    top: Annotated[int | None, typer.Option(min=1, help="Only the most suspicious.")] = None,
    cleanlab: Annotated[
        bool, typer.Option("--cleanlab", help="Add is_label_issue, label_score, given_label and predicted_label.")
    ] = False,
) -> None:
    """Show or export what a run found out about its labels, the most suspicious first.

    Try: labelmend labels runs/digits --top 20, or labelmend labels runs/digits --cleanlab --out issues.csv
    """
    from ..files import write_atomic
    from ..run.directory import RunDirectory
    from ..run.labels import csv_bytes, parquet_bytes, ranked_labels
    from .terminal import show_labels

    writers = {".csv": csv_bytes, ".parquet": parquet_bytes}
    if out_file is not None and out_file.suffix not in writers:
        raise InputError(f"--out {out_file} must end in .csv or .parquet")
    place = RunDirectory.existing(run)
    with damage_named(run):
        table = ranked_labels(place, verdicts=verdict.split(","), top=top, cleanlab=cleanlab)
        if out_file is None:
            show_labels(table if top else table.slice(0, LABELS_SHOWN), table.num_rows, out)
            return
        content = writers[out_file.suffix](table)
    write_atomic(out_file, content)
    out.print(f"{table.num_rows:,} labels in {out_file}", highlight=False, markup=False)


@app.command()
def apply(
    run: Run,
    dest: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DEST", help="A new folder; or, for a source that is a file, a new file like it."
        ),
    ],
    write: Annotated[bool, typer.Option("--write", help="Do it; without this you only see what would change.")] = False,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Take only suggestions at least this sure; with --drop, drop only labels at least this likely wrong."
        ),
    ] = None,
    drop: Annotated[
        bool, typer.Option("--drop", help="Leave samples out whose label looks wrong, in place of relabelling them.")
    ] = False,
    link: Annotated[
        bool, typer.Option("--link", help="Hard links in place of copies of the images, where the disk can do it.")
    ] = False,
) -> None:
    """Write the data set of a run with its labels corrected, in the form it came in; the source is not touched.

    Shows first what would change, and writes with --write. 'labelmend undo DEST' takes it back.

    Try: labelmend apply runs/digits --out corrected
    """
    from rich.progress import Progress

    from ..fix.plan import plan

    with err.status("comparing with the source"):
        planned = plan(run, confidence=confidence, drop=drop)
        planned.destination(dest)
    _show_plan(planned, dest)
    if not write:
        out.print("nothing was written; the same command with --write does it", highlight=False)
        return
    with Progress(console=err, transient=True, disable=len(planned.seen) < MANY or not err.is_terminal) as bar:
        task = bar.add_task("copying")
        planned.write(dest, link=link, advance=lambda done, total: bar.update(task, completed=done, total=total))
    out.print(f"written; take it back with: labelmend undo {dest}", highlight=False, markup=False, soft_wrap=True)


@app.command()
def undo(
    corrected: Annotated[Path, typer.Argument(help="What 'labelmend apply' wrote, or its undo.json.")],
    back: Annotated[
        Path | None, typer.Option("--out", metavar="BACK", help="Put the original here, and leave the rest alone.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Undo although the set was changed since.")] = False,
) -> None:
    """Bring back the original of a corrected data set, byte by byte; in place, or at --out.

    Try: labelmend undo corrected
    """
    from ..fix.undo import undo

    restored = undo(corrected, out=back, force=force)
    out.print(f"the original is back in {restored}", highlight=False, markup=False, soft_wrap=True)


@app.command()
def methods(
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="Show the settings of one method.")] = None,
) -> None:
    """List the methods, one line each; with an ID, what can be set in it."""
    from ..methods import find
    from ..methods import methods as registered
    from .terminal import show_methods, show_settings

    if id is None:
        show_methods(registered(), out)
    else:
        show_settings(find(id), Optimisation, out)


def run_command() -> None:
    """Run the command and turn what went wrong into an exit code: 2 bad input, 130/143 interrupted, 1 the rest."""
    try:
        for word in sys.argv[1:]:
            if word.encode(errors="ignore").decode() != word:
                raise InputError(f"the argument {visible(word)} is not valid UTF-8")
        code = app(standalone_mode=False)
    except InputError as error:
        err.print(f"labelmend: {error}", style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        sys.exit(_failure(error))
    sys.exit(code if isinstance(code, int) else 0)


@contextmanager
def damage_named(*runs: Path) -> Iterator[None]:
    """Say that a run directory is damaged in place of whatever its files broke: they may come from anywhere."""
    try:
        yield
    except (InputError, OSError):
        raise
    except Exception as error:
        names = ", ".join(map(str, runs))
        raise InputError(f"the files in {names} are damaged ({type(error).__name__}: {error})") from error


def click_errors() -> tuple[type[Any], ...]:
    """Bad usage as typer reports it: by click's own exceptions, or by those of the copy that newer versions carry."""
    from importlib import import_module

    homes = (f"{home}.exceptions" for home in ("click", "typer._click") if find_spec(home))
    return tuple(import_module(home).ClickException for home in homes)


def _failure(error: Exception) -> int:
    if isinstance(error, typer.Abort):
        return 128 + signal.SIGINT
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, click_errors()):
        error.message = visible(error.message)
        error.show()
        return int(error.exit_code)
    if isinstance(error, InterruptedRunError):
        err.print("labelmend: interrupted; go on with the same command and --resume", highlight=False)
        return 128 + error.signal
    from ..training.finite import NotFiniteError

    if isinstance(error, NotFiniteError | StorageError | OSError):
        err.print(f"labelmend: {error}", style="red", highlight=False, markup=False, soft_wrap=True)
        return 1
    raise error


def _show_plan(plan: "Corrections", dest: Path) -> None:
    """What applying a run changes, and the most frequent changes."""
    from rich.table import Table
    from rich.text import Text

    changes = [(given, "dropped", count) for given, count in plan.dropped.items()]
    changes += [(given, new, count) for (given, new), count in plan.relabelled.items()]
    changes.sort(key=lambda change: -change[2])
    if changes:
        table = Table("given", "becomes", "samples", box=None, pad_edge=False)
        for given, new, count in changes[:CHANGES_SHOWN]:
            table.add_row(Text(given), Text(new), f"{count:,}")
        if len(changes) > CHANGES_SHOWN:
            table.add_row("others", "", f"{sum(count for *_, count in changes[CHANGES_SHOWN:]):,}")
        out.print(table, highlight=False)
    lines = Table.grid(padding=(0, 2))
    lines.add_row("dropped" if plan.dropped else "relabelled", f"{sum(count for *_, count in changes):,}")
    look = f", of which {plan.look:,} look wrong without a sure suggestion" if plan.look and not plan.dropped else ""
    lines.add_row("kept", f"{plan.kept:,}{look}")
    if plan.unseen:
        lines.add_row("not judged", f"{plan.unseen:,} samples that were not in the run stay as they are")
    if plan.other_labels:
        lines.add_row(
            "note", f"the run had {plan.other_labels}: samples that are kept have that label, not the source's"
        )
    out.print(lines, highlight=False, markup=False)
    out.print(f"to {dest}", highlight=False, markup=False, soft_wrap=True)
