"""Results as the paper's tables, with the paper's own numbers: best and last accuracy by row and noise level."""

import csv
import io
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from .catalogue import Planned
from .protocol import Scale
from .runs import Result

Results = Mapping[str, Result]
"""What runs came to, by their keys."""


def csv_text(rows: Sequence[Sequence[object]]) -> str:
    """Header and rows as CSV; None as nothing."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def markdown_table(rows: Sequence[Sequence[str]], *, right_from: int) -> str:
    """Header and rows as a Markdown table, whose columns stand on the right from one of them on."""
    header, *body = rows
    rule = ["---" if place < right_from else "---:" for place in range(len(header))]
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, rule, *body))


def short(value: float) -> str:
    """A number with five digits, for those who look and do not compute on."""
    return f"{value:.5g}"


class Published(NamedTuple):
    """Best and last accuracy in percent; a table that gives one number gives the best."""

    best: float | None
    last: float | None
    system: str
    architecture: str


@cache
def published() -> dict[tuple[str, str, str, str], Published]:
    """Numbers by table, data set, row and noise level, as in `published.csv`."""
    text = files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    return {
        (line["table"], line["data"], line["row"], line["noise"]): Published(
            _number(line["best"]), _number(line["last"]), line["system"], line["architecture"]
        )
        for line in csv.DictReader(text.splitlines())
    }


def _number(text: str) -> float | None:
    return float(text) if text else None


@dataclass(frozen=True)
class Cell:
    """One number of a table, in percent, over some seeds, None where one diverged; and the paper's, if it has one."""

    seeds: tuple[float | None, ...]
    paper: float | None = None

    @property
    def values(self) -> list[float]:
        """Those of the seeds that came to something."""
        return [value for value in self.seeds if value is not None]

    @property
    def mean(self) -> float:
        """Mean over the seeds; nothing to average is less than anything."""
        return statistics.mean(self.values) if self.values else -math.inf

    def __str__(self) -> str:
        if not self.values:
            own = "diverged"
        elif len(self.values) == 1:
            own = f"{self.mean:.1f}"
        else:
            own = f"{self.mean:.1f} ± {statistics.stdev(self.values):.1f}"
        lost = len(self.seeds) - len(self.values)
        own += f", {lost} diverged" if self.values and lost else ""
        return own if self.paper is None else f"{own} ({self.paper:.1f})"


@dataclass(frozen=True)
class Grid:
    """One data set's part of a table: for each row and noise level the best and the last accuracy."""

    title: str
    noise: tuple[int | None, ...]
    rows: dict[str, dict[int | None, dict[str, Cell]]]

    def lines(self) -> list[list[str]]:
        """Header and body as text; the highest of each column is marked with asterisks on both sides."""
        header = ["row", "accuracy", *("labels as they are" if level is None else f"{level} %" for level in self.noise)]
        body = []
        for name, cells in self.rows.items():
            for which in ("best", "last"):
                texts = [
                    "" if level not in cells else self._marked(cells[level][which], level, which)
                    for level in self.noise
                ]
                body.append([name if which == "best" else "", which, *texts])
        return [header, *body]

    def _marked(self, cell: Cell, level: int | None, which: str) -> str:
        rivals = [cells[level][which].mean for cells in self.rows.values() if level in cells]
        highest = len(rivals) > 1 and cell.values and round(cell.mean, 1) >= round(max(rivals), 1)
        return f"**{cell}**" if highest else str(cell)


def grids(table: str, scale: Scale, runs: Sequence[Planned], results: Results) -> list[Grid]:
    """The table's parts, one a data set, as far as runs are made; at its scale with the paper's numbers beside ours."""
    places: dict[tuple[str, str, int | None], list[Planned]] = {}
    for run in runs:
        places.setdefault((run.data, run.row, run.noise), []).append(run)
    parts = []
    for data in dict.fromkeys(run.data for run in runs):
        rows: dict[str, dict[int | None, dict[str, Cell]]] = {}
        for (role, row, level), same in places.items():
            if role != data:
                continue
            found = [results[run.key] for run in same if run.key in results]
            if not found:
                continue
            known = published().get((table, data, row, "" if level is None else str(level)))
            rows.setdefault(row, {})[level] = {
                which: Cell(
                    tuple(_percent(getattr(result, which)) for result in found),
                    getattr(known, which) if known is not None and scale.name == "paper" else None,
                )
                for which in ("best", "last")
            }
        levels = tuple(dict.fromkeys(run.noise for run in runs if run.data == data))
        if rows:
            parts.append(Grid(scale.stages[data].title, levels, rows))
    return parts


def markdown(parts: Sequence[Grid]) -> str:
    """All parts as Markdown tables under their titles."""
    return "\n\n".join(f"**{part.title}**\n\n{markdown_table(part.lines(), right_from=2)}" for part in parts)


def by_run(scale: Scale, runs: Sequence[Planned], results: Results) -> str:
    """One line a run, as CSV: all that was measured, by which code."""
    lines = [
        {
            "data": run.data,
            "source": scale.stages[run.data].source,
            "row": run.row,
            "method": run.config.method,
            "noise": run.config.noise,
            "seed": run.config.seed,
            **vars(results[run.key]),
        }
        for run in runs
        if run.key in results
    ]
    return csv_text([list(lines[0]), *(list(line.values()) for line in lines)])


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
