"""Undo a correction: bring the data set back exactly as it was before `apply`."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import is_inside
from .destination import BACKUP, RECORD, VERSION, Destination, put, sha256, visible_files


@dataclass(frozen=True)
class Record:
    """The content of undo.json, checked: every path in it lies below the folder and leads through no link."""

    at: Destination
    moves: dict[str, str]
    label_file: dict[str, str] | None
    files: int | None


def undo(path: Path, *, out: Path | None = None, force: bool = False) -> Path:
    """Bring back the original of a corrected set, given by its path or its undo.json; gives the path of the original.

    It replaces the corrected set, or is written to `out`. A corrected set that was changed since is refused unless
    `force` is set; a changed original is always refused.
    """
    record = _read(_find(path))
    folder, label_file = record.at.folder, record.label_file
    if label_file is not None and not _is_same(folder / label_file["kept"], label_file["original_sha256"]):
        raise InputError(f"{folder / label_file['kept']} is not the original any more, so it cannot be brought back")
    faults = list(_changes_since(record))
    if faults and not force:
        raise InputError(f"{path} was changed since it was written: {faults[0]}; --force undoes the rest all the same")
    record = replace(record, moves={now: then for now, then in record.moves.items() if (folder / now).is_file()})
    if out is not None:
        return _copy_back(record, out)
    for before in record.moves.values():
        if os.path.lexists(folder / before):
            raise InputError(f"{folder / before} is in the way of the file that was there before; move it away")
    _move_back(record)
    return folder if record.at.file is None else folder / record.at.file


def _move_back(record: Record) -> None:
    folder = record.at.folder
    for now, before in record.moves.items():
        (folder / before).parent.mkdir(parents=True, exist_ok=True)
        (folder / now).rename(folder / before)
    if record.label_file is not None:
        (folder / record.label_file["kept"]).replace(folder / record.label_file["now"])
    record.at.record_path.unlink()
    shutil.rmtree(folder / record.at.backup, ignore_errors=True)
    made = {parent for now in record.moves for parent in Path(now).parents[:-1]} | {Path(BACKUP)}
    for parent in sorted(made, key=lambda path: -len(path.parts)):
        with suppress(OSError):  # not empty, or gone already
            (folder / parent).rmdir()


def _copy_back(record: Record, out: Path) -> Path:
    folder, label_file, whole_folder = record.at.folder, record.label_file, record.at.file is None
    files = {file: file for file in visible_files(folder)} if whole_folder else {}
    back = Destination.free(out, Path(label_file["kept"]).suffix if label_file else None)
    if whole_folder and is_inside(out, folder):
        raise InputError(f"{out} lies inside {folder}; choose another --out")
    if back.file and whole_folder and list(files) != [(label_file or {}).get("now")]:
        raise InputError(f"{out} is a file, but {folder} holds images too; give a folder as --out")
    files |= record.moves
    if label_file is not None:
        files.pop(label_file["now"], None)
        files[label_file["kept"]] = back.file or Path(label_file["kept"]).name
    with back.staged() as stage:
        for now, before in files.items():
            put(folder / now, stage / before, root=folder)
    return out


def _changes_since(record: Record) -> Iterator[str]:
    folder, label_file = record.at.folder, record.label_file
    if label_file is not None and not _is_same(folder / label_file["now"], label_file["corrected_sha256"]):
        yield f"{label_file['now']} is missing or holds something else"
    for now in record.moves:
        if not (folder / now).is_file():
            yield f"{now} is missing"
    if record.files is not None and (found := len(visible_files(folder))) != record.files:
        yield f"it holds {found} files, not {record.files}"


def _is_same(path: Path, digest: str) -> bool:
    return path.is_file() and sha256(path) == digest


def _find(path: Path) -> Destination:
    if path.is_dir():
        found = Destination(path)
    elif path.name == RECORD:
        found = Destination(path.parent)
    else:
        found = Destination(path.parent, path.name.removesuffix(f".{RECORD}"))
    if not found.record_path.is_file():
        raise InputError(f"there is nothing to undo: no file {found.record_path}")
    return found


def _read(at: Destination) -> Record:
    path = at.record_path
    try:
        found = json.loads(path.read_bytes())
        if found["version"] != VERSION:
            raise InputError(f"{path} is of version {found['version']!r:.20}, and this labelmend knows {VERSION}")
        moves = {_inner(at, now): _inner(at, before) for now, before in found["moves"]}
        label_file = None if found["label_file"] is None else _label_file(at, found["label_file"])
        record = Record(at, moves, label_file, found["files"])
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged: {type(error).__name__} {error}") from None
    if len(set(moves.values())) != len(found["moves"]) or set(moves) & set(moves.values()):
        raise InputError(f"{path} is damaged: several files go to one path")
    if at.file is not None and (moves or label_file is None or label_file["now"] != at.file):
        raise InputError(f"{path} is damaged: it is on other files than {at.file}")
    _inner(at, at.record)
    _inner(at, at.backup)
    return record


def _label_file(at: Destination, found: dict[str, Any]) -> dict[str, str]:
    digests = {key: str(found[key]) for key in ("corrected_sha256", "original_sha256")}
    kept = _inner(at, found["kept"])
    if not kept.startswith(f"{at.backup}/"):
        raise InputError(f"{at.record_path} is damaged: {kept!r} is not in {at.backup}")
    return {"now": _inner(at, found["now"]), "kept": kept, **digests}


def _inner(at: Destination, text: str) -> str:
    """The path, if it stays below the folder; undo.json may come from anywhere and say anything."""
    path = Path(text)
    stays = path.parts and not path.is_absolute() and not path.drive and ".." not in path.parts and "\0" not in text
    if not stays or any((at.folder / step).is_symlink() for step in (path, *path.parents[:-1])):
        raise InputError(f"{at.record_path} is damaged: {text!r:.100} leads out of {at.folder}")
    return path.as_posix()
