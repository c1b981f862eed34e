"""Sources by name or path: whatever the user has, as one data set that has been checked."""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError, lookup
from .kinds.decode import Examined, cache_place, cached_images, decode_all, examine, keep_in_cache
from .listing import Listing
from .preflight import Preflight, PreflightError, Problem, check_classes, check_ids, check_names, clean_label
from .readers.arrays import as_inputs, digits, from_arrays, read_npz
from .readers.folder import open_folder
from .readers.named import NAMED
from .readers.table import SUFFIXES, Columns, FeatureTable, open_table
from .samples import Dataset, NoisyLabels, Split
from .stream import StreamedImages

Advance = Callable[[int], None]
Opened = Dataset | FeatureTable | Listing | tuple[Listing, Listing | None]


@dataclass(frozen=True)
class SourceOptions:
    """How a source is read."""

    test: str | None = None
    root: str | None = None
    columns: Columns = field(default_factory=Columns)
    size: int | None = None
    skip_bad: bool = False
    memory: float = 2.0


AS_IT_IS = SourceOptions()


@dataclass(frozen=True)
class Checked:
    """Samples that are fit for use: inputs, class names of each, ids and places."""

    inputs: Tensor | StreamedImages
    labels: Sequence[str]
    ids: Sequence[str]
    places: Sequence[str]


def open_source(
    source: str, options: SourceOptions = AS_IT_IS, *, advance: Advance = lambda done: None
) -> tuple[Dataset, Preflight]:
    """The data set that a SOURCE argument means, and what the preflight found in it."""
    if options.size is not None and not 4 <= options.size <= 1024:
        raise InputError(f"--size must be between 4 and 1024 pixels, not {options.size}")
    opened = list_source(source, options)
    held = None if options.test is None else list_source(options.test, replace(options, test=None))
    if isinstance(opened, Dataset):
        return _with_split(opened, held), Preflight(checked=len(opened))
    train, own = opened if isinstance(opened, tuple) else (opened, None)
    test: Opened | None = own if held is None else held[0] if isinstance(held, tuple) else held
    return _assemble(train, test, options, advance)


def open_inputs(
    source: str, shape: Sequence[int], options: SourceOptions = AS_IT_IS, *, advance: Advance = lambda done: None
) -> tuple[Tensor, list[str]]:
    """Samples of a source, images brought to this shape, and their ids, for prediction: labels are not needed."""
    path = Path(source)
    if path.suffix == ".npz":
        x = read_npz(path, needed=("x",))["x"]
        return as_inputs(source, x, x), [str(i) for i in range(len(x))]
    opened: Opened
    if path.suffix in SUFFIXES:
        opened = open_table(path, options.columns, root=Path(options.root) if options.root else None, labelled=False)
    else:
        opened = list_source(source, options)
    listing = opened[0] if isinstance(opened, tuple) else opened
    if isinstance(listing, Dataset) and isinstance(listing.inputs, Tensor):
        return listing.inputs, list(listing.ids)
    if isinstance(listing, FeatureTable):
        return torch.from_numpy(listing.features), list(listing.ids)
    if len(shape) != 3 or not isinstance(listing, Listing):
        raise InputError(f"{source} holds images, but the model takes rows of {shape[0]} features")
    found = examine(listing, advance)
    if found.problems and not options.skip_bad:
        raise PreflightError(source, Preflight(len(listing), found.problems))
    return decode_all(listing, found.frames, found.shape(None, tuple(shape))), [listing.ids[i] for i in found.frames]


def list_source(source: str, options: SourceOptions = AS_IT_IS) -> Opened:
    """What a SOURCE argument means, before anything is checked: images that are in files are not decoded."""
    path = Path(source)
    root = None if options.root is None else Path(options.root)
    named = {"digits": lambda _: digits(), **NAMED}
    if source in named:
        return named[source](root)
    if path.suffix == ".npz":
        return from_arrays(path.name, read_npz(path))
    if path.suffix in SUFFIXES:
        return open_table(path, options.columns, root=root)
    if path.is_dir():
        return open_folder(path)
    if path.exists():
        raise InputError(f"{source} is not a folder and not one of .npz, {', '.join(SUFFIXES)}")
    return lookup("source", source, named)(root)


def _with_split(data: Dataset, held: Opened | None) -> Dataset:
    if held is None:
        return data
    if not isinstance(held, Dataset):
        raise InputError(f"--test must be of the same kind as {data.name}: arrays")
    if held.shape != data.shape:
        shapes = f"{held.shape} do not match training samples of shape {data.shape}"
        raise InputError(f"test samples of shape {shapes}")
    names = [held.class_names[label] for label in held.labels.observed.tolist()]
    return replace(data, test=Split(held.inputs, _encode(names, data.class_names, "the test labels hold")))


def _assemble(
    train: Listing | FeatureTable, test: Opened | None, options: SourceOptions, advance: Advance
) -> tuple[Dataset, Preflight]:
    preflight = Preflight()
    checked = _check(train, options, preflight, advance, None)
    class_names = _class_names(train, checked.labels)
    split = None
    if isinstance(test, Listing | FeatureTable):
        if isinstance(test, Listing) != isinstance(train, Listing):
            raise InputError(f"--test {options.test} and {train.name} must both hold images, or both features")
        shape = checked.inputs.shape if isinstance(checked.inputs, StreamedImages) else tuple(checked.inputs.shape[1:])
        held = _check(test, options, preflight, advance, shape)
        split = Split(held.inputs, _encode(held.labels, class_names, f"{test.name} has the label"))
    elif test is not None:
        raise InputError(f"--test {options.test} must be of the same kind as {train.name}")
    if preflight.problems and not options.skip_bad:
        raise PreflightError(train.name, preflight)
    preflight.notes += check_classes(checked.labels)
    if isinstance(train, Listing) and isinstance(checked.inputs, Tensor):
        preflight.notes += _conflicts(checked, checked.inputs)
    observed = _encode(checked.labels, class_names, "the labels hold")
    data = Dataset(train.name, checked.inputs, NoisyLabels(observed), class_names, list(checked.ids), split)
    columns = train.columns if isinstance(train, FeatureTable) else ()
    return replace(data, flips=data.shape[0] == 3, columns=columns), preflight


def _check(
    source: Listing | FeatureTable,
    options: SourceOptions,
    preflight: Preflight,
    advance: Advance,
    like: tuple[int, ...] | None,
) -> Checked:
    """Usable samples of one split; what is not usable goes to the preflight."""
    labels, unusable = label_names(source)
    unusable += check_names(source.ids, source.places)
    repeated = check_ids(source.ids, source.places)
    found, place = None, None
    images = None
    if isinstance(source, Listing):
        place = cache_place(source, options.size, like)
        images = cached_images(place, options.memory * 2**30)
        if images is None:
            found = examine(source, advance)
            unusable += found.problems
    else:
        unusable += _holes(source)
    keep = _usable(source, unusable, repeated)
    preflight.checked += len(source.labels)
    preflight.problems += unusable + repeated
    preflight.skipped += len(source.labels) - len(keep)
    inputs: Tensor | StreamedImages
    if isinstance(source, FeatureTable):
        inputs = torch.from_numpy(source.features[keep])
    elif images is not None:
        inputs = images[keep]
    else:
        inputs = _decoded(source, keep, found, options, like)
        if isinstance(inputs, Tensor) and len(keep) == len(source) and place is not None:
            keep_in_cache(place, inputs)
    pick = [labels[i] for i in keep], [source.ids[i] for i in keep], [source.places[i] for i in keep]
    return Checked(inputs, *pick)


def _decoded(
    source: Listing, keep: list[int], found: Examined | None, options: SourceOptions, like: tuple[int, ...] | None
) -> Tensor | StreamedImages:
    """Images in memory, or streamed where they would take more of it than they may."""
    if found is None or not keep:
        return torch.zeros(0, 1, 4, 4, dtype=torch.uint8)
    shape = found.shape(options.size, like)
    if len(keep) * math.prod(shape) > options.memory * 2**30:
        return StreamedImages(source, shape).take(keep)
    return decode_all(source, keep, shape)


def label_names(source: Listing | FeatureTable) -> tuple[list[str], list[Problem]]:
    """The class name of every sample, empty where it has none, and the labels that are no class name."""
    names, problems = [], []
    for place, value in zip(source.places, source.labels, strict=True):
        try:
            names.append(clean_label(value))
        except ValueError as error:
            names.append("")
            problems.append(Problem(place, str(error)))
    return names, problems


def _holes(source: FeatureTable) -> list[Problem]:
    rows = np.flatnonzero(~np.isfinite(source.features).all(axis=1)).tolist()
    return [Problem(source.places[i], "a missing or infinite feature") for i in rows]


def _usable(source: Listing | FeatureTable, unusable: list[Problem], repeated: list[Problem]) -> list[int]:
    """Rows without a problem; of those that share an id, the first."""
    bad, twice = {p.place for p in unusable}, {p.place for p in repeated}
    keep, seen = [], set()
    for i, (place, id) in enumerate(zip(source.places, source.ids, strict=True)):
        if place in bad or (place in twice and id in seen):
            continue
        keep.append(i)
        seen.add(id)
    return keep


def _class_names(train: Listing | FeatureTable, labels: Sequence[str]) -> list[str]:
    """Classes in their declared order, else sorted, numbers by value."""
    declared = _cleaned(train) if isinstance(train, Listing) and train.class_names is not None else None
    if declared is not None and set(labels) <= set(declared):
        return declared
    numbers = all(name.lstrip("-").isascii() and name.lstrip("-").isdigit() for name in labels)
    return sorted(set(labels), key=lambda name: (int(name) if numbers else 0, name))


def _cleaned(train: Listing) -> list[str]:
    try:
        return [clean_label(name) for name in train.class_names or ()]
    except ValueError as error:
        raise InputError(f"the class names of {train.name} have {error}") from None


def _encode(labels: Sequence[str], class_names: Sequence[str], where: str) -> Tensor:
    code = {name: i for i, name in enumerate(class_names)}
    unknown = next((name for name in labels if name not in code), None)
    if unknown is not None:
        raise InputError(f"{where} {unknown!r}, which no training sample has")
    return torch.tensor([code[name] for name in labels], dtype=torch.long)


def _conflicts(checked: Checked, images: Tensor) -> list[Problem]:
    """Exact duplicates whose labels differ: label noise in plain sight."""
    groups: dict[bytes, list[int]] = {}
    for i, image in enumerate(images.numpy()):
        groups.setdefault(hashlib.sha256(image.tobytes()).digest(), []).append(i)
    found = []
    for members in groups.values():
        names = sorted({checked.labels[i] for i in members})
        if len(names) > 1:
            places = ", ".join(checked.places[i] for i in members)
            found.append(Problem(places, f"the same image with the labels {' and '.join(names)}"))
    return found
