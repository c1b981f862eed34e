"""Samples whose labels are known to be right: named in a file, or so many of each class where the truth is known."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from ..errors import InputError
from .label_file import class_numbers, read_csv, refuse_ids
from .limits import sized
from .samples import Samples


def trust(text: str, data: Samples, rng: torch.Generator) -> Samples:
    """The data set with the samples of `FILE`, or `N` random ones of each class, trusted and labelled right.

    Where wrong labels were made on purpose, the labels from before are right; where a file has labels, those are.
    """
    labels = data.labels
    right = labels.observed if labels.truth is None else labels.truth
    if asked := re.fullmatch(r"(\d{1,9})(-per-class)?", text, re.ASCII):
        index = _of_each_class(int(asked[1]), data, rng)
        named = right[index]
    else:
        index, in_file = _named(text, data)
        named = right[index] if in_file is None else in_file
    observed = labels.observed.clone()
    observed[index] = named
    order = index.argsort()
    return replace(data, labels=labels.with_observed(observed), trusted=index[order])


def _of_each_class(count: int, data: Samples, rng: torch.Generator) -> Tensor:
    truth = data.labels.truth
    if truth is None:
        raise InputError(
            f"--trusted {count}-per-class takes samples whose right labels are known, as after --noise, but those of "
            f"{data.name} are not; name samples that somebody has checked in a file: --trusted ids.csv"
        )
    if count < 1:
        raise InputError("--trusted takes a file, or at least 1 sample of each class")
    order = torch.randperm(len(data), generator=rng)
    found = [order[truth[order] == label][:count] for label in range(len(data.class_names))]
    for name, members in zip(data.class_names, found, strict=True):
        if len(members) < count:
            raise InputError(f"--trusted {count}-per-class: class {name!r} has only {len(members)} samples")
    return torch.cat(found)


def _named(file: str, data: Samples) -> tuple[Tensor, Tensor | None]:
    """Where the samples of a file stand, and their labels if it has a column of them."""
    if Path(file).suffix not in (".csv", ".txt"):
        raise InputError(
            f"--trusted {file} is neither N-per-class, nor a .csv file with a column 'id', nor a .txt "
            "file with an id a line"
        )
    columns = read_csv(file) if Path(file).suffix == ".csv" else {}
    ids = [str(name) for name in columns["ids"].tolist()] if columns else _lines(file)
    place = {name: row for row, name in enumerate(data.ids)}
    refuse_ids(file, f"are not in {data.name}", [name for name in ids if name not in place])
    refuse_ids(file, "occur more than once", [name for name, times in Counter(ids).items() if times > 1])
    if not ids:
        raise InputError(f"{file} names no sample")
    index = torch.tensor([place[name] for name in ids])
    if "label" not in columns:
        return index, None
    return index, torch.from_numpy(class_numbers(f"{file}:label", columns["label"], None, data))


def _lines(file: str) -> list[str]:
    try:
        lines = sized(file).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read as text: {error}") from None
    return [line.strip() for line in lines if line.strip()]
