"""Values checked by the types and limits of dataclass fields: text from `--set key=value`, or values from Python."""

import csv
import io
import types
from collections.abc import Iterable, Mapping
from dataclasses import Field, fields
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ..errors import InputError, lookup

Options = TypeVar("Options")
IN_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false", type(None): "none"}


def split_pairs(pairs: list[str]) -> dict[str, str]:
    """`["a=1", "b=x"]` as a dictionary."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InputError(f"--set takes key=value, not {pair!r}")
        found[key.strip()] = value.strip()
    return found


def split_names(text: str | None) -> list[str]:
    """Names that are joined by commas; one that has a comma itself is in quotes.

    >>> split_names('age, "height, cm"')
    ['age', 'height, cm']
    """
    row = next(csv.reader(io.StringIO(text or ""), skipinitialspace=True), [])
    return [name.strip() for name in row if name.strip()]


def joined_names(names: Iterable[object]) -> str:
    """Names joined by commas as `split_names` takes them.

    >>> joined_names(["age", "height, cm"])
    'age,"height, cm"'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow([str(name) for name in names])
    return text.getvalue()


def known_keys(*kinds: type) -> dict[str, Field[Any]]:
    """Every field of these dataclasses by name."""
    return {field.name: field for kind in kinds for field in fields(kind)}


def check_keys(values: Mapping[str, Any], *kinds: type) -> None:
    """Refuse a key that none of these dataclasses has."""
    for key in values:
        lookup("setting", key, known_keys(*kinds))


def parse(kind: type[Options], values: Mapping[str, Any]) -> Options:
    """An instance of the dataclass with those of the values that are its own, given as text or in their own types."""
    hints = get_type_hints(kind)
    given = {}
    for name, field in known_keys(kind).items():
        if name in values:
            value, what = values[name], f"setting {name}"
            value = from_text(what, value, hints[name]) if isinstance(value, str) else typed(what, value, hints[name])
            check_limits(what, value, field.metadata)
            given[name] = value
    return kind(**given)


def describe(hint: Any) -> str:
    """What a field takes, in words: `paper|released`, `a number`, `a whole number or converged`."""
    if get_origin(hint) is Literal:
        return "|".join(str(choice) for choice in get_args(hint))
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(describe(part) for part in get_args(hint))
    return IN_WORDS.get(hint, "a dictionary")


def from_text(what: str, text: str, hint: Any) -> Any:
    """The value that the text stands for, in the first type of the hint that can be read from it."""
    for part in _alternatives(hint):
        if get_origin(part) is Literal and text in get_args(part):
            return text
        if part is type(None) and text.lower() == "none":
            return None
        if part in (int, float, str):
            try:
                return part(text)
            except ValueError:
                continue
    raise InputError(f"{what} takes {describe(hint)}, not {text!r:.100}")


def typed(what: str, value: Any, hint: Any) -> Any:
    """The value if it has a type of the hint, as plain Python; a fraction is never rounded to a whole number."""
    for part in _alternatives(hint):
        if part is int and isinstance(value, Integral) and not isinstance(value, bool):
            return int(value)
        if part is float and isinstance(value, Real) and not isinstance(value, bool):
            return float(value)
        if get_origin(part) is Literal and value in get_args(part):
            return value
        kind = get_origin(part) or part
        if kind not in (int, float, Literal) and isinstance(value, kind):
            return value
    raise InputError(f"{what} takes {describe(hint)}, not {value!r:.100}")


def check_limits(what: str, value: Any, limits: Mapping[str, Any]) -> None:
    """Refuse a number below `least` or above `most`, and NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    least, most = limits.get("least"), limits.get("most")
    if value != value or (least is not None and value < least) or (most is not None and value > most):
        raise InputError(f"{what} must be {between(limits)}, not {value}")


def between(limits: Mapping[str, Any]) -> str:
    """The limits of a number in words."""
    least, most = limits.get("least"), limits.get("most")
    if least is None and most is None:
        return "a number"
    if most is None:
        return f"at least {least}"
    return f"at most {most}" if least is None else f"between {least} and {most}"


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
