"""The `labelmend` command."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from .config import Optimisation, TrainConfig
from .errors import InputError

app = typer.Typer(
    help="Train on wrong labels, and get them fixed: one run, no clean subset, no known noise rate.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
out = Console()
err = Console(stderr=True)

Source = Annotated[str, typer.Argument(help="'digits' (embedded real images), or an .npz file with arrays x and y.")]
Run = Annotated[Path, typer.Argument(help="A run directory that 'labelmend train' made.")]


@app.command()
def train(
    source: Source,
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the run; must not hold one yet.")],
    method: Annotated[str, typer.Option(help="How to train; 'labelmend methods' lists them.")] = TrainConfig.method,
    net: Annotated[str | None, typer.Option(help="preact-resnet18, slim-resnet, convnet or mlp.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the data.")] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            help="Make labels wrong first: symmetric:R redraws a share R from all classes, "
            "symmetric-excl:R from the other classes."
        ),
    ] = None,
    test: Annotated[str | None, typer.Option(help="An .npz file to evaluate on.")] = None,
    limit: Annotated[int | None, typer.Option(help="Train on this many samples, drawn at random.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = TrainConfig.seed,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = TrainConfig.device,
    threads: Annotated[int | None, typer.Option(help="CPU threads; chosen from the network.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; 'labelmend methods ID' lists them."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
) -> None:
    """Train robustly and judge every label.

    What you leave open (net, epochs, batch size) is chosen from the data, and the choice explained. The run
    directory holds run.json, epochs.jsonl, labels.csv and labels.parquet, the model, checkpoints and report.html.

    Try: labelmend train digits --noise symmetric:0.5 --out runs/digits
    """
    from .settings import split_pairs

    config = TrainConfig(
        source=source,
        out=str(out_dir),
        method=method,
        net=net,
        epochs=epochs,
        noise=noise,
        test=test,
        limit=limit,
        seed=seed,
        device=device,
        threads=threads,
        settings=split_pairs(settings or []),
        resume=resume,
    )
    from .terminal import run_with_progress, show_summary

    run = run_with_progress(config, out, stop_signal=_signals())
    show_summary(run, out)


@app.command()
def demo(
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the two runs; replaced if it is a demo's.")] = Path(
        "labelmend-demo"
    ),
    epochs: Annotated[int, typer.Option(help="Passes over the data.")] = 40,
    seed: Annotated[int, typer.Option(help="Same seed, same story.")] = TrainConfig.seed,
    threads: Annotated[int | None, typer.Option(help="CPU threads; chosen from the network.")] = None,
) -> None:
    """Tell the whole story on real images in about a minute: corrupt, train, find, correct, report."""
    from .demo import tell

    tell(out_dir, epochs=epochs, seed=seed, threads=threads, console=out, stop_signal=_signals())


@app.command()
def predict(
    run: Run,
    source: Source,
    out_file: Annotated[Path | None, typer.Option("--out", help="CSV file; by default the screen.")] = None,
) -> None:
    """Predict classes with the model of a run."""
    from .data.sources import open_inputs
    from .engine.run_dir import RunDirectory, write_atomic
    from .labels.table import predictions_csv
    from .predict import load_model

    model = load_model(RunDirectory.existing(run))
    inputs, ids = open_inputs(source)
    table = predictions_csv(ids, model.class_names, model.probabilities(inputs))
    if out_file is None:
        sys.stdout.buffer.write(table)
        return
    write_atomic(out_file, table)
    out.print(f"{len(ids):,} predictions in {out_file}", highlight=False)


@app.command()
def report(run: Run) -> None:
    """(Re)build report.html of a finished run."""
    from .engine.run_dir import RunDirectory
    from .report.build import build_report

    place = RunDirectory.existing(run)
    build_report(place)
    out.print(str(place.report), highlight=False, soft_wrap=True)


@app.command()
def methods(
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="Show the settings of one method.")] = None,
) -> None:
    """List the methods, one line each; with an ID, what can be set in it."""
    from .methods import find
    from .methods import methods as registered
    from .terminal import show_methods, show_settings

    if id is None:
        show_methods(registered(), out)
    else:
        show_settings(find(id), Optimisation, out)


def main() -> None:
    """Run the command and turn what went wrong into an exit code: 2 bad input, 130/143 interrupted, 1 the rest."""
    try:
        code = app(standalone_mode=False)
    except InputError as error:
        err.print(f"labelmend: {error}", style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        sys.exit(_failure(error))
    sys.exit(code if isinstance(code, int) else 0)


def _failure(error: Exception) -> int:
    import click

    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if isinstance(error, click.Abort):
        return 128 + signal.SIGINT
    from .engine.trainer import InterruptedRunError, NotFiniteError

    if isinstance(error, InterruptedRunError):
        err.print("labelmend: interrupted; go on with the same command and --resume", highlight=False)
        return 128 + error.signal
    if isinstance(error, NotFiniteError | OSError):
        err.print(f"labelmend: {error}", style="red", highlight=False, markup=False, soft_wrap=True)
        return 1
    raise error


def _signals() -> Callable[[], int | None]:
    """Remember the first SIGINT or SIGTERM for the loop to heed; the second one ends the process at once."""
    received: list[int] = []

    def note(number: int, frame: Any) -> None:
        received.append(number)
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, note)
    return lambda: received[0] if received else None
