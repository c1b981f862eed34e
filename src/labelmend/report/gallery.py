"""The samples with the most doubtful labels, as pictures, or as texts and rows that open."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..detect.judge import CLEAN
from ..run.evidence import read_neighbours, read_suspects
from .beside import SNIPPET, cells_of, compared_cells, neighbours_of, text_parts, unusual_bars
from .picture import as_picture
from .read import Findings

MOST_KEPT = 24
"""Labels shown of a set that looks clean: enough to check what the network doubts."""
PREVIEWED = 4
Shown = dict[str, Any]


@dataclass(frozen=True)
class Gallery:
    """Suspects in order, counts of their pairs of given and suggested label, and names of feature columns, if any.

    Suspects are the flagged labels or, if none is flagged, those that the network doubts most; `total` are all of them.
    """

    suspects: list[Shown]
    pairs: list[tuple[str, str, int]]
    columns: list[str]
    total: int

    @property
    def pictures(self) -> bool:
        """Whether any suspect has a picture."""
        return any(suspect["picture"] for suspect in self.suspects)

    @property
    def opens(self) -> bool:
        """Whether suspects are texts or rows, which open where they stand."""
        return bool(self.columns) or any(suspect["text"] for suspect in self.suspects)

    @property
    def marked(self) -> bool:
        """Whether any text has marked words."""
        return any(loud for suspect in self.suspects for _, loud in suspect["text"])


def gallery(findings: Findings, limit: int) -> Gallery:
    """At most `limit` samples with the most doubtful labels, each with what a person sees of it.

    They are the flagged ones; if none is flagged, the first by rank, without labels that are known to be right.
    """
    evidence, columns = read_suspects(findings.run) or (None, [])
    table = read_neighbours(findings.run)
    known = [] if table is None else table.to_pylist()
    rows = np.argsort(findings.column("rank"))
    rows = rows[findings.flagged[rows] if findings.flagged.any() else findings.column("noisy_probability")[rows] > 0]
    total, rows = len(rows), rows[: min(limit, MOST_KEPT) if findings.noise["finding"] == CLEAN else limit]
    suspects = findings.table.take(rows).to_pylist()
    shown = {}
    if evidence is not None:
        wanted = pa.array([suspect["id"] for suspect in suspects], pa.string())
        shown = {row["id"]: row for row in evidence.filter(pc.is_in(evidence["id"], wanted)).to_pylist()}
    counts = Counter((suspect["given"], suspect["suggested"]) for suspect in suspects)
    pairs = [(*pair, count) for pair, count in counts.most_common()]
    numbers = {pair[:2]: number for number, pair in enumerate(pairs)}
    for suspect, row in zip(suspects, rows.tolist(), strict=True):
        suspect["verdict"] = str(findings.verdicts[row])
        suspect["pair"] = numbers[suspect["given"], suspect["suggested"]]
        suspect |= _seen(shown.get(suspect["id"], {}), columns, known)
    return Gallery(suspects, pairs, columns, total)


def _seen(found: Mapping[str, Any], columns: Sequence[str], known: Sequence[Mapping[str, Any]]) -> Shown:
    """What a person sees of a suspect, and what stands beside it."""
    bars = unusual_bars(found.get("unusual"), columns)
    cells = cells_of(found)
    like = [neighbours_of(found.get(name), known, columns=len(cells)) for name in ("like_given", "like_rival")]
    compared = compared_cells(cells, [*like[0], *like[1]], columns, bars)
    return {
        "picture": as_picture(found.get("picture")),
        "text": text_parts(found.get("text"), found.get("marks")),
        "compared": compared,
        "snippet": str(found.get("text") or "")[:SNIPPET],
        "preview": [(name, cells[0]) for name, _, cells in compared[:PREVIEWED]],
        "bars": bars,
        "rival": found.get("rival"),
        "like_given": like[0],
        "like_rival": like[1],
    }
