"""Pickled dictionaries of plain values and byte arrays, read without running anything that they name.

No module is imported and no object is called on a file's behalf: the few global names that numpy writes are inert
markers, and every other name is refused.
"""

import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from zipfile import BadZipFile, ZipFile, is_zipfile

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...inert_pickle import InertReader, Marker
from ..limits import regular

ENCODE = "_codecs encode"
NDARRAY = "numpy ndarray"
DTYPE = "numpy dtype"
RECONSTRUCT = ("numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct")
MARKERS = frozenset({ENCODE, NDARRAY, DTYPE, *RECONSTRUCT})

WHOLE_NUMBERS = ("u1", "i1", "i2", "i4", "i8", "u2", "u4", "u8")
LARGEST = 64 << 20


@dataclass(frozen=True)
class _Element:
    """Stands for numpy's type of an array's elements, one of the whole numbers."""

    code: str


@dataclass(eq=False)
class _Array:
    value: NDArray[np.integer[Any]] | None = None


def read_inert_pickle(path: Path) -> dict[str, object]:
    """Entries of the dictionary pickled in a file, with text for keys and arrays of whole numbers for numpy's.

    Of an archive that torch wrote, the pickle inside is read.
    """
    regular(path)
    try:
        data = _content(path)
        found = _ArrayReader(data).read()
    except InputError as error:
        raise InputError(f"{path} is refused: {error}") from None
    except (OSError, ValueError, LookupError, TypeError, OverflowError, BadZipFile, zlib.error) as error:
        raise InputError(f"{path} is damaged and cannot be read as a pickled dictionary: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} holds a {type(found).__name__} where a dictionary is expected")
    values = {key: value.value if isinstance(value, _Array) else value for key, value in found.items()}
    return {key.decode("latin1") if isinstance(key, bytes) else str(key): value for key, value in values.items()}


def _content(path: Path) -> bytes:
    if not is_zipfile(path):
        return path.read_bytes()
    with ZipFile(path) as archive:
        inside = [member for member in archive.infolist() if member.filename.endswith("/data.pkl")]
        if len(inside) != 1 or inside[0].file_size > LARGEST:
            raise InputError("it is an archive without one data.pkl of a sensible size")
        return archive.read(inside[0])


class _ArrayReader(InertReader):
    """Plain values, and numpy's arrays of whole numbers."""

    markers: ClassVar[frozenset[str]] = MARKERS

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.size = len(data)
        self.encoded = 0

    def reduced(self, function: object, arguments: object) -> object:
        """The value that a call of a known marker stands for; nothing is called."""
        match function, arguments:
            case Marker(name), (str(text), "latin1") if name == ENCODE:
                self.encoded += len(text)
                if self.encoded > self.size:  # one long text, encoded again and again, would fill the memory
                    raise InputError("it encodes more text than it holds")
                return text.encode("latin1")
            case Marker(name), (str() | bytes() as code, *_) if name == DTYPE:
                text = code.decode("latin1") if isinstance(code, bytes) else code
                if text not in WHOLE_NUMBERS:
                    raise InputError(f"it holds an array of type {code!r:.20}, where only whole numbers are read")
                return _Element(text)
            case Marker(name), (Marker(kind), *_) if name in RECONSTRUCT and kind == NDARRAY:
                return _Array()
        return super().reduced(function, arguments)

    def build(self, target: object, state: object) -> None:
        match target, state:
            case _Element(), (_, "<" | "|" | "=" | b"<" | b"|" | b"=", *_):
                return
            case _Array(), (_, tuple(shape), _Element(code), bool() | 0 | 1 as by_column, str() | bytes() as raw):
                sizes = [size for size in shape if type(size) is int and size >= 0]
                content = raw.encode("latin1") if isinstance(raw, str) else raw
                if len(sizes) != len(shape) or len(shape) > 4 or math.prod(sizes) * int(code[1]) != len(content):
                    raise InputError(f"an array in it has {len(content)} bytes, which does not fit its shape")
                flat = np.frombuffer(content, dtype=f"<{code}")
                target.value = flat.reshape(sizes, order="F" if by_column else "C")
                return
        raise InputError("it uses the opcode BUILD on something other than an array of whole numbers")
