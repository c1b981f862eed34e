"""Where a corrected data set is written, with what is needed to undo it: all files or none."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from ..files import is_inside

VERSION = 1
RECORD = "undo.json"
BACKUP = ".undo"


@dataclass(frozen=True)
class Destination:
    """A folder that is the data set, or one that holds the single file of the data set among other files."""

    folder: Path
    file: str | None = None

    @classmethod
    def free(cls, dest: Path, suffix: str | None) -> "Destination":
        """What a DEST argument means for a label file with this suffix; InputError if something is there already."""
        if suffix and dest.suffix == suffix and not dest.is_dir():
            found = cls(dest.parent, dest.name)
            for path in (dest, found.record_path, found.folder / found.backup):
                if os.path.lexists(path):
                    raise InputError(f"{path} is there already; choose another --out")
            if (dest.parent / BACKUP).is_symlink():
                raise InputError(f"{dest.parent / BACKUP} is a symbolic link; choose another --out")
            return found
        if dest.is_symlink() or (dest.exists() and not dest.is_dir()):
            raise InputError(f"{dest} is there already and is not a folder; choose another --out")
        if dest.is_dir() and any(dest.iterdir()):
            raise InputError(f"{dest} is not empty; choose another --out")
        return cls(dest)

    @property
    def record(self) -> str:
        """Name of the file that says what was changed."""
        return RECORD if self.file is None else f"{self.file}.{RECORD}"

    @property
    def record_path(self) -> Path:
        """Where that file is."""
        return self.folder / self.record

    @property
    def backup(self) -> str:
        """Folder of the files that the corrected set does not hold any more."""
        return BACKUP if self.file is None else f"{BACKUP}/{self.file}"

    @contextmanager
    def staged(self) -> Iterator[Path]:
        """A temporary folder to fill; its content is moved to the destination at the end, or dropped on failure."""
        parent = self.folder.absolute().parent if self.file is None else self.folder
        parent.mkdir(parents=True, exist_ok=True)
        workshop = Path(tempfile.mkdtemp(prefix=f".{self.folder.name}-", dir=parent))
        stage = workshop / "set"  # its own folder, because the one that mkdtemp makes is closed to other users
        stage.mkdir()
        moved: list[Path] = []
        try:
            yield stage
            if self.file is None:
                if self.folder.is_dir():
                    self.folder.rmdir()
                stage.rename(self.folder)
                return
            for part in (self.backup, self.record, self.file):
                if (stage / part).exists():
                    (self.folder / part).parent.mkdir(exist_ok=True)
                    (stage / part).rename(self.folder / part)
                    moved.append(self.folder / part)
        except BaseException:
            for path in moved:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            raise
        finally:
            shutil.rmtree(workshop, ignore_errors=True)


def visible_files(root: Path) -> list[str]:
    """Paths of all files below a folder except hidden ones and the record of an earlier correction."""
    found = []
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in subfolders:
            if (Path(folder) / name).is_symlink():
                raise InputError(f"{Path(folder) / name} is a link to a folder, which is not followed; move it away")
        found += [(Path(folder) / name).relative_to(root).as_posix() for name in sorted(files) if name[0] != "."]
    return [path for path in found if path != RECORD]


def put(path: Path, to: Path, *, root: Path, link: bool = False) -> None:
    """Copy a file from below the root, or make a hard link to it where the file system can."""
    if not (is_inside(path, root) and path.is_file()):
        raise InputError(f"{path} is not a file inside {root}, so it cannot be copied")
    to.parent.mkdir(parents=True, exist_ok=True)
    if link:
        with suppress(OSError):  # another device, or a file system without hard links
            os.link(path.resolve(), to)
            return
    shutil.copy2(path, to)


def sha256(path: Path) -> str:
    """SHA-256 of the content of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
