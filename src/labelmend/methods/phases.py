"""Recipes in the order of their epochs."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from ..core import Batch, Learner
from .recipe import Recipe
from .suspicion import Suspicion
from .watched import Watched


class Phases(Watched):
    """One recipe at a time, by the epoch in which each takes over."""

    def __init__(
        self,
        recipes: Mapping[int, Recipe],
        suspicion: Suspicion,
        *,
        rate: Callable[[int], float],
        track_every: float = 1,
        track_augmented: bool = False,
        keep_beliefs: bool = False,
    ) -> None:
        super().__init__(rate, suspicion=suspicion, track_every=track_every, needs_fresh=tuple(recipes))
        self.recipes = dict(sorted(recipes.items()))
        self.track_augmented = track_augmented
        if keep_beliefs:
            self.records = self.records | {"beliefs"}

    def recipe(self, epoch: int) -> Recipe:
        """The recipe in force in this epoch."""
        return self.recipes[max(start for start in self.recipes if start <= epoch)]

    def phase(self, epoch: int) -> str:
        """Name of the recipe in force."""
        return self.recipe(epoch).name

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator) -> Tensor:
        """Learn from one batch by the recipe in force."""
        return self.recipe(epoch).step(learners, batch, epoch, rng, self.classes)
