"""Build `report.html` from a run directory."""

from importlib.resources import files
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from ..engine.run_dir import RunDirectory, write_atomic
from ..errors import InputError
from ..labels.judge import KIND
from . import figures

SHOWN = 50


def build_report(run: RunDirectory) -> None:
    """Write the report of a finished run, one self-contained file."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    described = run.read()
    if described.get("status") != "finished":
        raise InputError(f"{run.path} is {described.get('status')}; finish it with labelmend train ... --resume first")
    epochs = run.epochs()
    table = pq.read_table(run.labels_parquet)
    losses = table["loss"].to_numpy()
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files(__package__).joinpath("template.html").read_text())
    histogram = figures.loss_histogram(losses, described["summary"]["mixture"], KIND)
    page = template.render(
        run=described,
        name=run.path.name,
        summary=described["summary"],
        verdict=verdict(described),
        suspects=_suspects(table.to_pydict()),
        histogram=Markup(histogram),
        curves=Markup(figures.curves(epochs)),
        degenerate=described["summary"]["degenerate"],
    )
    write_atomic(run.report, page.encode())


def verdict(described: dict[str, Any]) -> str:
    """What the run found, in one sentence."""
    summary, samples = described["summary"], described["data"]["samples"]
    if summary["degenerate"]:
        return f"No evidence of wrong labels: the losses of the {samples:,} samples form one group."
    share = summary["suspects"] / samples
    return (
        f"{summary['suspects']:,} of {samples:,} labels ({share:.1%}) look wrong; "
        f"the estimated noise rate is {summary['noise_rate']:.1%}."
    )


def _suspects(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    order = np.lexsort((-np.asarray(columns["loss"]), -np.asarray(columns["noisy_probability"])))
    rows = [{name: values[i] for name, values in columns.items()} for i in order[:SHOWN]]
    return [row for row in rows if row["noisy_probability"] > 0.5]
