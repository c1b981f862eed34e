"""A run's verdicts applied: the data set in the form it came in, with its labels corrected."""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from ..data.listing import Listing
from ..data.noise import read_json
from ..data.readers.named import NAMED
from ..data.readers.table import Columns, read_parquet
from ..data.samples import Dataset
from ..data.sources import SourceOptions, label_names, list_source, open_source
from ..data.stream import StreamedImages
from ..detect.table import VERDICTS
from ..errors import InputError
from ..files import to_json, write_atomic
from ..run.directory import RunDirectory
from .destination import RECORD, VERSION, Place, is_inside, put, sha256, visible_files
from .rewrite import Relabelling, rewrite, write_arrays

NAMES = ("digits", *NAMED)
COLUMNS = ("id", "given", "suggested", "verdict", "noisy_probability", "confidence")
CHANGED = "was changed since the run"
Advance = Callable[[int, int], None]
Moves = dict[str, str]


@dataclass(frozen=True)
class Samples:
    """All samples of a source with their class names, and what is needed to write them again."""

    ids: Sequence[str]
    names: Sequence[str]
    classes: set[str]
    places: Sequence[str]
    listing: Listing | None = None
    data: Dataset | None = None


@dataclass(frozen=True)
class Plan:
    """What applying a run would change; nothing is written before `write`.

    `relabelled` and `dropped` count by the label that the run was given and, of relabelled samples, by the new one.
    """

    source: str
    options: SourceOptions
    fingerprint: str
    samples: Samples
    rows: Relabelling
    seen: set[int]
    relabelled: Counter[tuple[str, str]]
    dropped: Counter[str]
    kept: int
    look: int
    other_labels: str | None

    @property
    def unseen(self) -> int:
        """Samples of the source that the run did not train on; they stay as they are."""
        return len(self.rows.names) - len(self.seen)

    @property
    def file_name(self) -> str | None:
        """Name of the corrected file, if the data set is one rather than a folder."""
        if self.samples.data is not None:
            return f"{self.source}.npz"
        return None if Path(self.source).is_dir() else Path(self.source).name

    def place(self, dest: Path) -> Place:
        """Where the corrected set would lie; raises InputError if it cannot."""
        name = self.file_name
        place = Place.free(dest, None if name is None else Path(name).suffix)
        root = None if self.samples.listing is None else self.samples.listing.root
        if name is None and dest.resolve().is_relative_to(Path(self.source).resolve()):
            raise InputError(f"{dest} lies inside the source {self.source}; choose another --out")
        if place.file and root and self._images() and root.resolve() != place.folder.resolve():
            raise InputError(f"{dest} is a file, but the images of {name} are copied too; give a folder as --out")
        return place

    def write(self, dest: Path, *, link: bool = False, advance: Advance = lambda done, total: None) -> Path:
        """Write the corrected set and what undo needs, all of it or nothing; gives the path of the set."""
        place = self.place(dest)
        with place.staged() as stage:
            name, label_file = place.file or self.file_name, None
            if name is None:
                root, files = Path(self.source), self._folder_files(place)
            else:
                label_file = self._write_file(stage, name, place)
                listing = self.samples.listing
                root = Path() if listing is None or listing.root is None else listing.root
                files = {} if place.file else self._image_files(place, name)
            for done, (before, now) in enumerate(files.items(), 1):
                put(root / before, stage / now, root=root, link=link)
                advance(done, len(files))
            record = {
                "version": VERSION,
                "run": self.fingerprint,
                "label_file": label_file,
                "files": None if place.file else len(visible_files(stage)),
                "moves": [[now, before] for before, now in files.items() if now != before],
                "changes": [
                    {"id": self.samples.ids[row], "from": self.rows.names[row], "to": self.rows.wanted[row]}
                    for row in self.rows.changed
                ],
            }
            write_atomic(stage / place.record, to_json(record))
        return dest

    def _write_file(self, stage: Path, name: str, place: Place) -> dict[str, str]:
        original = stage / place.attic / (self.file_name or name)
        original.parent.mkdir(parents=True)
        if self.samples.data is not None:
            write_arrays(original, self.samples.data, self.rows.names)
            write_arrays(stage / name, self.samples.data, self.rows.wanted)
        else:
            shutil.copy2(self.source, original)
            rewrite(original, stage / name, self.options.columns, self.rows)
        found = _samples(str(stage / name), replace(self.options, root=None)).names
        if list(found) != [wanted for wanted in self.rows.wanted if wanted is not None]:
            raise InputError(f"{self.source} cannot be corrected in its own form; labels.csv of the run has the labels")
        return {
            "now": name,
            "kept": original.relative_to(stage).as_posix(),
            "corrected_sha256": sha256(stage / name),
            "original_sha256": sha256(original),
        }

    def _folder_files(self, place: Place) -> Moves:
        """Where every file of the folder goes: under its new class, to the attic if dropped, else where it was."""
        files = visible_files(Path(self.source))
        prefix = "train/" if (Path(self.source) / "train").is_dir() else ""
        taken = {str(path).casefold() for file in files for path in (file, *PurePosixPath(file).parents)}
        ids, rows = self.samples.ids, self.rows
        folders = {name: id.partition("/")[0] for id, name in zip(reversed(ids), reversed(rows.names), strict=True)}
        moves = dict(zip(files, files, strict=True))
        for row in rows.changed:
            wanted = rows.wanted[row]
            if wanted is None:
                moves[prefix + ids[row]] = f"{place.attic}/dropped/{prefix}{ids[row]}"
            else:
                wish = PurePosixPath(prefix, folders[wanted], ids[row].partition("/")[2])
                moves[prefix + ids[row]] = _free_name(wish, taken)
        return moves

    def _images(self) -> dict[str, bool]:
        """Relative paths of the image files that a table names, and whether a kept row names them."""
        listing, found = self.samples.listing, dict[str, bool]()
        for row, path in enumerate(listing.images if listing else ()):
            root = listing.root if listing else None
            if isinstance(path, bytes) or root is None:
                continue
            safe = path.is_relative_to(root) and ".." not in path.relative_to(root).parts and is_inside(path, root)
            if safe:
                inner = path.relative_to(root).as_posix()
                found[inner] = found.get(inner, False) or self.rows.wanted[row] is not None
            elif row in self.seen:
                raise InputError(f"{self.source} {CHANGED}: the image {str(path)!r} is not inside {root} any more")
        return found

    def _image_files(self, place: Place, name: str) -> Moves:
        files = self._images()
        for path in files:
            if path in (name, RECORD) or path.startswith("."):
                raise InputError(f"the image path {path!r} of {name} is hidden or taken; rename the image first")
        return {path: path if kept else f"{place.attic}/dropped/{path}" for path, kept in files.items()}


def plan(run_dir: Path, *, confidence: float | None = None, drop: bool = False) -> Plan:
    """What a finished run would change in its source.

    Samples with the verdict `relabel` get the suggested label, or with `drop` those that are to be relabelled or
    looked at are left out. `confidence` is the least confidence of a suggestion; with `drop`, the least probability
    that the label is wrong.
    """
    if confidence is not None and not 0 <= confidence <= 1:
        raise InputError(f"--confidence must be between 0 and 1, not {confidence}")
    run = RunDirectory.existing(run_dir)
    config, fingerprint = _described(run)
    verdicts = _verdicts(run)
    columns = Columns(config["image_column"], config["label_column"], config["id_column"])
    options = SourceOptions(None, config["root"], columns, config["size"], bool(config["skip_bad"]), config["memory"])
    source = str(config["source"])
    if source not in NAMES and not Path(source).exists():
        raise InputError(f"the source {source} is not there; run this in the folder where the run was started")
    samples = _samples(source, options)
    other = next((f"--{key} {config[key]}" for key in ("noise", "labels") if config[key]), None)
    rows = _rows_of(run, source, samples, verdicts, same_labels=other is None)
    relabelled, dropped, wanted = Counter[tuple[str, str]](), Counter[str](), list[str | None](samples.names)
    for row, (_, given, suggested, verdict, noisy, sure) in zip(rows, verdicts, strict=True):
        if drop and verdict != "keep" and noisy >= (confidence or 0):
            dropped[given] += 1
            wanted[row] = None
        elif not drop and verdict == "relabel" and sure >= (confidence or 0):
            relabelled[given, suggested] += 1
            wanted[row] = suggested
        else:
            wanted[row] = given
    if not any(wanted):
        raise InputError(f"all samples of {source} would be dropped; raise --confidence")
    kept = len(rows) - relabelled.total() - dropped.total()
    look = sum(verdict[3] == "look" for verdict in verdicts)
    relabelling = Relabelling(samples.names, wanted)
    return Plan(source, options, fingerprint, samples, relabelling, set(rows), relabelled, dropped, kept, look, other)


def _described(run: RunDirectory) -> tuple[dict[str, Any], str]:
    described = run.read()
    if described.get("status") != "finished":
        raise InputError(f"{run.path} holds a {described.get('status')} run; finish it with 'labelmend train --resume'")
    texts = ("source", "noise", "labels", "root", "image_column", "label_column", "id_column")
    try:
        config = {"skip_bad": False, "size": None, "memory": 2.0} | dict.fromkeys(texts) | described["config"]
        fingerprint = described["data"]["fingerprint"]
    except (KeyError, TypeError):
        raise InputError(f"{run.run_json} is damaged: it does not say what was trained on") from None
    kinds = dict.fromkeys(texts, str | None) | {"source": str, "size": int | None, "memory": int | float}
    if not all(isinstance(config[key], kind) for key, kind in kinds.items()):
        raise InputError(f"{run.run_json} is damaged: its config has values of the wrong kind")
    return config, str(fingerprint)


def _verdicts(run: RunDirectory) -> list[tuple[Any, ...]]:
    try:
        table = read_parquet(run.labels_parquet)
        verdicts = list(zip(*(table[name].to_pylist() for name in COLUMNS), strict=True))
    except (OSError, KeyError, pa.ArrowException) as error:
        raise InputError(f"{run.labels_parquet} cannot be read: {str(error).splitlines()[0]}") from None
    kinds = (str, str, str, str, float, float)
    for row in verdicts:
        if row[3] not in VERDICTS or not all(map(isinstance, row, kinds)):
            raise InputError(f"{run.labels_parquet} is damaged: {row!r:.200} is no verdict on a sample")
    if len({row[0] for row in verdicts}) != len(verdicts):
        raise InputError(f"{run.labels_parquet} is damaged: ids occur more than once")
    return verdicts


def _samples(source: str, options: SourceOptions) -> Samples:
    opened = open_source(source, options)[0] if source in NAMES else list_source(source, options)
    if isinstance(opened, tuple):
        opened = opened[0]
    if isinstance(opened, Dataset):
        if isinstance(opened.inputs, StreamedImages):
            raise InputError(f"{source} is too large to be written from memory; take the labels from labels.csv")
        names = [opened.class_names[label] for label in opened.labels.observed.tolist()]
        data = opened if source in NAMES else None
        return Samples(opened.ids, names, set(opened.class_names), opened.ids, data=data)
    names = label_names(opened)[0]
    listing = opened if isinstance(opened, Listing) else None
    declared = {str(name).strip() for name in (listing.class_names if listing else None) or ()}
    return Samples(opened.ids, names, (set(names) | declared) - {""}, opened.places, listing)


def _rows_of(
    run: RunDirectory, source: str, samples: Samples, verdicts: Sequence[tuple[Any, ...]], *, same_labels: bool
) -> list[int]:
    """The row of the source that each verdict is on; refuses verdicts that do not fit the source as it is now."""
    passed_over = _passed_over(run)
    place: dict[str, int] = {}
    for row, id in enumerate(samples.ids):
        if samples.names[row] and samples.places[row] not in passed_over:
            place.setdefault(id, row)
    missing = [verdict[0] for verdict in verdicts if verdict[0] not in place]
    if missing:
        raise InputError(
            f"{source} {CHANGED}: {len(missing)} of its samples are missing, the first {missing[0]!r:.100}"
        )
    for id, given, suggested, *_ in verdicts:
        now = samples.names[place[id]]
        if same_labels and given != now:
            raise InputError(f"{source} {CHANGED}: {id!r:.100} was labelled {given!r:.60}, and now it is {now!r:.60}")
        if not {given, suggested} <= samples.classes:
            raise InputError(f"the run labels {id!r:.100} {suggested!r:.60}, which is no class of {source}")
    return [place[verdict[0]] for verdict in verdicts]


def _passed_over(run: RunDirectory) -> set[str]:
    """Samples that the run skipped, so that of several with one id the right one is found."""
    try:
        problems = read_json(str(run.preflight))["problems"]
        return {problem["place"] for problem in problems if not problem["what"].startswith("id ")}
    except (ValueError, KeyError, TypeError, AttributeError):
        return set()


def _free_name(wish: PurePosixPath, taken: set[str]) -> str:
    path, number = wish, 2
    while str(path).casefold() in taken:
        path, number = wish.with_stem(f"{wish.stem}-{number}"), number + 1
    taken.add(str(path).casefold())
    return str(path)
