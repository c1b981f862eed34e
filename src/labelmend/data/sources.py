"""Sources by name or path: whatever the user has, as one container of samples that has been checked."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError, lookup
from .kinds import Kind
from .kinds import cache as image_cache
from .kinds.encoded import Encoded
from .kinds.features import Features
from .kinds.images import ImageFiles, Images, common_shape, most_bytes
from .kinds.table import Table
from .kinds.text import Text, Texts
from .preflight import (
    Preflight,
    PreflightError,
    Problem,
    check_classes,
    check_ids,
    check_names,
    check_spelling,
    class_order,
)
from .readers.delimited import SUFFIXES
from .readers.feature_file import SUFFIXES as FEATURE_SUFFIXES
from .readers.feature_file import open_features
from .readers.folder import open_folder, open_images, open_texts
from .readers.named import NAMED
from .readers.npz import open_npz
from .readers.objects import inputs_from_objects
from .readers.table import Columns, open_table
from .samples import Samples, check_class_count
from .table_encoding import TableRows
from .tables import encoded_like, encoded_table, rows_by_position, texts_like

Advance = Callable[[int], None]


@dataclass(frozen=True)
class SourceOptions:
    """How a source is read."""

    test: str | None = None
    root: str | None = None
    columns: Columns = field(default_factory=Columns)
    size: int | None = None
    skip_bad: bool = False
    memory: float = 2.0
    seed: int = 0


AS_IT_IS = SourceOptions()


def open_source(
    source: str, options: SourceOptions = AS_IT_IS, *, advance: Advance = lambda done: None
) -> tuple[Samples, Preflight]:
    """The samples that a SOURCE argument means, fit for training, and what the preflight found in them."""
    return check_samples(read_with_test(source, options), options, advance=advance)


def read_with_test(source: str, options: SourceOptions = AS_IT_IS) -> Samples:
    """What a SOURCE argument means with the test set that the options name, before anything is checked."""
    samples = read_source(source, options)
    return samples if options.test is None else replace(samples, test=read_source(options.test, options))


def read_source(source: str, options: SourceOptions = AS_IT_IS) -> Samples:
    """What a SOURCE argument means, before anything is checked: images that are in files are not decoded."""
    path, root = Path(source), None if options.root is None else Path(options.root)
    if source in NAMED:
        return NAMED[source](root)
    if path.suffix == ".npz":
        return open_npz(path)
    if path.suffix in SUFFIXES:
        return open_table(path, options.columns, root=root)
    if path.is_dir():
        return open_folder(path)
    if path.exists():
        raise InputError(f"{source} is not a folder and not one of .npz, {', '.join(SUFFIXES)}")
    return lookup("source", source, NAMED)(root)


def check_samples(
    samples: Samples, options: SourceOptions = AS_IT_IS, *, advance: Advance = lambda done: None
) -> tuple[Samples, Preflight]:
    """Samples without the unusable ones, images decoded or ready to be streamed, and what was found."""
    if options.size is not None and not 4 <= options.size <= 1024:
        raise InputError(f"--size must be between 4 and 1024 pixels, not {options.size}")
    preflight = Preflight()
    train = _usable(samples, options, preflight, advance)
    test = samples.test
    if test is not None:
        if test.kind.name != train.kind.name:
            raise InputError(f"{test.name} holds {test.kind.name}, but {samples.name} holds {train.kind.name}")
        test = _usable(test, options, preflight, advance, like=train.shape, kind=train.kind)
        if test.shape != train.shape:
            raise InputError(f"test samples of shape {test.shape} do not match training samples of shape {train.shape}")
        test = test.with_classes(train.class_names, f"{test.name} has the label")
    if preflight.problems and not options.skip_bad:
        raise PreflightError(samples.name, preflight)
    check_class_count(train)
    preflight.notes += [*check_classes(train.label_names), *check_spelling(train.class_names)]
    if train.kind.name in (Images.name, Text.name) and isinstance(train.inputs, Tensor | Texts):
        preflight.notes += _conflicts(train, train.inputs)
    return replace(train, test=test), preflight


def open_inputs(
    source: Any,
    kind: Kind,
    shape: Sequence[int],
    options: SourceOptions = AS_IT_IS,
    *,
    advance: Advance = lambda done: None,
) -> Samples:
    """Samples for a model of this kind and shape, labels not needed: a source by name or path, or Python objects.

    Feature columns of a table go by their names.
    """
    by_name = isinstance(source, str | Path)
    name = str(source) if by_name else "data"
    read = _read_inputs(name, kind, options) if by_name else inputs_from_objects(source, kind)
    if isinstance(read.inputs, Tensor) and isinstance(kind, Table) and read.kind.name == Features.name:
        read = replace(read, inputs=rows_by_position(read.inputs, kind, name))
    if isinstance(read.inputs, TableRows) and isinstance(kind, Features):
        read = encoded_like(read, read.inputs, kind)
    if isinstance(read.inputs, TableRows) and isinstance(kind, Text):
        read = texts_like(read, read.inputs, kind)
    if read.kind.name != kind.name:
        wants = kind.name if kind.name in (Images.name, Text.name) else f"rows of {shape[0]} features"
        if isinstance(kind, Encoded):
            wants = f"the {shape[0]} features that it was trained on, from a file"
        raise InputError(f"{name} holds {read.kind.name}, but the model takes {wants}")
    preflight = Preflight()
    usable = _usable(replace(read, problems=()), options, preflight, advance, like=tuple(shape), in_memory=True)
    usable = replace(usable, notes=preflight.notes)
    if preflight.problems and not options.skip_bad:
        raise PreflightError(name, preflight)
    return usable


def _read_inputs(source: str, kind: Kind, options: SourceOptions) -> Samples:
    path, takes_images, takes_texts = Path(source), kind.name == Images.name, kind.name == Text.name
    if source in NAMED or not path.exists():
        return read_source(source, options)
    if isinstance(kind, Encoded) and path.suffix in FEATURE_SUFFIXES:
        return open_features(path)
    if path.suffix == ".npz":
        return open_npz(path, labelled=False)
    if path.suffix in SUFFIXES:
        root = None if options.root is None else Path(options.root)
        return open_table(path, options.columns, root=root, labelled=False, images=takes_images)
    if takes_texts:
        return open_texts(path)
    if not takes_images:
        wants = "the features that it was trained on, from a file" if isinstance(kind, Encoded) else "rows of features"
        raise InputError(f"{source} is no table, and the model takes {wants}")
    return open_images(path)


def _usable(
    samples: Samples,
    options: SourceOptions,
    preflight: Preflight,
    advance: Advance,
    *,
    like: tuple[int, ...] | None = None,
    kind: Kind | None = None,
    in_memory: bool = False,
) -> Samples:
    """Usable samples of one split; what is not usable goes to the preflight.

    `like` is the shape that images come to, and `kind` the one whose encoding rows of a table get, if it is known.
    """
    if isinstance(samples.inputs, TableRows):
        samples = encoded_table(samples, samples.inputs, kind, seed=options.seed)
    preflight.notes += samples.notes
    bad = [*samples.problems, *check_names(samples.ids, samples.locations)]
    bad += samples.kind.problems(samples.inputs, samples.locations)
    repeated = check_ids(samples.ids, samples.locations)
    if isinstance(samples.inputs, ImageFiles):
        samples, damaged = _decoded(samples, samples.inputs, options, advance, like, in_memory=in_memory)
        bad += damaged
    keep = _rows_to_keep(samples, bad, repeated)
    preflight.checked += len(samples)
    preflight.problems += bad + repeated
    preflight.skipped += len(samples) - len(keep)
    if len(keep) < len(samples):
        samples = samples.take(keep)
    if samples.declared or not any(samples.label_names):
        return samples
    names = class_order(filter(None, samples.label_names))
    return samples if names == list(samples.class_names) else samples.with_classes(names, "the labels hold")


def _decoded(
    samples: Samples,
    files: ImageFiles,
    options: SourceOptions,
    advance: Advance,
    like: tuple[int, ...] | None,
    *,
    in_memory: bool,
) -> tuple[Samples, list[Problem]]:
    """Images in memory, or to be streamed where they would take more of it than they may; and the damaged ones."""
    path = image_cache.cache_path(files, options.size, like)
    images = image_cache.cached(path, options.memory * 2**30)
    if images is None:
        headers, problems = files.headers()
        if not headers:
            return replace(samples, inputs=torch.zeros(len(files), 1, 4, 4, dtype=torch.uint8)), problems
        shape = (like[0], like[1], like[2]) if like is not None else common_shape(headers.values(), options.size)
        files = replace(files, shape=shape)
        if most_bytes(files) > options.memory * 2**30 and not in_memory:
            streamed = replace(samples, inputs=files, originals=files, kind=_kind_of(samples, shape))
            return streamed, files.damaged(advance)
        images, problems = files.decoded(range(len(files)), advance)
        if not problems:
            image_cache.keep(path, images)
    else:
        problems = []
    return replace(samples, inputs=images, originals=files, kind=_kind_of(samples, images.shape[1:])), problems


def _kind_of(samples: Samples, shape: Sequence[int]) -> Kind:
    """Grey pictures are rather scans of characters, which a mirror changes, than photographs."""
    return Images(flips=shape[0] == 3) if samples.kind == Images() else samples.kind


def _rows_to_keep(samples: Samples, unusable: list[Problem], repeated: list[Problem]) -> list[int]:
    """Rows without a problem; of those that share an id, the first."""
    bad, twice = {p.location for p in unusable}, {p.location for p in repeated}
    keep, seen = [], set()
    for row, (location, id) in enumerate(zip(samples.locations, samples.ids, strict=True)):
        if location in bad or (location in twice and id in seen):
            continue
        keep.append(row)
        seen.add(id)
    return keep


def _conflicts(samples: Samples, inputs: Tensor | Texts) -> list[Problem]:
    """Exact duplicates whose labels differ: label noise in plain sight."""
    groups: dict[bytes, list[int]] = defaultdict(list)
    what, each = ("image", inputs.numpy()) if isinstance(inputs, Tensor) else ("text", inputs.values)
    for row, sample in enumerate(each):
        content = sample.encode() if isinstance(sample, str) else sample.tobytes()
        groups[hashlib.sha256(content).digest()].append(row)
    names, found = samples.label_names, []
    for members in groups.values():
        classes = sorted({names[row] for row in members})
        if len(classes) > 1:
            locations = ", ".join(samples.locations[row] for row in members)
            found.append(Problem(locations, f"the same {what} with the labels {' and '.join(classes)}"))
    return found
