"""A folder with one subfolder a class, or with `train` and `test` (or `val`) above that."""

import os
from pathlib import Path

from ...errors import InputError, visible
from ..listing import Listing

HELD_BACK = ("test", "val", "validation")
IGNORED = ("thumbs.db", "desktop.ini")


def open_folder(root: Path) -> tuple[Listing, Listing | None]:
    """Training images and, where there is one, the test split. Hidden files are passed over."""
    if not (root / "train").is_dir():
        return list_folder(root), None
    held = next((root / name for name in HELD_BACK if (root / name).is_dir()), None)
    train = list_folder(root / "train")
    return train, None if held is None else list_folder(held)


def list_folder(root: Path) -> Listing:
    """Every file of every class folder, in order of class and name; the id is the path below the root."""
    classes = [entry.name for entry in sorted(root.iterdir()) if entry.is_dir() and not entry.name.startswith(".")]
    if not classes:
        raise InputError(f"{root} has no subfolders; an image folder has one subfolder a class, with its images inside")
    paths, labels = [], []
    for name in classes:
        if not (root / name).resolve().is_relative_to(root.resolve()):
            raise InputError(f"{root / name} is a link to a folder outside {root}, which is not followed; move it away")
        for folder, subfolders, files in os.walk(root / name):
            subfolders[:] = sorted(n for n in subfolders if not n.startswith("."))
            for file in sorted(files):
                if not file.startswith(".") and file.lower() not in IGNORED:
                    paths.append(Path(folder) / file)
                    labels.append(name)
    if not paths:
        raise InputError(f"the {len(classes)} class folders of {root} hold no files")
    ids = [path.relative_to(root).as_posix() for path in paths]
    return Listing(root.name, paths, labels, ids, [visible(str(path)) for path in paths], root=root)
