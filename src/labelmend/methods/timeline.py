"""When things happen: the fractions of a published schedule, in whatever number of epochs is run."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Timeline:
    """Epoch numbers of a published schedule, brought to the number of epochs that is run.

    >>> short = Timeline(300, drops=(100, 250), epochs=60)
    >>> short.start(106), [round(short.rate(epoch), 3) for epoch in (20, 21, 51)]
    (22, [1.0, 0.1, 0.01])
    """

    published: int
    drops: tuple[int, ...]
    epochs: int

    def after(self, epoch: int) -> int:
        """The last epoch of a stage that the publication ends with `epoch`; at least 1."""
        return max(1, round(epoch * self.epochs / self.published))

    def start(self, epoch: int) -> int:
        """The first epoch of a stage that the publication starts in `epoch`."""
        return 1 if epoch == 1 else self.after(epoch - 1) + 1

    def rate(self, epoch: int) -> float:
        """A tenth of the learning rate after each drop."""
        return float(0.1 ** sum(epoch > self.after(drop) for drop in self.drops))


def linear(first: tuple[int, float], last: tuple[int, float]) -> Callable[[int], float]:
    """Epoch -> value, on a straight line between two (epoch, value) points and level outside them."""
    (begin, high), (end, low) = first, last

    def value(epoch: int) -> float:
        done = 1.0 if end <= begin else min(max((epoch - begin) / (end - begin), 0.0), 1.0)
        return high + (low - high) * done

    return value
