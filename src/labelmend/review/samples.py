"""What a person sees of a sample: from the original as soon as it is open, and before that from the evidence."""

import logging
import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..report.beside import SNIPPET, Neighbour, cells_of, compared_cells, text_parts, unusual_bars
from ..run.directory import RunDirectory
from .kept import Kept, Shown
from .labels import JudgedLabels
from .nearest import Likely, Nearest

if TYPE_CHECKING:
    from .originals import Originals

LARGE, SMALL = 1_400, 160
"""Largest sides of pictures, in pixels."""
LONGEST_TEXT = 20_000
MOST_COLUMNS = 60
OPENED_AFTER = 0.3
"""Seconds after the first page was opened."""
OPENING, OPEN, MISSING = "opening", "open", "missing"
logger = logging.getLogger(__name__)


class SampleViews:
    """Views of the samples of a run; the data set is opened beside, since that may take a while."""

    def __init__(
        self, run: RunDirectory, labels: JudgedLabels, *, source: str | None = None, root: str | None = None
    ) -> None:
        self.run = run
        self.labels = labels
        self.kept = Kept(run)
        self.source = OPENING
        self.notes = [self.kept.note] if self.kept.note else []
        self._where = {"source": source, "root": root}
        self._nearest = Nearest(run, labels)
        self._likely = Likely(run, labels, self._nearest)
        self._originals: Originals | None = None
        self._thread: threading.Timer | None = None

    def open(self) -> None:
        """Open the data set; what goes wrong becomes a note, since a review can do without."""
        try:
            self._check_known()
            from .originals import open_originals  # imports PyTorch

            self._originals, notes = open_originals(self.run, self.labels, **self._where, columns=self.kept.columns)
            self.source = OPEN
        except InputError as error:
            notes = [f"The originals are not shown: {error}"]
            self.source = MISSING
        except Exception as error:  # a data set can fail in any way, and a review must not
            logger.debug("the data set could not be opened", exc_info=True)
            notes = [f"The originals are not shown: {type(error).__name__}: {str(error).partition(chr(10))[0]:.200}"]
            self.source = MISSING
        self.notes = [*self.notes, *notes]

    def _check_known(self) -> None:
        """Refuse a run that does not know its data set, before anything slow is imported."""
        config = self.run.read().get("config")
        if not self._where["source"] and not (isinstance(config, dict) and config.get("source")):
            raise InputError("the run does not know its data set, only ids; give it with --source")

    def open_beside(self) -> None:
        """The same in a thread of its own, once, and a moment later: the first sample should not wait for it."""
        if self._thread is None:
            self._thread = threading.Timer(OPENED_AFTER, self.open)
            self._thread.daemon = True
            self._thread.start()

    def picture(self, row: int, *, large: bool) -> bytes | None:
        """PNG or JPEG of a sample, made anew from the original or from what the run kept; None if there is neither."""
        from ..data.kinds import decode

        kept, originals = self.kept.shown(self.labels.ids[row]).get("picture"), self._originals
        side = LARGE if large else SMALL
        if originals is not None and originals.has(row):
            try:
                return originals.picture(row, side=side)
            except decode.UnusableImageError:
                pass
        try:
            return decode.thumbnail(kept, side=side) if isinstance(kept, bytes) and kept else None
        except decode.UnusableImageError:
            return None

    def has_kept_picture(self, row: int) -> bool:
        """Whether the run kept a picture of this sample."""
        return bool(self.kept.shown(self.labels.ids[row]).get("picture"))

    def view(self, row: int) -> dict[str, Any]:
        """A sample and what stands beside it, as plain values; classes are positions in their names."""
        labels, shown = self.labels, self.kept.shown(self.labels.ids[row])
        rival = self._likely.rival(row, shown.get("rival"))
        like = {
            "like_given": self._like(shown, "given", row, int(labels.given[row])),
            "like_rival": self._like(shown, "rival", row, rival),
        }
        columns, cells = self._cells(row, shown)
        beside = {name: [self._neighbour(each, len(cells)) for each in rows] for name, rows in like.items()}
        bars = unusual_bars(self._unusual(row, shown, rival, len(columns)), columns)
        every = [each for name in like for each in beside[name]]
        return {
            **self.facts(row),
            "rival": rival,
            "likely": self._likely.classes(row, rival),
            "kind": self._kind(shown),
            "here": self._originals is None or self._originals.has(row),
            **self._text(row, shown),
            "cells": compared_cells(cells, every, columns, bars, most=MOST_COLUMNS),
            "columns": len(columns),
            "bars": [asdict(bar) for bar in bars],
            **{
                name: [
                    {"row": each, "given": int(labels.given[each]), "id": labels.ids[each], "text": near.text}
                    for each, near in zip(rows, beside[name], strict=True)
                ]
                for name, rows in like.items()
            },
        }

    def facts(self, row: int) -> dict[str, Any]:
        """What the run found of a sample, and the beginning of its text, for a card."""
        labels = self.labels
        return {
            "row": row,
            "id": labels.ids[row],
            "given": int(labels.given[row]),
            "suggested": int(labels.suggested[row]),
            "verdict": int(labels.verdict[row]),
            "probability": round(float(labels.probability[row]), 4),
            "confidence": round(float(labels.confidence[row]), 4),
        }

    def card(self, row: int) -> dict[str, Any]:
        """A sample as one of many: no neighbours, and the beginning of its text or its first cells."""
        shown = self.kept.shown(self.labels.ids[row])
        columns, cells = self._cells(row, shown)
        bars = unusual_bars(shown.get("unusual"), columns)
        compared = compared_cells(cells, [], columns, bars, most=4)
        text = "".join(part for part, _ in self._text(row, shown)["text"])
        return {
            **self.facts(row),
            "rival": self._likely.rival(row, shown.get("rival")),
            "likely": self._likely.classes(row, None),
            "kind": self._kind(shown),
            "text": text[:SNIPPET],
            "cells": [(name, value[0]) for name, _, value in compared],
        }

    def _kind(self, shown: Shown) -> str:
        if self._originals is not None:
            return self._originals.kind
        for kind, names in (("picture", ("picture",)), ("text", ("text",)), ("cells", ("cells", "features"))):
            if any(shown.get(name) for name in names):
                return kind
        return "unknown" if self.source == OPENING else "none"

    def _text(self, row: int, shown: Shown) -> dict[str, Any]:
        text = str(shown.get("text") or "")
        if self._originals is not None and self._originals.has(row):
            text = self._originals.text(row) or text
        return {"text": text_parts(text[:LONGEST_TEXT], shown.get("marks")), "cut": max(0, len(text) - LONGEST_TEXT)}

    def _cells(self, row: int, shown: Shown) -> tuple[Sequence[str], list[str]]:
        """Names and values of the cells of a sample; none of a picture or a text."""
        if self._originals is not None and self._originals.has(row):
            return self._originals.columns, self._originals.cells(row)
        return self.kept.columns, cells_of(shown)

    def _unusual(self, row: int, shown: Shown, rival: int | None, columns: int) -> list[dict[str, Any]] | None:
        """Evidence knows it of the first suspects, by the same columns; of others it is computed."""
        originals = self._originals
        if shown.get("unusual") is not None or originals is None or not originals.has(row):
            return shown.get("unusual") if columns == len(self.kept.columns) else None
        return originals.unusual(row, rival)

    def _like(self, shown: Shown, which: str, row: int, label: int | None) -> list[int]:
        """Rows of the samples most like this one in a class: as evidence has them, or by the kept features."""
        found = [self.labels.row_of.get(id, -1) for id in self.kept.named(shown.get(f"like_{which}"))]
        found = found or [near if isinstance(near, int) else -1 for near in shown.get(f"near_{which}") or ()]
        found = [near for near in found if 0 <= near < len(self.labels)]
        return found or ([] if label is None else self._nearest.like(row, label))

    def _neighbour(self, row: int, columns: int) -> Neighbour:
        shown = self.kept.shown(self.labels.ids[row])
        _, cells = self._cells(row, shown)
        text = "".join(part for part, _ in self._text(row, shown)["text"])
        cells = cells if len(cells) == columns else [""] * columns
        given = self.labels.class_names[self.labels.given[row]]
        return Neighbour(self.labels.ids[row], given, None, text[:SNIPPET] + "…" * (len(text) > SNIPPET), cells)
