"""An extension of griffe: examples in docstrings become blocks of code on the site."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)


class FencedExamples(griffe.Extension):
    """Fences every example of every docstring."""

    def on_object(self, *, obj: griffe.Object, **rest: Any) -> None:
        """Called for each object that griffe has read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    r"""A docstring with its examples, from `>>>` to the next empty line, as blocks of code.

    >>> fenced("A sum.\n\n>>> 1 + 1\n2\n\nMore.")
    'A sum.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore.'
    """
    return EXAMPLE.sub(lambda found: f"{found[1]}```pycon\n{found[0]}\n{found[1]}```", text)
