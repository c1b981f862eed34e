"""A folder with one subfolder per class, or `train` and `test` (or `val`) above that; or samples without labels."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ...errors import InputError, visible
from ...files import is_inside
from ..kinds.decode import SUFFIXES
from ..kinds.images import ImageFiles, Images
from ..samples import Samples
from .texts import SUFFIX as TEXT_SUFFIX
from .texts import from_text_files

HELD_BACK = ("test", "val", "validation")
IGNORED = ("thumbs.db", "desktop.ini")


def open_folder(root: Path) -> Samples:
    """Training images or texts and, where there is one, the test split. Hidden files are passed over."""
    if not (root / "train").is_dir():
        return _labelled_folder(root)
    held = next((root / name for name in HELD_BACK if (root / name).is_dir()), None)
    test = None if held is None else _labelled_folder(held)
    return replace(_labelled_folder(root / "train"), test=test)


def open_images(path: Path) -> Samples:
    """One image, or every file of a folder that is named like an image, without labels."""
    if path.is_file():
        return _samples(path.parent, [path], None)
    paths = [file for file in _files(path) if file.suffix.lower() in SUFFIXES]
    if not paths:
        raise InputError(f"{path} holds no images ({', '.join(SUFFIXES)})")
    return _samples(path, paths, None)


def open_texts(path: Path) -> Samples:
    """One text file, or every one of a folder, without labels."""
    if path.is_file():
        return from_text_files(path.parent, [path], None)
    paths = [file for file in _files(path) if file.suffix.lower() == TEXT_SUFFIX]
    if not paths:
        raise InputError(f"{path} holds no texts ({TEXT_SUFFIX})")
    return from_text_files(path, paths, None)


def _labelled_folder(root: Path) -> Samples:
    """Every file of every class folder, in order of class and name; the id is the path below the root.

    They are texts if most of them are named so, and else images.
    """
    classes = [entry.name for entry in sorted(root.iterdir()) if entry.is_dir() and not entry.name.startswith(".")]
    if not classes:
        raise InputError(
            f"{root} has no subfolders; a folder of images or texts has one subfolder per class, with its files inside"
        )
    paths, labels = [], []
    for name in classes:
        if not is_inside(root / name, root):
            raise InputError(f"{root / name} is a link to a folder outside {root}, which is not followed; move it away")
        found = list(_files(root / name))
        paths += found
        labels += [name] * len(found)
    if not paths:
        raise InputError(f"the {len(classes)} class folders of {root} hold no files")
    if sum(path.suffix.lower() == TEXT_SUFFIX for path in paths) > len(paths) / 2:
        return from_text_files(root, paths, labels)
    return _samples(root, paths, labels)


def _files(root: Path) -> Iterator[Path]:
    """Every file below a folder, in order, but for hidden ones and what systems leave behind."""
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for file in sorted(files):
            if not file.startswith(".") and file.lower() not in IGNORED:
                yield Path(folder) / file


def _samples(root: Path, paths: list[Path], labels: list[str] | None) -> Samples:
    locations = [visible(str(path)) for path in paths]
    files = ImageFiles(paths, locations, root)
    ids = [path.relative_to(root).as_posix() for path in paths]
    return Samples.read(root.name, Images(), files, labels, ids=ids, locations=locations)
