"""Every method by its id. A file in this folder that uses `@method` is found by itself."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from ..core import Method
from ..errors import lookup

Builder = TypeVar("Builder", bound=Callable[..., Method])


@dataclass(frozen=True)
class Entry:
    """A registered method: its id, one line on what it is, its builder and the type of its options.

    `needs_trusted` says that it learns from samples whose labels are known to be right.
    """

    id: str
    summary: str
    build: Callable[[Any, int], Method]
    options: type
    needs_trusted: bool


_entries: dict[str, Entry] = {}


def method(id: str, summary: str, *, needs_trusted: bool = False) -> Callable[[Builder], Builder]:
    """Register a builder `(options, epochs) -> Method`; its options are a dataclass of settings."""

    def register(build: Builder) -> Builder:
        _entries[id] = Entry(id, summary, build, get_type_hints(build)["options"], needs_trusted)
        return build

    return register


def methods() -> dict[str, Entry]:
    """All registered methods, the paper's own first."""
    package = importlib.import_module(__package__)
    names = sorted((info.name for info in pkgutil.iter_modules(package.__path__)), key=lambda n: (n != "paper", n))
    for name in names:
        importlib.import_module(f"{__package__}.{name}")
    return dict(_entries)


def find(id: str) -> Entry:
    """The method with this id, or an error that names the nearest one."""
    return lookup("method", id, methods())
