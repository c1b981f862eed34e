"""Recipes in the order of their epochs."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from ..core import Step, Task
from ..detect.ledger import Ledger
from ..parts.penalties import EstimatedPrior
from .noise_tracker import NoiseTracker
from .recipe import Recipe
from .timeline import Timeline
from .tracked import TrackedMethod


class Phases(TrackedMethod):
    """One recipe at a time, by the epoch in which each takes over."""

    def __init__(
        self,
        recipes: Mapping[int, Recipe],
        noise_tracker: NoiseTracker,
        timeline: Timeline,
        *,
        track_every: float = 1,
        track_augmented: bool = False,
        keep_mean_log_probs: bool = False,
    ) -> None:
        super().__init__(timeline, noise_tracker=noise_tracker, track_every=track_every)
        self.recipes = self.needs_fresh = dict(sorted(recipes.items()))
        self.track_augmented = track_augmented
        if keep_mean_log_probs:
            self.records = self.records | {"mean_log_probs"}

    def begin(self, task: Task, ledgers: Sequence[Ledger] = ()) -> None:
        super().begin(task, ledgers)
        for recipe in self.recipes.values():
            if isinstance(recipe.penalty, EstimatedPrior):
                recipe.penalty.begin(task.labels, task.classes)

    def recipe(self, epoch: int) -> Recipe:
        """The recipe in force in this epoch."""
        return self.recipes[max(start for start in self.recipes if start <= epoch)]

    def phase(self, epoch: int) -> str:
        return self.recipe(epoch).name

    def objective(self, step: Step) -> Tensor:
        return self.recipe(step.epoch).objective(step)
