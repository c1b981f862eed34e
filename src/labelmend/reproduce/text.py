"""Rows as CSV and as Markdown."""

import csv
import io
from collections.abc import Sequence


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
