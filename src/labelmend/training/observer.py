"""Who is told how a run goes on."""

from typing import Any


class Observer:
    """Is told how a run goes on, as a progress bar is; this base class does nothing."""

    def stage(self, epoch: int, name: str, steps: int, done: int = 0) -> None:
        """A stage of an epoch begins; it has this many steps, some of which may be done already."""

    def advance(self) -> None:
        """One step done."""

    def epoch(self, record: dict[str, Any]) -> None:
        """An epoch is finished, with this record."""

    def warn(self, warning: str) -> None:
        """There is a problem that does not stop the run."""
