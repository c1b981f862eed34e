"""Co-teaching: two networks, each of which learns only from what the other finds easy.

Han, Yao, Yu, Niu, Xu, Hu, Tsang and Sugiyama (2018), Co-teaching: Robust Training of Deep Neural Networks with
Extremely Noisy Labels. Needs two networks and nothing trusted. Departures, each with its reason:

- The original is given the noise rate tau. Here it is what the noise model says or, if that is more, the share of
  samples that both networks take for the same class other than the label. On small data the model alone says 0.3 where
  0.45 are wrong, and what is dropped too little is memorised, after which it says less and less. Their agreement counts
  from the end of the ramp: networks that have learned nothing agree on one class for all.
- For the same reason tau is renewed by a pass after every epoch of the first fifth of the run, when networks follow
  the majority of labels, and held from then on. Until the first pass nothing is dropped.
- SGD at the library's rate in place of Adam, with the original's linear decay from epoch 80 of 200.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..core import Batch, Learner, Method, Task
from ..detect.ledger import Ledger
from .registry import method
from .timeline import Timeline, linear
from .tracked import TrackedMethod, TrackedOptions

EPOCHS, RAMP, SETTLED, DECAY = 200, 10, 40, 80
"""Published epochs: of the run, until the full rate is dropped (T_k), until tau is held, and until the rate falls."""


def agreed(first: Tensor, second: Tensor, labels: Tensor) -> float:
    """Share of samples that both networks take for the same class, which is not the given one."""
    return float(((first == second) & (first != labels)).float().mean())


class CoTeaching(TrackedMethod):
    """Two networks that choose for each other the samples of small loss (Algorithm 1); `noise` is tau."""

    networks = 2

    def __init__(self, timeline: Timeline, *, track_every: int) -> None:
        self.settled = timeline.after(SETTLED)
        decay = linear((timeline.after(DECAY), 1.0), (timeline.epochs + 1, 0.0))
        super().__init__(decay, track_every=track_every)
        self.ramp = timeline.after(RAMP)
        self.noise = 0.0
        self.labels = torch.zeros(0)

    def begin(self, task: Task, ledgers: Sequence[Ledger] = ()) -> None:
        """Once, before the first epoch."""
        super().begin(task, ledgers)
        self.labels = task.labels

    def tracks(self, epoch: int) -> bool:
        """After every epoch until tau is held, and then every so many."""
        return epoch <= self.settled or super().tracks(epoch)

    def after_tracking(self, ledgers: Sequence[Ledger], epoch: int) -> None:
        """Refit the noise model and, in the first fifth of the run, renew tau."""
        super().after_tracking(ledgers, epoch)
        if epoch <= self.settled:
            first, second = (ledger.guesses for ledger in ledgers)
            together = agreed(first, second, self.labels) if epoch >= self.ramp else 0.0
            self.noise = max(self.noise_tracker.estimate().rate, together)

    def kept(self, epoch: int) -> float:
        """R(t) = 1 - min(t / T_k tau, tau): the share of a batch that is learned in this epoch."""
        return 1 - min(epoch / self.ramp, 1.0) * self.noise

    def step(self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator) -> Tensor:
        """Each network descends on the samples whose loss is least for the other one."""
        first, second = (self._losses(learner, batch) for learner in learners)
        count = max(1, int(self.kept(epoch) * len(batch)))
        objectives = [first[_least(second, count)].mean(), second[_least(first, count)].mean()]
        for learner, objective in zip(learners, objectives, strict=True):
            learner.descend(objective)
        return torch.stack(objectives).detach().mean()

    def get_extra_state(self) -> dict[str, Any]:
        """Tau: a plain number, because steps count by it and must not wait for a GPU."""
        return {"noise": self.noise}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take back what `get_extra_state` gave."""
        self.noise = state["noise"]

    @staticmethod
    def _losses(learner: Learner, batch: Batch) -> Tensor:
        return F.cross_entropy(learner(batch.inputs).float(), batch.labels, reduction="none")


def _least(losses: Tensor, count: int) -> Tensor:
    return losses.detach().topk(count, largest=False, sorted=False).indices


@method("co-teaching", "two networks that choose samples of small loss for each other (Han et al. 2018)")
def co_teaching(options: TrackedOptions, epochs: int) -> Method:
    """Co-teaching with an estimated noise rate."""
    return CoTeaching(Timeline(EPOCHS, (), epochs), track_every=options.track_every)
