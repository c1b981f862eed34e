"""The data set of a run, opened again to be written with other labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..data.kinds.decode import ImageRef
from ..data.kinds.images import ImageFiles
from ..data.readers.named import NAMED
from ..data.readers.table import Columns
from ..data.samples import Samples
from ..data.sources import SourceOptions, open_source, read_source
from ..errors import InputError
from ..run.description import check_finished
from ..run.directory import RunDirectory


@dataclass(frozen=True)
class LabelledSource:
    """A source as it is now, its images not decoded; of a set that is known by its name, the images in memory."""

    path: str
    options: SourceOptions
    samples: Samples

    @property
    def is_named(self) -> bool:
        """Whether the set is known by its name, and written as an archive."""
        return self.path in NAMED

    @cached_property
    def names(self) -> list[str]:
        """The class name of every row, empty where it has none."""
        return self.samples.label_names

    @property
    def files(self) -> ImageFiles | None:
        """The image files of the source, where its samples are such."""
        return self.samples.inputs if isinstance(self.samples.inputs, ImageFiles) else None

    @property
    def images(self) -> Sequence[ImageRef]:
        """Paths or bytes of the images."""
        return () if self.files is None else self.files.refs

    @property
    def root(self) -> Path | None:
        """The folder that holds the images."""
        return None if self.files is None else self.files.root

    @property
    def file_name(self) -> str | None:
        """Name of the file that holds the labels; None if the source is a folder."""
        if self.is_named:
            return f"{self.path}.npz"
        return None if Path(self.path).is_dir() else Path(self.path).name


def open_labelled(path: str, options: SourceOptions) -> LabelledSource:
    """Open a source without decoding its images; InputError if it is not there or cannot be written again."""
    if not path:
        raise InputError(
            "the run knows no file to correct: it was trained on Python objects, or judged without --source; take the "
            "labels of its corrections"
        )
    if path not in NAMED and not Path(path).exists():
        raise InputError(f"the source {path} is not there; run this in the folder where the run was started")
    samples = open_source(path, options)[0] if path in NAMED else read_source(path, options)
    source = LabelledSource(path, options, samples)
    if source.is_named and source.files is not None:
        raise InputError(f"{path} is too large to be written from memory; take the labels from labels.csv")
    return source


def read_config(run: RunDirectory) -> tuple[dict[str, Any], str]:
    """The options of the run and the fingerprint of its data, checked: run.json may come from anywhere."""
    described = run.read()
    check_finished(run.path, described)
    texts = ("source", "noise", "labels", "root", "image_column", "label_column", "id_column")
    try:
        config = {"skip_bad": False, "size": None, "memory": 2.0} | dict.fromkeys(texts) | described["config"]
        fingerprint = described["data"]["fingerprint"]
    except (KeyError, TypeError):
        raise InputError(f"{run.run_json} is damaged: it does not say what was trained on") from None
    kinds = dict.fromkeys(texts, str | None) | {"source": str, "size": int | None, "memory": int | float}
    if not all(isinstance(config[key], kind) for key, kind in kinds.items()):
        raise InputError(f"{run.run_json} is damaged: its config has values of the wrong type")
    return config, str(fingerprint)


def source_options(config: dict[str, Any]) -> SourceOptions:
    """How the source of a run is read again."""
    columns = Columns(config["image_column"], config["label_column"], config["id_column"])
    return SourceOptions(None, config["root"], columns, config["size"], bool(config["skip_bad"]), config["memory"])
