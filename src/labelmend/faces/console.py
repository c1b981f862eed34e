"""Where the command writes: consoles on which names from files cannot steer the terminal. Imports nothing slow."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from ..errors import visible


class SafeConsole(Console):
    """A console on which names from files stay text: what would steer the terminal is written out."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            lines = segment.text.split("\n")
            yield segment if segment.control else segment._replace(text="\n".join(map(visible, lines)))


@contextmanager
def only_errors(name: str) -> Iterator[None]:
    """Leave out what another library logs below errors."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


out = SafeConsole()
err = SafeConsole(stderr=True)
