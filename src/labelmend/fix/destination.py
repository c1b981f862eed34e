"""Where a corrected data set lies, what is kept to undo it, and how files get there: all of them or none."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError

VERSION = 1
RECORD = "undo.json"
ATTIC = ".undo"


@dataclass(frozen=True)
class Place:
    """A folder that is the data set, or that holds the data set's one file among others that are not ours."""

    folder: Path
    file: str | None = None

    @classmethod
    def free(cls, dest: Path, suffix: str | None) -> "Place":
        """What a DEST argument means for a label file with this suffix; nothing may lie there yet."""
        if suffix and dest.suffix == suffix and not dest.is_dir():
            place = cls(dest.parent, dest.name)
            for path in (dest, place.folder / place.record, place.folder / place.attic):
                if os.path.lexists(path):
                    raise InputError(f"{path} is there already; choose another --out")
            if (dest.parent / ATTIC).is_symlink():
                raise InputError(f"{dest.parent / ATTIC} is a symbolic link; choose another --out")
            return place
        if dest.is_symlink() or (dest.exists() and not dest.is_dir()):
            raise InputError(f"{dest} is there already and is no folder; choose another --out")
        if dest.is_dir() and any(dest.iterdir()):
            raise InputError(f"{dest} is not empty; choose another --out")
        return cls(dest)

    @property
    def record(self) -> str:
        """Name of the file that says what was changed."""
        return RECORD if self.file is None else f"{self.file}.{RECORD}"

    @property
    def attic(self) -> str:
        """Folder of what the corrected set does not hold any more."""
        return ATTIC if self.file is None else f"{ATTIC}/{self.file}"

    @contextmanager
    def staged(self) -> Iterator[Path]:
        """A folder to fill; its content goes to its place at the end, and nowhere if anything goes wrong."""
        parent = self.folder.absolute().parent if self.file is None else self.folder
        parent.mkdir(parents=True, exist_ok=True)
        workshop = Path(tempfile.mkdtemp(prefix=f".{self.folder.name}-", dir=parent))
        stage = workshop / "set"  # a folder of its own, because mkdtemp's is closed to everyone else
        stage.mkdir()
        placed: list[Path] = []
        try:
            yield stage
            if self.file is None:
                if self.folder.is_dir():
                    self.folder.rmdir()
                stage.rename(self.folder)
                return
            for part in (self.attic, self.record, self.file):
                if (stage / part).exists():
                    (self.folder / part).parent.mkdir(exist_ok=True)
                    (stage / part).rename(self.folder / part)
                    placed.append(self.folder / part)
        except BaseException:
            for path in placed:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            raise
        finally:
            shutil.rmtree(workshop, ignore_errors=True)


def visible_files(root: Path) -> list[str]:
    """Paths of all files below a folder, but for hidden ones and the record of an earlier correction."""
    found = []
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in subfolders:
            if (Path(folder) / name).is_symlink():
                raise InputError(f"{Path(folder) / name} is a link to a folder, which is not followed; move it away")
        found += [(Path(folder) / name).relative_to(root).as_posix() for name in sorted(files) if name[0] != "."]
    return [path for path in found if path != RECORD]


def is_inside(path: Path, root: Path) -> bool:
    """Whether this is a regular file that really lies below the root, whatever links and dots its path has."""
    real = path.resolve()
    return real.is_relative_to(root.resolve()) and real.is_file()


def put(path: Path, to: Path, *, root: Path, link: bool = False) -> None:
    """Copy a file from below the root, or link to its content where that can be done."""
    if not is_inside(path, root):
        raise InputError(f"{path} is not a file inside {root}, so it cannot be copied")
    to.parent.mkdir(parents=True, exist_ok=True)
    if link:
        with suppress(OSError):  # another device, or a file system without hard links
            os.link(path.resolve(), to)
            return
    shutil.copy2(path, to)


def sha256(path: Path) -> str:
    """Digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
