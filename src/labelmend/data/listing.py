"""Images that are listed but not decoded: what folders, tables and some named sets give."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ImageRef = Path | bytes


@dataclass(frozen=True)
class Listing:
    """One entry a sample: where its image is, its label as it was given, its id, and how to name it in a message."""

    name: str
    images: Sequence[ImageRef]
    labels: Sequence[object]
    ids: Sequence[str]
    places: Sequence[str]
    class_names: Sequence[str] | None = None
    root: Path | None = None

    def __len__(self) -> int:
        return len(self.images)
