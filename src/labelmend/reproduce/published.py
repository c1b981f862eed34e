"""What the paper reports: every number of its tables and appendices, with the table that it stands in."""

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple


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
