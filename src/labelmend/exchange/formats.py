"""The formats by name, and what export and import do with them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.limits import READ_WHOLE
from ..errors import InputError, lookup
from ..run.directory import RunDirectory
from . import cvat, fiftyone, label_studio, sheet
from .answers import Answer, Imported, import_answers
from .suspects import Suspects, file_names

if TYPE_CHECKING:
    from ..data.samples import Samples


@dataclass(frozen=True)
class Format:
    """A format: its files of suspects, and the answers in a file of it.

    `tool` is what the format is made for. `name_of` gives the name that it has for an image file, if image files are
    all that it shows; without it, the tool shows anything and keeps ids.
    """

    write: Callable[[Suspects, Path, str | None], dict[Path, bytes]]
    read: Callable[[Path], list[Answer]]
    tool: str | None = None
    name_of: Callable[[str], str] | None = None

    def fitted(self, suspects: Suspects) -> Suspects:
        """The suspects that the tool can show."""
        if self.tool is not None:
            suspects = suspects.fit_for(self.tool)
        return suspects if self.tool is None or self.name_of is None else suspects.with_files(self.tool)


FORMATS = {
    "label-studio": Format(label_studio.write, label_studio.read, "Label Studio"),
    "fiftyone": Format(fiftyone.write, fiftyone.read, "FiftyOne", fiftyone.stem),
    "cvat": Format(cvat.write, cvat.read, "CVAT", str),
    "csv": Format(sheet.write, sheet.read),
}


def export_files(
    suspects: Suspects, to: str, out: Path, *, root: str | None = None
) -> tuple[Suspects, dict[Path, bytes]]:
    """The suspects that the tool can show, and the files of the format by their paths.

    `root` is what stands before the paths of image files for Label Studio. InputError if a file would be larger than
    import reads.
    """
    form = lookup("format", to, FORMATS)
    suspects = form.fitted(suspects)
    files = form.write(suspects, out, root)
    if to == "label-studio" and root is None and (said := label_studio.advice(suspects)):
        suspects = replace(suspects, notes=[*suspects.notes, said])
    for path, content in files.items():
        if len(content) > READ_WHOLE:
            raise InputError(
                f"{path} would have {len(content) >> 20} MB, and at most {READ_WHOLE >> 20} MB are read back; export "
                "fewer with --top"
            )
    return suspects, files


def import_file(
    run: RunDirectory,
    path: Path,
    of: str,
    *,
    reviewer: str | None = None,
    accept_suggestions: bool = False,
    samples: "Samples | None" = None,
) -> Imported:
    """Append the answers of a file in this format to the decisions of the run, all or none.

    Where the tool knows samples by their files only, `samples` is the data set that tells which they are; without it,
    the ids of the run are taken for the names of the files.
    """
    form = lookup("format", of, FORMATS)
    id_of = None if form.name_of is None else _ids(run, form.name_of, samples)
    return import_answers(
        run, form.read(path), tool=of, reviewer=reviewer, accept_suggestions=accept_suggestions, id_of=id_of
    )


def _ids(run: RunDirectory, name_of: Callable[[str], str], samples: "Samples | None") -> Mapping[str, str]:
    """The ids of samples by the names that a tool has for their files; none for a name that several have."""
    from ..run.labels import read_label_table

    named = {} if samples is None else file_names(run, samples)
    named = named or {id: id for id in read_label_table(run)["id"].to_pylist()}
    found, twice = dict[str, str](), set[str]()
    for name, id in named.items():
        key = name_of(name)
        if found.setdefault(key, id) != id:
            twice.add(key)
    return {name: id for name, id in found.items() if name not in twice}
