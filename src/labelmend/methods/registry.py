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
class RegisteredMethod:
    """A registered method: its id, one line on what it is, its builder and the type of its options.

    `needs_trusted` says that it learns from samples whose labels are known to be right.
    """

    id: str
    summary: str
    build: Callable[[Any, int], Method]
    options: type
    needs_trusted: bool


_registered: dict[str, RegisteredMethod] = {}


def method(id: str, *, needs_trusted: bool = False) -> Callable[[Builder], Builder]:
    """Register a class or function `(options, epochs) -> Method` under this id.

    The annotation of `options` says what can be set, and the first line of the docstring what the method is.
    """

    def register(build: Builder) -> Builder:
        summary = (build.__doc__ or "").partition("\n")[0].removesuffix(".")
        _registered[id] = RegisteredMethod(id, summary, build, get_type_hints(build)["options"], needs_trusted)
        return build

    return register


def methods() -> dict[str, RegisteredMethod]:
    """All registered methods, the paper's own first."""
    package = importlib.import_module(__package__)
    names = sorted((info.name for info in pkgutil.iter_modules(package.__path__)), key=lambda n: (n != "paper", n))
    for name in names:
        importlib.import_module(f"{__package__}.{name}")
    return dict(_registered)


def find(id: str) -> RegisteredMethod:
    """The method with this id, or an error that names the nearest one."""
    return lookup("method", id, methods())
