"""The data set of a run, opened again to be written with other labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..data.listing import Listing
from ..data.readers.named import NAMED
from ..data.samples import Dataset
from ..data.sources import SourceOptions, label_names, list_source, open_source
from ..data.stream import StreamedImages
from ..errors import InputError

NAMES = ("digits", *NAMED)


@dataclass(frozen=True)
class LabelledSource:
    """All rows of a source with their class names, and what is needed to write them again.

    `images` are paths or bytes, of a source that lists its images, below `root`; `data` is a named set in memory.
    """

    path: str
    options: SourceOptions
    ids: Sequence[str]
    names: Sequence[str]
    classes: set[str]
    places: Sequence[str]
    images: Sequence[Path | bytes] = ()
    root: Path | None = None
    data: Dataset | None = None

    @property
    def file_name(self) -> str | None:
        """Name of the file that holds the labels; None if the source is a folder."""
        if self.data is not None:
            return f"{self.path}.npz"
        return None if Path(self.path).is_dir() else Path(self.path).name


def open_labelled(path: str, options: SourceOptions) -> LabelledSource:
    """Open a source without decoding its images; InputError if it is not there or cannot be written again."""
    if path not in NAMES and not Path(path).exists():
        raise InputError(f"the source {path} is not there; run this in the folder where the run was started")
    opened = open_source(path, options)[0] if path in NAMES else list_source(path, options)
    if isinstance(opened, tuple):
        opened = opened[0]
    if isinstance(opened, Dataset):
        if isinstance(opened.inputs, StreamedImages):
            raise InputError(f"{path} is too large to be written from memory; take the labels from labels.csv")
        names = [opened.class_names[label] for label in opened.labels.observed.tolist()]
        data = opened if path in NAMES else None
        return LabelledSource(path, options, opened.ids, names, set(opened.class_names), opened.ids, data=data)
    names = label_names(opened)[0]
    listing = opened if isinstance(opened, Listing) else None
    declared = {str(name).strip() for name in (listing.class_names if listing else None) or ()}
    classes = (set(names) | declared) - {""}
    images, root = (listing.images, listing.root) if listing else ((), None)
    return LabelledSource(path, options, opened.ids, names, classes, opened.places, images, root)
