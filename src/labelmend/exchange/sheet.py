"""CSV: a sheet in which a person fills in the columns `decision` and `label`, and which `--decisions` takes as well."""

from pathlib import Path

from ..run.decisions import RELABEL, csv_cell, read_decisions
from .answers import Answer
from .suspects import Suspects

COLUMNS = ("id", "given", "suggested", "noisy_probability", "decision", "label")
MARK = b"\xef\xbb\xbf"
"""Without a byte order mark, Excel takes UTF-8 for another encoding."""


def write(suspects: Suspects, out: Path, root: str | None = None) -> dict[Path, bytes]:
    """The sheet: a row a suspect, with its text or the cells of its row in further columns."""
    fields = dict.fromkeys(name for each in suspects for name in each.content.fields or ())
    texts = any(each.content.text is not None for each in suspects)
    names = [
        *COLUMNS,
        *(["text"] if texts else []),
        *(f"{name} (data)" if name in COLUMNS else name for name in fields),
    ]
    lines = [names]
    for each in suspects:
        known = each.content.fields or {}
        beside = [each.content.text or ""] if texts else []
        probability = f"{each.noisy_probability:.3f}"
        cells = [each.id, each.given, each.suggested or "", probability, "", "", *beside]
        lines.append([*cells, *(known.get(name, "") for name in fields)])
    text = "".join(",".join(map(csv_cell, line)) + "\n" for line in lines)
    return {out: MARK + text.encode(errors="surrogateescape")}


def read(path: Path) -> list[Answer]:
    """The answers in a sheet: rows with a decision, or with a label alone, which is the right one then."""
    return [
        Answer(each.id, each.label, "" if each.decision == RELABEL else each.decision, each.reviewer, each.time)
        for each in read_decisions(path)
    ]
