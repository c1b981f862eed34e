"""What the methods share: a noise model that watches, a published schedule, buffers, and the optimisation step."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..core import Batch, Learner, Method, NoiseEstimate, Step, Task, Trusted
from ..detect.ledger import Ledger
from ..errors import InputError
from .noise_tracker import NoiseTracker
from .timeline import Timeline


class TrackedMethod(Method):
    """A method that a noise model watches. Subclasses implement `objective`, or `objectives` for several networks.

    A tracking pass follows every `track_every` epochs, and comes more than once in each if that is under 1. One more
    comes right before every epoch of `needs_fresh`.
    """

    needs_fresh: Collection[int] = ()
    task: Task

    def __init__(
        self, timeline: Timeline, *, track_every: float = 1, noise_tracker: NoiseTracker | None = None
    ) -> None:
        super().__init__()
        self.timeline = timeline
        self.track_every = track_every
        self.noise_tracker = noise_tracker or NoiseTracker.usual()

    def initial_state(self, task: Task) -> Mapping[str, Tensor]:
        """What the method remembers between steps, as it is before the first one: becomes checkpointed buffers."""
        return {}

    def begin(self, task: Task, ledgers: Sequence[Ledger] = ()) -> None:
        self.task = task
        self.noise_tracker.begin(task, ledgers)
        for name, value in self.initial_state(task).items():
            self.register_buffer(name, value.to(task.labels.device))

    def rate(self, epoch: int) -> float:
        return self.timeline.rate(epoch)

    def objective(self, step: Step) -> Tensor:
        """The loss of one network on a batch, with gradients."""
        raise TypeError(f"{type(self).__name__} must implement objective")

    def objectives(
        self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator
    ) -> Sequence[Tensor]:
        """The loss of each network on a batch, with gradients."""
        return [self.objective(Step(learner, batch, epoch, rng, self.task.classes)) for learner in learners]

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator) -> Tensor:
        objectives = self.objectives(learners, batch, epoch, rng)
        for learner, objective in zip(learners, objectives, strict=True):
            learner.descend(objective)
        return torch.stack([*objectives]).detach().mean()

    def tracks(self, epoch: int) -> bool:
        return self.track_every < 1 or epoch % self.track_every == 0 or epoch + 1 in self.needs_fresh

    def tracks_before(self, step: int, steps: int) -> bool:
        """At equal distances inside an epoch, as many as fit."""
        parts = int(1 / self.track_every)
        return step in {part * steps // parts for part in range(1, parts)} - {0}

    def after_tracking(self, ledgers: Sequence[Ledger], epoch: int) -> None:
        """Refit the noise model."""
        self.noise_tracker.update(ledgers)

    def estimate(self) -> NoiseEstimate:
        return self.noise_tracker.estimate()


def setting(default: Any, help: str, **limits: float) -> Any:
    """A field of a method's options: its default, what it is, and the `least` and `most` that it may be."""
    return field(default=default, metadata={"help": help, **limits})


@dataclass(frozen=True)
class TrackedOptions:
    """What can be changed with `--set` in every method that is not of the paper itself."""

    track_every: int = setting(5, "epochs between two tracking passes", least=1)


class PublishedMethod(TrackedMethod):
    """A method of another paper, with its options and its schedule scaled to the epochs of the run.

    `published` are the schedule's number of epochs, and the epochs after which its learning rate drops to a tenth.
    """

    published: ClassVar[tuple[int, tuple[int, ...]]]
    options: TrackedOptions

    def __init__(self, options: TrackedOptions, epochs: int) -> None:
        super().__init__(Timeline(*self.published, epochs), track_every=options.track_every)
        self.options = options


def require_trusted(task: Task, least: int = 1) -> Trusted:
    """The trusted samples of the task, or an error if there are fewer than `least`."""
    if task.trusted is None or len(task.trusted.index) < least:
        raise InputError(f"this method needs trusted samples, at least {least} of them: give them by --trusted")
    return task.trusted
