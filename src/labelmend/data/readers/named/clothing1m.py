"""Clothing1M, as its official lists of keys and labels."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ....errors import InputError
from ...samples import Samples
from .files import absent, distinct, folders, in_files, lines, relative


def clothing1m(root: Path | None) -> Samples:
    """Clothing1M: noisy training keys with their noisy labels, and clean test keys with their clean labels."""
    place = folders("clothing1m", root)[0]
    train = "noisy_train_key_list.txt", "noisy_label_kv.txt"
    for file in (*train, "category_names_eng.txt"):
        if not (place / file).is_file():
            raise absent("clothing1m", [place], f"{file}, the other official lists and the folder images")
    names = [line for _, line in lines(place / "category_names_eng.txt")]
    held = place / "clean_test_key_list.txt"
    test = _keyed(place, held.name, "clean_label_kv.txt", names) if held.is_file() else None
    return replace(_keyed(place, *train, names), test=test)


def _keyed(place: Path, keys: str, labels: str, names: Sequence[str]) -> Samples:
    numbered = {str(number): name for number, name in enumerate(distinct(names, range(len(names))))}
    given = dict(line.rpartition(" ")[::2] for _, line in lines(place / labels))
    pairs = []
    for number, line in lines(place / keys):
        key = relative(place / keys, number, line)
        label = given.get(key)
        if label not in numbered:
            fault = "no label" if label is None else f"the label {label!r:.40}, which is no class number,"
            raise InputError(f"{place / keys} line {number}: {key!r:.100} has {fault} in {labels}")
        pairs.append((place / key, label))
    if not pairs:
        raise InputError(f"{place / keys} lists no images")
    return in_files("clothing1m", place, pairs, numbered)
