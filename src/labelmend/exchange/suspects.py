"""What goes out to an annotation tool: the suspects of a run, each with what a person has to see of it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError, visible
from ..run.decisions import SKIP, run_decisions, standing
from ..run.description import check_finished
from ..run.directory import RunDirectory
from ..run.evidence import read_suspects
from ..run.labels import ranked_labels, read_label_table

if TYPE_CHECKING:
    from ..data.samples import Samples

VERDICTS = ("relabel", "look")
PICTURE_SIDE = 1_000
"""Pixels of the longer side of a picture that goes out inside a file, because it has no file of its own."""
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold, and that tools stumble over: controls, and bytes that are not UTF-8."""


@dataclass(frozen=True)
class Content:
    """What a person sees of a sample: an image file and its path below the data set, a picture, a text, or fields."""

    file: Path | None = None
    name: str = ""
    picture: bytes | None = None
    text: str | None = None
    fields: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Suspect:
    """A label that goes out to be looked at; `suggested` is None where the run has no better one."""

    id: str
    given: str
    suggested: str | None
    noisy_probability: float
    confidence: float
    content: Content


@dataclass(frozen=True)
class Suspects:
    """The suspects that go out, the most suspicious first, the classes of the run, and what is worth knowing.

    `folder` holds the image files, if the samples are such.
    """

    run: str
    class_names: Sequence[str]
    every: Sequence[Suspect]
    notes: Sequence[str] = ()
    folder: Path | None = None

    def __len__(self) -> int:
        return len(self.every)

    def __iter__(self) -> Iterator[Suspect]:
        return iter(self.every)

    def fit_for(self, tool: str) -> "Suspects":
        """Those whose ids and files a tool can name; InputError if it cannot name a class."""
        for name in self.class_names:
            if not name.strip() or NOT_XML.search(name):
                raise InputError(f"{tool} cannot have a class called {visible(name)!r:.100}; export with --to csv")
        fit = [each for each in self if not NOT_XML.search(each.id) and not NOT_XML.search(each.content.name)]
        if len(fit) == len(self):
            return self
        lost = f"{len(self) - len(fit):,} samples are left out, as {tool} cannot hold their names; take --to csv"
        return replace(self, every=fit, notes=[*self.notes, lost])

    def with_files(self, tool: str) -> "Suspects":
        """Those whose images are files, all that a tool for images can show; InputError if there are none."""
        filed = [each for each in self if each.content.file is not None]
        if len(self) and not filed:
            raise InputError(
                f"{tool} shows image files, and the samples of {self.run} are none; export with --to label-studio or "
                "--to csv"
            )
        if len(filed) == len(self):
            return self
        lost = f"{len(self) - len(filed):,} samples are left out, as they have no image file"
        return replace(self, every=filed, notes=[*self.notes, lost])


def find_suspects(
    run: RunDirectory,
    samples: "Samples | None" = None,
    *,
    verdicts: Sequence[str] = VERDICTS,
    top: int | None = None,
    decided: bool = False,
) -> Suspects:
    """Samples with these verdicts, the most suspicious first, at most `top`; InputError if there are none.

    Samples that somebody already decided are left out unless `decided`. `samples` is the data set of the run, where it
    is at hand; without it, what the run itself kept is shown.
    """
    described = run.read()
    check_finished(run.path, described)
    table, notes = ranked_labels(read_label_table(run), verdicts=verdicts), list[str]()
    if not decided:
        done = [id for id, holds in standing(run_decisions(run)).items() if holds.decision != SKIP]
        rest = table.filter(pc.invert(pc.is_in(table["id"], pa.array(done, pa.string()))))
        if rest.num_rows < table.num_rows:
            notes.append(f"{table.num_rows - rest.num_rows:,} samples are decided and left out; --decided takes them")
        table = rest
    table = table if top is None else table.slice(0, top)
    if not table.num_rows:
        raise InputError(f"{run.path} has nothing to export: no sample has the verdict {' or '.join(verdicts)}")
    names = ("id", "given", "suggested", "noisy_probability", "confidence")
    content = _kept(run) if samples is None else _shown(run, samples)
    every = []
    for id, given, suggested, probability, confidence in zip(*(table[name].to_pylist() for name in names), strict=True):
        better = None if suggested == given else suggested
        every.append(Suspect(id, given, better, float(probability), float(confidence), content(id)))
    classes = [str(name) for name in described["data"]["classes"]]
    return Suspects(str(run.path), classes, every, notes, None if samples is None else _folder(samples))


def file_names(run: RunDirectory, samples: "Samples") -> dict[str, str]:
    """The ids of the samples of a run by the paths of their image files below the data set."""
    from ..data.kinds.images import ImageFiles
    from ..run.preflight import rows_by_id

    files = samples.inputs
    if not isinstance(files, ImageFiles):
        return {}
    found = ((files.refs[row], id) for id, row in rows_by_id(run, samples).items())
    return {_below(ref, files.root): id for ref, id in found if isinstance(ref, Path)}


def _folder(samples: "Samples") -> Path | None:
    root = getattr(samples.inputs, "root", None)
    return root.resolve() if isinstance(root, Path) else None


def _below(path: Path, root: Path | None) -> str:
    inside = root is not None and path.is_relative_to(root)
    return (path.relative_to(root) if inside and root is not None else path).as_posix()


def _shown(run: RunDirectory, samples: "Samples") -> Callable[[str], Content]:
    """What a person sees of a sample of a data set, by its id."""
    from ..run.preflight import rows_by_id

    row_of = rows_by_id(run, samples)

    def content(id: str) -> Content:
        return _content(samples, row_of[id]) if id in row_of else Content(fields={"id": id})

    return content


def _content(samples: "Samples", row: int) -> Content:
    from ..data.kinds import decode
    from ..data.kinds.images import ImageFiles
    from ..data.kinds.text import Texts

    inputs = samples.inputs
    if isinstance(inputs, ImageFiles):
        ref = inputs.refs[row]
        if isinstance(ref, Path):
            return Content(file=ref, name=_below(ref, inputs.root))
        try:
            return Content(picture=decode.thumbnail(ref, side=PICTURE_SIDE))
        except decode.UnusableImageError:
            return Content(fields={"id": samples.ids[row]})
    if isinstance(inputs, Texts):
        return Content(text=inputs[row])
    return _seen({name: values[0] for name, values in samples.shown([row]).items()}, samples.shown_columns)


def _kept(run: RunDirectory) -> Callable[[str], Content]:
    """What the run itself kept of a sample, by its id."""
    table, names = read_suspects(run) or (None, [])
    known = ("picture", "text", "features", "cells")
    columns = [] if table is None else [name for name in known if name in table.column_names]
    row_of = {} if table is None else {id: row for row, id in enumerate(table["id"].to_pylist())}

    def content(id: str) -> Content:
        if table is None or id not in row_of:
            return Content(fields={"id": id})
        return _seen({name: table[name][row_of[id]].as_py() for name in columns}, names)

    return content


def _seen(kept: Mapping[str, Any], names: Sequence[str]) -> Content:
    """One of the columns that `Samples.shown` gives."""
    if kept.get("picture"):
        return Content(picture=kept["picture"])
    if kept.get("text") is not None:
        return Content(text=kept["text"])
    cells = kept.get("cells") or [f"{value:.6g}" for value in kept.get("features") or ()]
    names = names if len(names) == len(cells) else [f"x{column}" for column in range(len(cells))]
    return Content(fields=dict(zip(names, cells, strict=True)))
