"""The samples with the most doubtful labels, as pictures or as rows of a table."""

import base64
import io
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..detect.judge import CLEAN
from ..run.evidence import read_suspects
from .read import Findings

MOST_COLUMNS = 12
LONGEST_CELL = 120
MOST_KEPT = 24
"""Labels shown of a set that looks clean: enough to check what the network doubts."""
PICTURE_BYTES = 12_000
SMALL = 64
LARGEST_SIDE = 1024
KINDS = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg"}


@dataclass(frozen=True)
class Gallery:
    """Suspects in order, counts of their pairs of given and suggested label, and names of feature columns, if any.

    Suspects are the flagged labels or, if none is flagged, those that the network doubts most; `total` are all of them.
    """

    suspects: list[dict[str, Any]]
    pairs: list[tuple[str, str, int]]
    columns: list[str]
    total: int

    @property
    def pictures(self) -> bool:
        """Whether any suspect has a picture."""
        return any(suspect["picture"] for suspect in self.suspects)


def gallery(findings: Findings, limit: int) -> Gallery:
    """At most `limit` samples with the most doubtful labels, each with its picture or features.

    They are the flagged ones; if none is flagged, the first by rank, without labels that are known to be right.
    """
    evidence, columns = read_suspects(findings.run) or (None, [])
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
        found = shown.get(suspect["id"], {})
        suspect["verdict"] = str(findings.verdicts[row])
        suspect["pair"] = numbers[suspect["given"], suspect["suggested"]]
        suspect["picture"], suspect["small"] = _picture(found.get("picture"))
        suspect["features"] = _values(found)
    return Gallery(suspects, pairs, columns[:MOST_COLUMNS], total)


def _values(found: dict[str, Any]) -> list[str]:
    """The first feature values of a suspect, or cells of its row, as they are shown."""
    if found.get("cells") is not None:
        return [str(cell or "")[:LONGEST_CELL] for cell in found["cells"][:MOST_COLUMNS]]
    return [f"{value:.4g}" for value in (found.get("features") or [])[:MOST_COLUMNS]]


def _picture(content: bytes | None) -> tuple[str | None, bool]:
    """The picture as a data URL, and whether it is so small that its pixels should be shown as squares."""
    from PIL import Image

    kind = next((name for start, name in KINDS.items() if content and content.startswith(start)), None)
    if content is None or kind is None:
        return None, False
    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as image:
            if max(image.size) > LARGEST_SIDE:  # ours are small, and a bomb would hit the reader's browser
                return None, False
            small = max(image.size) < SMALL
            if len(content) > PICTURE_BYTES:
                buffer = io.BytesIO()
                image.convert("RGB").save(buffer, "JPEG", quality=80)
                content, kind = buffer.getvalue(), "jpeg"
    except Exception:  # decoders raise whatever they like on a damaged file
        return None, False
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}", small
