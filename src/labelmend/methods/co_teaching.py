"""Co-teaching: two networks, each of which learns only from what the other finds easy.

Han, Yao, Yu, Niu, Xu, Hu, Tsang and Sugiyama (2018), Co-teaching: Robust Training of Deep Neural Networks with
Extremely Noisy Labels. Needs two networks and no trusted samples. Departures, each with its reason:

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

from ..core import Batch, Learner
from ..detect.ledger import Ledger
from .registry import method
from .timeline import linear
from .tracked import PublishedMethod, TrackedOptions

RAMP, SETTLED, DECAY = 10, 40, 80
"""Published epochs: until the full rate is dropped (T_k), until tau is held, and until the learning rate falls."""


def agreed(first: Tensor, second: Tensor, labels: Tensor) -> float:
    """Share of samples that both networks take for the same class, which is not the given one."""
    return float(((first == second) & (first != labels)).float().mean())


@method("co-teaching")
class CoTeaching(PublishedMethod):
    """Two networks that choose samples of small loss for each other (Han et al. 2018).

    Two networks that choose for each other the samples of small loss (Algorithm 1); `noise` is tau.

    Tau is a plain number, because steps count by it and must not wait for a GPU.
    """

    published = (200, ())
    networks = 2

    def __init__(self, options: TrackedOptions, epochs: int) -> None:
        super().__init__(options, epochs)
        self.ramp, self.settled = self.timeline.after(RAMP), self.timeline.after(SETTLED)
        self.noise = 0.0

    def rate(self, epoch: int) -> float:
        """Level, and then linearly to zero, which comes after the last epoch."""
        return linear((self.timeline.after(DECAY), 1.0), (self.timeline.epochs + 1, 0.0))(epoch)

    def tracks(self, epoch: int) -> bool:
        return epoch <= self.settled or super().tracks(epoch)

    def after_tracking(self, ledgers: Sequence[Ledger], epoch: int) -> None:
        """Refit the noise model and, in the first fifth of the run, renew tau."""
        super().after_tracking(ledgers, epoch)
        if epoch <= self.settled:
            first, second = (ledger.guesses for ledger in ledgers)
            together = agreed(first, second, self.task.labels) if epoch >= self.ramp else 0.0
            self.noise = max(self.noise_tracker.estimate().rate, together)

    def kept(self, epoch: int) -> float:
        """R(t) = 1 - min(t / T_k tau, tau): the share of a batch that is learned in this epoch."""
        return 1 - min(epoch / self.ramp, 1.0) * self.noise

    def objectives(
        self, learners: Sequence[Learner], batch: Batch, epoch: int, rng: torch.Generator
    ) -> Sequence[Tensor]:
        """For each network the mean loss of the samples whose loss is least for the other one."""
        logits = (learner(batch.inputs).float() for learner in learners)
        first, second = (F.cross_entropy(own, batch.labels, reduction="none") for own in logits)
        count = max(1, int(self.kept(epoch) * len(batch)))
        return [first[_least(second, count)].mean(), second[_least(first, count)].mean()]

    def get_extra_state(self) -> dict[str, Any]:
        return {"noise": self.noise}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.noise = state["noise"]


def _least(losses: Tensor, count: int) -> Tensor:
    return losses.detach().topk(count, largest=False, sorted=False).indices
