"""The `labelmend` command: its commands by task, and its exit codes."""

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ..errors import InputError, InterruptedRunError, StorageError, visible
from .commands import exchange, find, fix, research, use
from .commands.judge import judge
from .commands.review import review
from .console import err, out

FIND, FIX, USE, RESEARCH = "Find wrong labels", "Fix them", "Use the model", "Research"
COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    FIND: (find.train, judge, find.labels, find.report, find.demo),
    FIX: (review, exchange.import_, fix.apply, fix.undo),
    USE: (use.predict, exchange.export),
    RESEARCH: (research.methods, research.noise),
}
"""All commands, by what the user wants to do."""


class PlainFlags:
    """Help that shows a flag by its name alone, without the type that typer would put beside it."""

    def get_params(self, context: Any) -> list[Any]:
        """The parameters, flags without a type."""
        params: list[Any] = super().get_params(context)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(PlainFlags, TyperCommand):
    """One command."""


class Group(PlainFlags, TyperGroup):
    """All of them."""


WAITING = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "20000"}
"""Threads that spin are many times slower beside other work, and ones that sleep at once are slower on a quiet machine:
they spin for some ten microseconds where that can be set."""

app = typer.Typer(cls=Group, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich")


def add(command: Callable[..., None], *, panel: str) -> None:
    """Make a function a command, listed under this heading of the help."""
    name = command.__name__.removesuffix("_")  # `import_`, as `import` is a word of Python
    app.command(name, cls=Command, rich_help_panel=panel)(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        out.print(f"labelmend {version('labelmend')}", highlight=False)
        raise typer.Exit


@app.callback()
def labelmend(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find the wrong labels in your data set, fix them, and get a classifier that did not learn them.

    One training run, without a clean subset and without knowing how many labels are wrong.

    Try: labelmend demo

    Try: labelmend train my-images/ --out runs/mine
    """


for heading, commands in COMMANDS.items():
    for function in commands:
        add(function, panel=heading)


def run_command() -> None:
    """Run the command and turn what went wrong into an exit code: 2 bad input, 130/143 interrupted, 1 the rest."""
    for setting, value in WAITING.items():
        os.environ.setdefault(setting, value)
    try:
        for word in sys.argv[1:]:
            if word.encode(errors="ignore").decode() != word:
                raise InputError(f"the argument {visible(word)} is not valid UTF-8")
        code = app(standalone_mode=False)
    except InputError as error:
        _say(str(error))
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        sys.exit(_failure(error))
    sys.exit(code if isinstance(code, int) else 0)


def _say(sentence: str) -> None:
    err.print(f"labelmend: {sentence}", style="red", highlight=False, markup=False, soft_wrap=True)


def click_errors() -> tuple[type[Any], ...]:
    """Bad usage as typer reports it: by click's own exceptions, or by those of the copy that newer versions carry."""
    homes = (f"{home}.exceptions" for home in ("click", "typer._click") if find_spec(home))
    return tuple(import_module(home).ClickException for home in homes)


def _failure(error: Exception) -> int:
    """Say what went wrong; gives the exit code."""
    if isinstance(error, typer.Abort):
        return 128 + signal.SIGINT
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, click_errors()):
        error.message = visible(error.message)
        error.show()
        return int(error.exit_code)
    if isinstance(error, InterruptedRunError):
        err.print("labelmend: interrupted", highlight=False)
        return 128 + error.signal
    from ..training.finite import NotFiniteError

    if isinstance(error, NotFiniteError | StorageError | OSError):
        _say(str(error))
        return 1
    raise error
