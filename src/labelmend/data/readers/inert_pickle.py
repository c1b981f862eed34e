"""Pickled dictionaries of plain values and byte arrays, read without running anything that they name.

The opcodes are interpreted here, one by one, so no module is imported and no object is called on a file's behalf: the
few global names that numpy writes are inert markers, and every other name or opcode is refused.
"""

import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from pickletools import genops
from typing import Any, TypeVar
from zipfile import BadZipFile, ZipFile, is_zipfile

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ..limits import regular

ENCODE = "_codecs encode"
NDARRAY = "numpy ndarray"
DTYPE = "numpy dtype"
RECONSTRUCT = ("numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct")
Kind = TypeVar("Kind")
MARKERS = frozenset({ENCODE, NDARRAY, DTYPE, *RECONSTRUCT})

WHOLE_NUMBERS = ("u1", "i1", "i2", "i4", "i8", "u2", "u4", "u8")
LARGEST = 64 << 20
MOST_STEPS = 2_000_000

TEXTS = {"STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
VALUES = {"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", *TEXTS}
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


@dataclass(frozen=True)
class _Marker:
    name: str


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
        found = _Reader(data).read()
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


class _Reader:
    """The stack machine of pickle, cut down to what builds plain values."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.stack: list[object] = []
        self.marks: list[int] = []
        self.memo: dict[object, object] = {}
        self.encoded = 0

    def read(self) -> object:
        for step, (opcode, argument, _) in enumerate(genops(self.data)):
            if opcode.name == "STOP":
                break
            if step == MOST_STEPS:
                raise InputError(f"it has more than {MOST_STEPS:,} steps, which no data file needs")
            self._step(opcode.name, argument)
        return self.stack.pop()

    def _step(self, name: str, argument: object) -> None:
        stack = self.stack
        if name in VALUES:
            stack.append(argument)
        elif name in CONSTANTS:
            stack.append(CONSTANTS[name])
        elif name == "MARK":
            self.marks.append(len(stack))
        elif name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self.memo[len(self.memo) if name == "MEMOIZE" else argument] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self.memo[argument])
        elif name in ("EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE"):
            stack.append({"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}[name]())
        elif name in TUPLES or name in ("TUPLE", "LIST", "DICT"):
            items = self._last(TUPLES[name]) if name in TUPLES else self._marked()
            stack.append(items if name == "LIST" else _filled({}, items) if name == "DICT" else tuple(items))
        elif name in ("APPEND", "APPENDS"):
            items = self._last(1) if name == "APPEND" else self._marked()
            _as(list, stack[-1]).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = self._last(2) if name == "SETITEM" else self._marked()
            _filled(_as(dict, stack[-1]), items)
        elif name == "GLOBAL":
            stack.append(_marker(str(argument)))
        elif name == "STACK_GLOBAL":
            stack.append(_marker(" ".join(str(_as(str, part)) for part in self._last(2))))
        elif name == "REDUCE":
            stack.append(self._reduced(*self._last(2)))
        elif name == "BUILD":
            state = stack.pop()
            self._build(stack[-1], _as(tuple, state))
        elif name not in ("PROTO", "FRAME"):
            raise InputError(f"it uses the opcode {name}, which no data file needs")

    def _last(self, count: int) -> list[object]:
        if len(self.stack) < count:
            raise ValueError("its stack runs empty")
        items = self.stack[-count:]
        del self.stack[-count:]
        return items

    def _marked(self) -> list[object]:
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def _reduced(self, function: object, arguments: object) -> object:
        """The value that a call of a known marker stands for; nothing is called."""
        match function, arguments:
            case _Marker(name), (str(text), "latin1") if name == ENCODE:
                self.encoded += len(text)
                if self.encoded > len(self.data):  # one long text, encoded again and again, would fill the memory
                    raise InputError("it encodes more text than it holds")
                return text.encode("latin1")
            case _Marker(name), (str() | bytes() as code, *_) if name == DTYPE:
                text = code.decode("latin1") if isinstance(code, bytes) else code
                if text not in WHOLE_NUMBERS:
                    raise InputError(f"it holds an array of type {code!r:.20}, where only whole numbers are read")
                return _Element(text)
            case _Marker(name), (_Marker(kind), *_) if name in RECONSTRUCT and kind == NDARRAY:
                return _Array()
        raise InputError(f"it calls {function.name if isinstance(function, _Marker) else 'a value'} in an unknown way")

    def _build(self, target: object, state: tuple[object, ...]) -> None:
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


def _marker(name: str) -> _Marker:
    if name not in MARKERS:
        raise InputError(f"it names the global {name.replace(' ', '.')!r:.100}, which no data file needs")
    return _Marker(name)


def _as(kind: type[Kind], value: object) -> Kind:
    if not isinstance(value, kind):
        raise ValueError(f"a {kind.__name__} is expected where a {type(value).__name__} stands")
    return value


def _filled(target: dict[object, object], items: list[object]) -> dict[object, object]:
    for key, value in zip(items[::2], items[1::2], strict=True):
        if not isinstance(key, str | bytes | int):  # the hash of nested tuples can take forever
            raise ValueError(f"a {type(key).__name__} stands where a key is expected")
        target[key] = value
    return target
