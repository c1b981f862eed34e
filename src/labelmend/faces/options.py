"""Command-line options made from the fields of `TrainConfig`, which describe them. Imports nothing slow."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.markup import escape

from ..training.config import TrainConfig, flag
from ..training.settings import between

ARGUMENT = "source"
"""The field that is given without an option name."""
PAIRS = "settings"
"""The field that is given as KEY=VALUE, any number of times."""
UNGIVEN = ("DEFAULT", "DEFAULT_MAP")
"""Names of click's parameter sources that are not the user."""


def described(name: str, kind: type = TrainConfig, *, grouped: bool = False) -> Any:
    """The command-line option of one field: name, help, limits and metavar; `grouped` under the field's heading."""
    field = {field.name: field for field in fields(kind)}[name]
    about = field.metadata
    help, metavar = escape(about["help"]), about.get("metavar")
    if "least" in about or "most" in about:
        help = f"{help.removesuffix('.')}; {between(about)}."
    if name == ARGUMENT:
        return typer.Argument(help=help, metavar=metavar, show_default=False)
    return typer.Option(flag(field), help=help, metavar=metavar, rich_help_panel=about["group"] if grouped else None)


Source = Annotated[str, described("source")]
Root = Annotated[str | None, described("root")]
ImageColumn = Annotated[str | None, described("image_column")]
LabelColumn = Annotated[str | None, described("label_column")]
IdColumn = Annotated[str | None, described("id_column")]
SkipBad = Annotated[bool, described("skip_bad")]
Seed = Annotated[int, described("seed")]
Threads = Annotated[int | None, described("threads")]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory that 'labelmend train' or 'judge' made.")]
Decisions = Annotated[
    Path | None,
    typer.Option(
        "--decisions",
        metavar="FILE",
        help="Decisions of reviewers, a CSV with the columns id, decision and label; by default RUN/decisions.csv.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")]


def takes_every_option(kind: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command `(context, **given)` an option for each field of the dataclass."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        context = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)
        options = [_parameter(kind, field.name) for field in fields(kind)]
        command.__signature__ = Signature([context, *options])  # type: ignore[attr-defined]
        return command

    return decorate


def _parameter(kind: type, name: str) -> Parameter:
    field = {field.name: field for field in fields(kind)}[name]
    hint: Any = get_type_hints(kind)[name]
    default = field.default
    if name == ARGUMENT:  # may be left out with --resume
        hint, default = str | None, None
    elif name == PAIRS:
        hint, default = list[str] | None, None
    annotation = Annotated[hint, described(name, kind, grouped=True)]
    default = Parameter.empty if default is MISSING else default
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def explicit(context: typer.Context, given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the given values that the user wrote, not those that are defaults."""

    def written(name: str) -> bool:
        source = context.get_parameter_source(name)
        return source is not None and source.name not in UNGIVEN

    return {name: value for name, value in given.items() if written(name)}
