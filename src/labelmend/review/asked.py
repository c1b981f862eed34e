"""What a request asks for, taken from its JSON and checked; InputError for what is nothing of the kind."""

import json
import math
from collections.abc import Mapping
from typing import Any, TypeVar

from ..errors import InputError

Kind = TypeVar("Kind")


def json_object(body: bytes) -> dict[str, Any]:
    """The object that a body holds."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise InputError("the body is not JSON") from None
    if not isinstance(found, dict):
        raise InputError("the body is not an object")
    return found


def part(asked: Mapping[str, Any], name: str, kind: type[Kind]) -> Kind:
    """A list or an object in what is asked; an empty one where it is left out."""
    found = asked.get(name, kind())
    if not isinstance(found, kind):
        raise InputError(f"{name} must be {'a list' if kind is list else 'an object'}")
    return found


def whole_number(asked: Mapping[str, Any], name: str, least: int, most: int) -> int:
    """A whole number in what is asked; the least where it is left out."""
    found = asked.get(name, least)
    if type(found) is not int or not least <= found <= most:
        raise InputError(f"{name} must be a whole number from {least} to {most}")
    return found


def share(value: Any) -> float:
    """The share of wrong labels at which a reviewer wants to stop."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not 0 <= found <= 1:
        raise InputError("wish must be a share from 0 to 1")
    return found


def reviewer_name(value: Any) -> str:
    """The name of a reviewer, which `Answers` looks at more closely."""
    if not isinstance(value, str):
        raise InputError("reviewer must be a name")
    return value
