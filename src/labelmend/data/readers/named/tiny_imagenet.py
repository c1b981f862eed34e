"""TinyImageNet, as its official folders or as parquet files."""

from dataclasses import replace
from pathlib import Path

from ....errors import InputError
from ...samples import Samples
from .files import absent, distinct, folders, in_files, lines, relative, with_subfolder
from .parquet import open_parquets


def tiny_imagenet(root: Path | None) -> Samples:
    """TinyImageNet from its official tree or from parquet files; its validation images are the test listing."""
    places = folders("tiny-imagenet", root)
    for place in with_subfolder(places, "tiny-imagenet-200"):
        if (place / "wnids.txt").is_file():
            return _tiny_tree(place)
        if (place / "train.parquet").is_file():
            return open_parquets("tiny-imagenet", place, "val", None)
    raise absent("tiny-imagenet", places, "the folder tiny-imagenet-200, or train.parquet and val.parquet,")


def _tiny_tree(place: Path) -> Samples:
    file = place / "wnids.txt"
    wnids = list(dict.fromkeys(relative(file, number, line) for number, line in lines(file)))
    words = place / "words.txt"
    pairs = [line.partition("\t") for _, line in lines(words)] if words.is_file() else []
    described = {wnid: text.split(",")[0].strip() for wnid, _, text in pairs}
    names = dict(zip(wnids, distinct([described.get(wnid) or wnid for wnid in wnids], wnids), strict=True))
    found = [(path, wnid) for wnid in wnids for path in (place / "train" / wnid / "images").glob("*.JPEG")]
    order = {wnid: number for number, wnid in enumerate(wnids)}
    found.sort(key=lambda pair: (order[pair[1]], len(pair[0].name), pair[0].name))  # _2 before _10
    if not found:
        raise InputError(f"{place / 'train'} has no images; they belong in train/<wnid>/images/*.JPEG")
    annotations, held = place / "val" / "val_annotations.txt", []
    for number, line in lines(annotations) if annotations.is_file() else []:
        image, _, rest = line.partition("\t")
        wnid = rest.split("\t")[0]
        if wnid not in names:
            raise InputError(f"{annotations} line {number} has the class {wnid!r:.40}, which wnids.txt does not list")
        held.append((place / "val" / "images" / relative(annotations, number, image), wnid))
    train, test = (in_files("tiny-imagenet", place, pairs, names) for pairs in (found, held))
    return replace(train, test=test if held else None)
