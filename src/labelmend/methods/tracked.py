"""What every method here has: a noise model that watches, and the timeline that its learning rate follows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..core import Method, NoiseEstimate, Task
from ..detect.ledger import Ledger
from .noise_tracker import NoiseTracker


@dataclass(frozen=True)
class TrackedOptions:
    """What can be changed with `--set` in every method that does not go by what tracking passes find."""

    track_every: int = field(default=5, metadata={"help": "epochs between two tracking passes", "least": 1})


class TrackedMethod(Method):
    """A method that is watched by a noise model: to be one, say how a batch is learned.

    A tracking pass follows every `track_every` epochs, and comes more than once in each if that is under 1. The last
    one before an epoch of `needs_fresh` comes right before it.
    """

    def __init__(
        self,
        rate: Callable[[int], float],
        *,
        noise_tracker: NoiseTracker | None = None,
        track_every: float = 1,
        needs_fresh: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self.noise_tracker = noise_tracker or NoiseTracker.usual()
        self.timeline = rate
        self.track_every = track_every
        self.needs_fresh = frozenset(needs_fresh)
        self.classes = 0

    def begin(self, task: Task, ledgers: Sequence[Ledger] = ()) -> None:
        """Once, before the first epoch."""
        self.classes = task.classes
        self.noise_tracker.begin(task, ledgers)

    def rate(self, epoch: int) -> float:
        """Learning rate by the timeline."""
        return self.timeline(epoch)

    def tracks(self, epoch: int) -> bool:
        """Every so many epochs, and before an epoch that goes by what was tracked."""
        return self.track_every < 1 or epoch % self.track_every == 0 or epoch + 1 in self.needs_fresh

    def tracks_before(self, step: int, steps: int) -> bool:
        """At equal distances inside an epoch, as many as fit."""
        parts = int(1 / self.track_every)
        return step in {part * steps // parts for part in range(1, parts)} - {0}

    def after_tracking(self, ledgers: Sequence[Ledger], epoch: int) -> None:
        """Refit the noise model."""
        self.noise_tracker.update(ledgers)

    def estimate(self) -> NoiseEstimate:
        """What the noise model says."""
        return self.noise_tracker.estimate()
