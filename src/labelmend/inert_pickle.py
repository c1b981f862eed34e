"""The stack machine of pickle, cut down to what builds plain values: nothing that a file names is imported or called.

The opcodes are interpreted one by one. Global names are inert markers, and only those that a reader declares are taken;
every other name or opcode is refused. A reader says what a call of a marker stands for. Imports nothing slow.
"""

import io
from dataclasses import dataclass
from pickletools import genops
from typing import ClassVar, TypeVar

from .errors import InputError

Kind = TypeVar("Kind")
MOST_STEPS = 2_000_000

TEXTS = {"STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
VALUES = {"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", *TEXTS}
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


@dataclass(frozen=True)
class Marker:
    """Stands for a global name of a file."""

    name: str


class InertReader:
    r"""Reads one pickle; subclasses name the `markers` they know and say what those stand for.

    >>> InertReader(b"\x80\x02]q\x00(K\x01K\x02e.").read()
    [1, 2]
    """

    markers: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, data: bytes | io.BytesIO) -> None:
        self.data = data
        self.stack: list[object] = []
        self.marks: list[int] = []
        self.memo: dict[object, object] = {}

    def read(self) -> object:
        """The value that the pickle builds; a stream is left where the pickle ends."""
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
            stack.append(items if name == "LIST" else filled({}, items) if name == "DICT" else tuple(items))
        elif name in ("APPEND", "APPENDS"):
            items = self._last(1) if name == "APPEND" else self._marked()
            as_kind(list, stack[-1]).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = self._last(2) if name == "SETITEM" else self._marked()
            filled(as_kind(dict, stack[-1]), items)
        elif name == "GLOBAL":
            stack.append(self._marker(str(argument)))
        elif name == "STACK_GLOBAL":
            stack.append(self._marker(" ".join(str(as_kind(str, part)) for part in self._last(2))))
        elif name == "REDUCE":
            stack.append(self.reduced(*self._last(2)))
        elif name == "BUILD":
            state = stack.pop()
            self.build(stack[-1], state)
        elif name == "BINPERSID":
            stack.append(self.persistent(stack.pop()))
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

    def _marker(self, name: str) -> Marker:
        if name not in self.markers:
            raise InputError(f"it names the global {name.replace(' ', '.')!r:.100}, which no data file needs")
        return Marker(name)

    def reduced(self, function: object, arguments: object) -> object:
        """The value that a call of a marker stands for; nothing is called."""
        raise InputError(f"it calls {function.name if isinstance(function, Marker) else 'a value'} in an unknown way")

    def build(self, target: object, state: object) -> None:
        """Give a value its state."""
        raise InputError("it uses the opcode BUILD, which no data file needs")

    def persistent(self, key: object) -> object:
        """The value that is kept outside the pickle under this key."""
        raise InputError("it uses the opcode BINPERSID, which no data file needs")


def as_kind(kind: type[Kind], value: object) -> Kind:
    """The value, if it is of this type."""
    if not isinstance(value, kind):
        raise ValueError(f"a {kind.__name__} is expected where a {type(value).__name__} stands")
    return value


def filled(target: dict[object, object], items: list[object]) -> dict[object, object]:
    """The dictionary with these keys and values, which alternate."""
    for key, value in zip(items[::2], items[1::2], strict=True):
        if not isinstance(key, str | bytes | int):  # the hash of nested tuples can take forever
            raise ValueError(f"a {type(key).__name__} stands where a key is expected")
        target[key] = value
    return target
