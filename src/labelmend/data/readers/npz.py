"""`.npz` archives: read without unpickling and without unpacking more than a file can honestly hold."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, listed
from ..limits import ROW_BYTES, check_filled, check_unpacked, regular
from ..samples import Samples
from .arrays import from_arrays


def read_npz(path: Path, *, wanted: tuple[str, ...] = ()) -> dict[str, NDArray[Any]]:
    """Arrays of an archive by name; all of them, or those wanted that are there. Nothing in it is unpickled."""
    regular(path)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            check_unpacked(path, sum(entry.file_size for entry in archive.zip.infolist()))
            arrays = {name: archive[name] for name in archive.files if not wanted or name in wanted}
    except InputError:
        raise
    except Exception as error:  # a damaged zip raises zipfile and zlib errors of its own
        reason = str(error).partition(". ")[0]
        raise InputError(f"{path} cannot be read as an .npz archive of plain arrays: {reason}") from None
    for name, array in arrays.items():
        check_filled(path, name, array)
    check_unpacked(path, sum(array.nbytes + ROW_BYTES * np.atleast_1d(array).shape[0] for array in arrays.values()))
    return arrays


def open_npz(path: Path, *, labelled: bool = True) -> Samples:
    """Samples of the arrays `x` and `y`, and a test set of `x_test` and `y_test` where they are."""
    arrays = read_npz(path, wanted=("x", "y", "x_test", "y_test"))
    for name in ("x", "y") if labelled else ("x",):
        if name not in arrays:
            present = listed(map(repr, _names(path))) or "nothing"
            raise InputError(f"{path} has no array {name!r}; it holds {present}")
    test = (arrays["x_test"], arrays["y_test"]) if {"x_test", "y_test"} <= arrays.keys() and labelled else None
    return from_arrays(path.name, arrays["x"], arrays["y"] if labelled else None, test=test)


def _names(path: Path) -> list[str]:
    with np.load(path, allow_pickle=False) as archive:
        return list(archive.files)
