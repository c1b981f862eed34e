"""What a run kept of its suspects in evidence/: shown at once, and in place of originals that are not there."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ..errors import InputError
from ..run.directory import RunDirectory
from ..run.evidence import read_neighbours, read_suspects

Shown = dict[str, Any]


class Kept:
    """The suspects of a run with what stands beside them, by id; empty if the run kept none or they are damaged."""

    def __init__(self, run: RunDirectory) -> None:
        self.columns: list[str] = []
        self.note = ""
        self._suspects: pa.Table | None = None
        self._neighbours: pa.Table | None = None
        try:
            self._suspects, columns = read_suspects(run) or (None, [])
            self.columns = [str(name) for name in columns]
            self._neighbours = read_neighbours(run)
            self._place = {**_places(self._neighbours, 1), **_places(self._suspects, 0)}
        except (InputError, OSError, KeyError, ValueError, TypeError, pa.ArrowException) as error:
            self._suspects = self._neighbours = None
            self._place = {}
            self.note = f"the evidence of the run cannot be read: {str(error).partition(chr(10))[0]:.300}"

    def shown(self, id: str) -> Shown:
        """What is kept of a sample: its picture, text, values or cells, and what stands beside it; often nothing."""
        if id not in self._place:
            return {}
        table, row = self._place[id]
        found = self._suspects if table == 0 else self._neighbours
        assert found is not None
        return dict(found.slice(row, 1).to_pylist()[0])

    def named(self, rows: Sequence[Any] | None) -> list[str]:
        """The ids of rows of the neighbours; rows that do not exist are passed over."""
        if self._neighbours is None:
            return []
        ids, count = self._neighbours["id"], self._neighbours.num_rows
        return [str(ids[row].as_py()) for row in rows or () if isinstance(row, int) and 0 <= row < count]


def _places(table: pa.Table | None, number: int) -> dict[str, tuple[int, int]]:
    ids = [] if table is None else table["id"].to_pylist()
    return {str(id): (number, row) for row, id in enumerate(ids)}
