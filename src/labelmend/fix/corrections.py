"""Corrections of a data set: what they change, and the data set written with them in the form it came in."""

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from ..errors import InputError
from ..files import is_inside, to_json, write_atomic
from .destination import RECORD, VERSION, Destination, put, sha256, visible_files
from .rewrite import Relabelling, rewrite, write_arrays
from .source import LabelledSource, open_labelled

CHANGED = "was changed since the run"
Advance = Callable[[int, int], None]
Moves = dict[str, str]


@dataclass(frozen=True)
class Corrections:
    """What applying a run would change; nothing is written before `write`.

    `relabelled` and `dropped` count samples by the label that the run was given and, if relabelled, the new one.
    `look` counts kept samples whose label looks wrong, and `decided` those that people decided. `seen` are the rows
    that the run trained on; `other_labels` is the option that gave it labels of its own.
    """

    fingerprint: str
    source: LabelledSource
    rows: Relabelling
    seen: set[int]
    relabelled: Counter[tuple[str, str]]
    dropped: Counter[str]
    look: int
    other_labels: str | None
    decided: int = 0

    @property
    def kept(self) -> int:
        """Samples of the run that keep the label that they were given."""
        return len(self.seen) - self.relabelled.total() - self.dropped.total()

    @property
    def unseen(self) -> int:
        """Samples of the source that the run did not train on; they stay as they are."""
        return len(self.rows.names) - len(self.seen)

    def destination(self, dest: Path) -> Destination:
        """Where the corrected set would be written; InputError if it cannot be written there."""
        name, root = self.source.file_name, self.source.root
        found = Destination.free(dest, None if name is None else Path(name).suffix)
        if name is None and is_inside(dest, Path(self.source.path)):
            raise InputError(f"{dest} lies inside the source {self.source.path}; choose another --out")
        if found.file and root and self._images() and root.resolve() != found.folder.resolve():
            raise InputError(f"{dest} is a file, but the images of {name} are copied too; give a folder as --out")
        return found

    def write(self, dest: Path, *, link: bool = False, advance: Advance = lambda done, total: None) -> Path:
        """Write the corrected set and what undo needs, all of it or nothing; gives the path of the set."""
        at = self.destination(dest)
        with at.staged() as stage:
            name, label_file = at.file or self.source.file_name, None
            if name is None:
                root, files = Path(self.source.path), self._folder_files(at)
            else:
                label_file = self._write_label_file(stage, name, at)
                root, files = self.source.root or Path(), {} if at.file else self._image_files(at, name)
            for done, (before, now) in enumerate(files.items(), 1):
                put(root / before, stage / now, root=root, link=link)
                advance(done, len(files))
            record = {
                "version": VERSION,
                "run": self.fingerprint,
                "label_file": label_file,
                "files": None if at.file else len(visible_files(stage)),
                "moves": [[now, before] for before, now in files.items() if now != before],
                "changes": [
                    {"id": self.source.samples.ids[row], "from": self.rows.names[row], "to": self.rows.wanted[row]}
                    for row in self.rows.changed
                ],
            }
            write_atomic(stage / at.record, to_json(record))
        return dest

    def _write_label_file(self, stage: Path, name: str, at: Destination) -> dict[str, str]:
        original = stage / at.backup / (self.source.file_name or name)
        original.parent.mkdir(parents=True)
        if self.source.is_named:
            write_arrays(original, self.source.samples, self.rows.names)
            write_arrays(stage / name, self.source.samples, self.rows.wanted)
        else:
            shutil.copy2(self.source.path, original)
            rewrite(original, stage / name, self.source.options.columns, self.rows)
        again = open_labelled(str(stage / name), replace(self.source.options, root=None))
        if list(again.names) != [self.rows.wanted[row] for row in self.rows.kept]:
            raise InputError(f"{self.source.path} cannot be corrected in its form; take the labels from labels.csv")
        return {
            "now": name,
            "kept": original.relative_to(stage).as_posix(),
            "corrected_sha256": sha256(stage / name),
            "original_sha256": sha256(original),
        }

    def _folder_files(self, at: Destination) -> Moves:
        """Where every file of the folder goes: under its new class, to the backup if dropped, else where it was."""
        files = visible_files(Path(self.source.path))
        prefix = "train/" if (Path(self.source.path) / "train").is_dir() else ""
        taken = {str(path).casefold() for file in files for path in (file, *PurePosixPath(file).parents)}
        ids, rows = self.source.samples.ids, self.rows
        folders = {name: id.partition("/")[0] for id, name in zip(reversed(ids), reversed(rows.names), strict=True)}
        moves = dict(zip(files, files, strict=True))
        for row in rows.changed:
            wanted = rows.wanted[row]
            if wanted is None:
                moves[prefix + ids[row]] = f"{at.backup}/dropped/{prefix}{ids[row]}"
            else:
                wish = PurePosixPath(prefix, folders[wanted], ids[row].partition("/")[2])
                moves[prefix + ids[row]] = _free_name(wish, taken)
        return moves

    def _images(self) -> dict[str, bool]:
        """Relative paths of the image files that a table names, and whether a kept row names them."""
        root, found = self.source.root, dict[str, bool]()
        for row, path in enumerate(self.source.images):
            if isinstance(path, bytes) or root is None:
                continue
            plain = path.is_relative_to(root) and ".." not in path.relative_to(root).parts
            if plain and is_inside(path, root) and path.is_file():
                inner = path.relative_to(root).as_posix()
                found[inner] = found.get(inner, False) or self.rows.wanted[row] is not None
            elif row in self.seen:
                raise InputError(f"{self.source.path} {CHANGED}: the image {str(path)!r} is no longer inside {root}")
        return found

    def _image_files(self, at: Destination, name: str) -> Moves:
        files = self._images()
        for path in files:
            if path in (name, RECORD) or path.startswith("."):
                raise InputError(f"the image path {path!r} of {name} is hidden or taken; rename the image first")
        return {path: path if kept else f"{at.backup}/dropped/{path}" for path, kept in files.items()}


def _free_name(wish: PurePosixPath, taken: set[str]) -> str:
    path, number = wish, 2
    while str(path).casefold() in taken:
        path, number = wish.with_stem(f"{wish.stem}-{number}"), number + 1
    taken.add(str(path).casefold())
    return str(path)
