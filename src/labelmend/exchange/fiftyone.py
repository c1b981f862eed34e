"""FiftyOne: the labels.json of a FiftyOneImageClassificationDataset, and the data.json that names its images."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ..data.noise import read_json
from ..errors import InputError, visible
from ..files import to_json
from .answers import Answer
from .suspects import Suspects

LABELS, GIVEN, MANIFEST = "labels.json", "given.json", "data.json"
MARK = "labelmend"
"""Attribute of a label that labelmend wrote, with its class; what FiftyOne exports has none unless it is asked to."""


def write(suspects: Suspects, out: Path, root: str | None = None) -> dict[Path, bytes]:
    """A data set for FiftyOne: suggested labels, null where there is none; given labels; paths of images."""
    if out.suffix == ".json":
        raise InputError(f"--out {out} takes a folder for FiftyOne, in which {LABELS} and others are written")
    code = {name: number for number, name in enumerate(suspects.class_names)}
    labels, given, files = dict[str, Any](), dict[str, Any](), dict[str, str]()
    for each in suspects:
        key = stem(each.content.name)
        if key in labels:
            raise InputError(
                f"FiftyOne knows images by their names without endings, and {visible(key)!r:.200} names two; rename one"
            )
        given[key] = {"label": code[each.given], "attributes": {MARK: each.given}}
        labels[key] = None
        if each.suggested is not None:
            about = {MARK: each.suggested, "noisy_probability": each.noisy_probability}
            labels[key] = {"label": code[each.suggested], "confidence": each.confidence, "attributes": about}
        files[key] = str(Path(each.content.file or "").absolute())
    classes = list(suspects.class_names)
    content = {LABELS: {"classes": classes, "labels": labels}, GIVEN: {"classes": classes, "labels": given}}
    return {out / name: to_json(value) for name, value in {**content, MANIFEST: files}.items()}


def stem(name: str) -> str:
    """The name that FiftyOne has for an image: its path below the data set, without its ending.

    >>> stem("cat/a.b.png")
    'cat/a.b'
    """
    return PurePosixPath(name).with_suffix("").as_posix()


def read(path: Path) -> list[Answer]:
    """The answers in a labels.json: of each image the class, as a number or by its name; null is no answer."""
    content = read_json(str(path))
    labels = content.get("labels") if isinstance(content, dict) else None
    classes = content.get("classes") if isinstance(content, dict) else None
    if not isinstance(labels, dict):
        raise InputError(f"{path} is no labels.json of FiftyOne: it has no object 'labels'")
    if classes is not None and not (isinstance(classes, list) and all(isinstance(name, str) for name in classes)):
        raise InputError(f"{path} has 'classes' that are no list of names")
    found = []
    for name, value in labels.items():
        about = value if isinstance(value, dict) else {"label": value}
        marked = about.get("attributes")
        label = _class(about, classes, f"{path} has for {visible(name)!r:.200} the label")
        if label is not None:
            found.append(Answer(name, label, chosen=not isinstance(marked, dict) or marked.get(MARK) != label))
    return found


def _class(about: Mapping[str, Any], classes: list[str] | None, has: str) -> str | None:
    label = about.get("label")
    if label is None or isinstance(label, str):
        return label
    if type(label) is not int:
        raise InputError(f"{has} {label!r:.60}, which is neither a number nor a name")
    if classes is None or not 0 <= label < len(classes):
        raise InputError(f"{has} {label}, but the file names {len(classes or ())} classes")
    return classes[label]
