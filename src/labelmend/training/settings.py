"""Settings given as text (`--set key=value`), parsed by the types of dataclass fields."""

import types
from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ..errors import InputError, lookup

Options = TypeVar("Options")


def split_pairs(pairs: list[str]) -> dict[str, str]:
    """`["a=1", "b=x"]` as a dictionary."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InputError(f"--set takes key=value, not {pair!r}")
        found[key.strip()] = value.strip()
    return found


def known_keys(*kinds: type) -> dict[str, Field[Any]]:
    """Every field of these dataclasses by name."""
    return {field.name: field for kind in kinds for field in fields(kind)}


def check_keys(values: Mapping[str, str], *kinds: type) -> None:
    """Refuse a key that none of these dataclasses has."""
    for key in values:
        lookup("setting", key, known_keys(*kinds))


def parse(kind: type[Options], values: Mapping[str, str]) -> Options:
    """An instance of the dataclass with those of the values that are its own."""
    hints = get_type_hints(kind)
    given = {}
    for name, field in known_keys(kind).items():
        if name in values:
            given[name] = _within(name, _convert(name, values[name], hints[name]), field.metadata)
    return kind(**given)


def describe(hint: Any) -> str:
    """What a setting takes, in words: `paper|released`, `number`, `whole number or converged`."""
    if get_origin(hint) is Literal:
        return "|".join(str(choice) for choice in get_args(hint))
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(describe(part) for part in get_args(hint))
    return {int: "whole number", float: "number", str: "text", type(None): "none"}[hint]


def _convert(name: str, text: str, hint: Any) -> Any:
    for part in get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,):
        if get_origin(part) is Literal and text in get_args(part):
            return text
        if part is type(None) and text.lower() == "none":
            return None
        if part in (int, float, str):
            try:
                return part(text)
            except ValueError:
                continue
    raise InputError(f"setting {name} takes {describe(hint)}, not {text!r}")


def _within(name: str, value: Any, limits: Mapping[str, Any]) -> Any:
    if not isinstance(value, int | float):
        return value
    least, most = limits.get("least"), limits.get("most")
    if value != value or (least is not None and value < least) or (most is not None and value > most):
        between = f"at least {least}" if most is None else f"between {least} and {most}"
        raise InputError(f"setting {name} must be {between}, not {value}")
    return value
