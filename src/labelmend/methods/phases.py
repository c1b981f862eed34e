"""Recipes in the order of their epochs."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from ..core import Batch, Learner
from .noise_tracker import NoiseTracker
from .recipe import Recipe
from .tracked import TrackedMethod


class Phases(TrackedMethod):
    """One recipe at a time, by the epoch in which each takes over."""

    def __init__(
        self,
        recipes: Mapping[int, Recipe],
        noise_tracker: NoiseTracker,
        *,
        rate: Callable[[int], float],
        track_every: float = 1,
        track_augmented: bool = False,
        keep_mean_log_probs: bool = False,
    ) -> None:
        super().__init__(rate, noise_tracker=noise_tracker, track_every=track_every, needs_fresh=tuple(recipes))
        self.recipes = dict(sorted(recipes.items()))
        self.track_augmented = track_augmented
        if keep_mean_log_probs:
            self.records = self.records | {"mean_log_probs"}

    def recipe(self, epoch: int) -> Recipe:
        """The recipe in force in this epoch."""
        return self.recipes[max(start for start in self.recipes if start <= epoch)]

    def phase(self, epoch: int) -> str:
        """Name of the recipe in force."""
        return self.recipe(epoch).name

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator) -> Tensor:
        """Learn from one batch by the recipe in force."""
        return self.recipe(epoch).step(learners, batch, epoch, rng, self.classes)
