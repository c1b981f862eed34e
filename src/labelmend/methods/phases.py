"""Recipes in the order of their epochs, and the paper's fractions of whatever number of epochs is run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import Batch, Learner, Ledger, Method, NoiseEstimate, Task
from .recipe import Recipe
from .suspicion import Suspicion


@dataclass(frozen=True)
class Timeline:
    """Epoch numbers of a published schedule, brought to the number of epochs that is run."""

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


class Phases(Method):
    """One recipe at a time, by the epoch in which each takes over."""

    def __init__(
        self,
        recipes: Mapping[int, Recipe],
        suspicion: Suspicion,
        *,
        rate: Callable[[int], float],
        track_every: int = 1,
        track_augmented: bool = False,
        keep_beliefs: bool = False,
    ) -> None:
        super().__init__()
        self.recipes = dict(sorted(recipes.items()))
        self.suspicion = suspicion
        self.timeline = rate
        self.track_every = track_every
        self.track_augmented = track_augmented
        if keep_beliefs:
            self.records = self.records | {"beliefs"}
        self.classes = 0

    def recipe(self, epoch: int) -> Recipe:
        """The recipe in force in this epoch."""
        return self.recipes[max(start for start in self.recipes if start <= epoch)]

    def rate(self, epoch: int) -> float:
        """Learning rate by the timeline."""
        return self.timeline(epoch)

    def phase(self, epoch: int) -> str:
        """Name of the recipe in force."""
        return self.recipe(epoch).name

    def begin(self, task: Task, ledgers: Sequence[Ledger] = ()) -> None:
        """Once, before the first epoch."""
        self.classes = task.classes
        self.suspicion.begin(task, ledgers)

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator) -> Tensor:
        """Learn from one batch by the recipe in force."""
        return self.recipe(epoch).step(learners, batch, epoch, rng, self.classes)

    def tracks(self, epoch: int) -> bool:
        """Every so many epochs, and before a recipe takes over that goes by what was tracked."""
        return epoch % self.track_every == 0 or epoch + 1 in self.recipes

    def epoch_end(self, ledgers: Sequence[Ledger], epoch: int) -> None:
        """Refit the noise model."""
        self.suspicion.update(ledgers)

    def estimate(self) -> NoiseEstimate:
        """What the noise model says."""
        return self.suspicion.estimate()
