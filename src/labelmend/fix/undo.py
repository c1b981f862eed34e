"""A correction taken back: the data set exactly as it was before `apply`."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from .destination import ATTIC, RECORD, VERSION, Place, put, sha256, visible_files


@dataclass(frozen=True)
class Record:
    """What undo.json says, checked: every path in it is one below the folder, reached through no link."""

    place: Place
    moves: dict[str, str]
    label_file: dict[str, str] | None
    files: int | None


def undo(path: Path, *, out: Path | None = None, force: bool = False) -> Path:
    """Bring back the original from a corrected set or its undo.json, in place or at `out`; gives where it is.

    A corrected set that was changed since is refused unless forced; an original that was changed always is.
    """
    record = _read(_find(path))
    folder, label_file = record.place.folder, record.label_file
    if label_file is not None and not _is_same(folder / label_file["kept"], label_file["original_sha256"]):
        raise InputError(f"{folder / label_file['kept']} is not the original any more, so it cannot be brought back")
    faults = list(_changes_since(record))
    if faults and not force:
        raise InputError(f"{path} was changed since it was written: {faults[0]}; --force undoes the rest all the same")
    moves = {now: before for now, before in record.moves.items() if (folder / now).is_file()}
    record = replace(record, moves=moves)
    if out is not None:
        return _copy_back(record, out)
    for before in moves.values():
        if os.path.lexists(folder / before):
            raise InputError(f"{folder / before} is in the way of the file that was there before; move it away")
    _put_back(record)
    return folder if record.place.file is None else folder / record.place.file


def _put_back(record: Record) -> None:
    folder = record.place.folder
    for now, before in record.moves.items():
        (folder / before).parent.mkdir(parents=True, exist_ok=True)
        (folder / now).rename(folder / before)
    if record.label_file is not None:
        (folder / record.label_file["kept"]).replace(folder / record.label_file["now"])
    (folder / record.place.record).unlink()
    shutil.rmtree(folder / record.place.attic, ignore_errors=True)
    made = {parent for now in record.moves for parent in Path(now).parents[:-1]} | {Path(ATTIC)}
    for parent in sorted(made, key=lambda path: -len(path.parts)):
        with suppress(OSError):  # not empty, or gone already
            (folder / parent).rmdir()


def _copy_back(record: Record, out: Path) -> Path:
    folder, label_file = record.place.folder, record.label_file
    back = Place.free(out, Path(label_file["kept"]).suffix if label_file else None)
    if record.place.file is None and out.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{out} lies inside {folder}; choose another --out")
    if back.file and record.place.file is None and visible_files(folder) != [(label_file or {}).get("now")]:
        raise InputError(f"{out} is a file, but {folder} holds images too; give a folder as --out")
    files = {} if record.place.file else {file: file for file in visible_files(folder)}
    files |= record.moves
    if label_file is not None:
        files.pop(label_file["now"], None)
        files[label_file["kept"]] = back.file or Path(label_file["kept"]).name
    with back.staged() as stage:
        for now, before in files.items():
            put(folder / now, stage / before, root=folder)
    return out


def _changes_since(record: Record) -> Iterator[str]:
    folder, label_file = record.place.folder, record.label_file
    if label_file is not None and not _is_same(folder / label_file["now"], label_file["corrected_sha256"]):
        yield f"{label_file['now']} is missing or holds something else"
    for now in record.moves:
        if not (folder / now).is_file():
            yield f"{now} is missing"
    if record.files is not None and (found := len(visible_files(folder))) != record.files:
        yield f"it holds {found} files, not {record.files}"


def _is_same(path: Path, digest: str) -> bool:
    return path.is_file() and sha256(path) == digest


def _find(path: Path) -> Place:
    if path.is_dir():
        place = Place(path)
    elif path.name == RECORD:
        place = Place(path.parent)
    else:
        place = Place(path.parent, path.name.removesuffix(f".{RECORD}"))
    if not (place.folder / place.record).is_file():
        raise InputError(f"there is nothing to undo: no file {place.folder / place.record}")
    return place


def _read(place: Place) -> Record:
    path = place.folder / place.record
    try:
        found = json.loads(path.read_bytes())
        if found["version"] != VERSION:
            raise InputError(f"{path} is of version {found['version']!r:.20}, and this labelmend knows {VERSION}")
        moves = {_inner(place, now): _inner(place, before) for now, before in found["moves"]}
        label_file = None if found["label_file"] is None else _label_file(place, found["label_file"])
        record = Record(place, moves, label_file, found["files"])
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged: {type(error).__name__} {error}") from None
    if len(set(moves.values())) != len(found["moves"]) or set(moves) & set(moves.values()):
        raise InputError(f"{path} is damaged: several files go to one place")
    if place.file is not None and (moves or label_file is None or label_file["now"] != place.file):
        raise InputError(f"{path} is damaged: it is on other files than {place.file}")
    _inner(place, place.record)
    _inner(place, place.attic)
    return record


def _label_file(place: Place, found: dict[str, Any]) -> dict[str, str]:
    texts = {key: str(found[key]) for key in ("corrected_sha256", "original_sha256")}
    kept = _inner(place, found["kept"])
    if not kept.startswith(f"{place.attic}/"):
        raise InputError(f"{place.folder / place.record} is damaged: {kept!r} is not in {place.attic}")
    return {"now": _inner(place, found["now"]), "kept": kept, **texts}


def _inner(place: Place, text: str) -> str:
    """The path, if it is one that stays below the folder: undo.json may come from anywhere and say anything."""
    path = Path(text)
    stays = path.parts and not path.is_absolute() and not path.drive and ".." not in path.parts and "\0" not in text
    if not stays or any((place.folder / step).is_symlink() for step in (path, *path.parents[:-1])):
        raise InputError(f"{place.folder / place.record} is damaged: {text!r:.100} leads out of {place.folder}")
    return path.as_posix()
