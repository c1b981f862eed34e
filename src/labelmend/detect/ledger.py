"""What tracking passes recorded of every sample, in constant memory."""

from collections.abc import Mapping
from copy import copy
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..core import LEAST_BELIEF

UNRIPE = 0.2
"""Share of a run whose passes do not count in the running means: the network has not learned enough yet."""
FADE = 0.8
"""What a pass leaves of the weight of the passes before it, where recent passes count more."""
MOST_MEAN_PROBS = 1 << 27
"""Samples times classes, of 4 bytes each, up to which mean probabilities are kept for the judge."""


class Ledger:
    """What the tracking passes recorded for each training sample, in the order of the data set.

    Of the last pass: `losses` and, where a method asks for them, `features`, the input of the network's last layer.

    Means over the passes that count, which are those after the first fifth of the run. A sample may be missing from a
    pass: each mean is over the passes in which the sample was recorded, and `counts` are how many these are. Where
    records have weights, `weights` are the sums of them, and the means are weighted.

    - `margins`: log-odds against the given label, log (1 - p) - log p;
    - `rival_log_odds`: log p(rival) - log p(given), where a sample's rival is its most probable other class;
    - `disagreement_rate`: share of passes in which the rival was more probable than the given label;
    - `mean_probs`: the probability of every class, where it is kept;
    - `rivals`: the class that was the rival most steadily, and `rival_vote`, how steadily, from 0 to 1.

    Over all passes, older ones fading: `guesses`, the class that each sample was taken for, and, where a method asks
    for them, `mean_log_probs`, the mean logarithms of all class probabilities.
    """

    def __init__(self, samples: int, *, device: torch.device | str = "cpu") -> None:
        self.losses = torch.zeros(samples, device=device)
        self.margins = torch.zeros(samples, device=device)
        self.rival_log_odds = torch.zeros(samples, device=device)
        self.disagreement_rate = torch.zeros(samples, device=device)
        self.rivals = torch.zeros(samples, dtype=torch.int32, device=device)
        self.rival_vote = torch.zeros(samples, device=device)
        self.guesses = torch.zeros(samples, dtype=torch.int32, device=device)
        self.certainties = torch.zeros(samples, device=device)
        self.counts = torch.zeros(samples, dtype=torch.int32, device=device)
        self.weights: Tensor | None = None
        self.mean_probs: Tensor | None = None
        self.mean_log_probs: Tensor | None = None
        self.features: Tensor | None = None
        self.newest = 0.0
        self.passes = 0
        self.ripe = False

    def keep_weights(self) -> None:
        """Keep how much was recorded of each sample, where not every record counts alike."""
        self.weights = torch.zeros_like(self.losses)

    def keep_mean_probs(self, classes: int, *, newest: float = 0.0) -> None:
        """Keep the mean probability of every class over the passes that count, unless that takes more than 512 MiB.

        `newest` is the least share of the newest pass in the mean, where later passes are better than earlier ones.
        """
        self.newest = newest
        if len(self.losses) * classes <= MOST_MEAN_PROBS:
            self.mean_probs = self.losses.new_zeros(len(self.losses), classes)

    def keep_mean_log_probs(self, classes: int) -> None:
        """Keep what is predicted for every class, not only for the best one: 2 bytes a sample and class."""
        self.mean_log_probs = self.losses.new_zeros(len(self.losses), classes, dtype=torch.float16)

    def keep_features(self, width: int) -> None:
        """Keep what the network makes of each sample before its last layer: 2 bytes a sample and feature."""
        self.features = self.losses.new_zeros(len(self.losses), width, dtype=torch.float16)

    def recorded(self) -> dict[str, Tensor]:
        """Everything that is kept of the samples, by name."""
        kept = vars(self)
        return {name: values for name, values in kept.items() if isinstance(values, Tensor)}

    def to(self, device: torch.device | str) -> Self:
        """The same ledger, with everything that it keeps on the device."""
        for name, values in self.recorded().items():
            setattr(self, name, values.to(device))
        return self

    def take(self, rows: Tensor) -> Self:
        """A ledger of these samples only."""
        taken = copy(self)
        for name, values in self.recorded().items():
            setattr(taken, name, values[rows])
        return taken

    def state_dict(self) -> dict[str, Any]:
        """Everything that a checkpoint needs."""
        return self.recorded() | {"passes": self.passes, "ripe": self.ripe}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.passes, self.ripe = state["passes"], state["ripe"]
        # A checkpoint of version 0.1 has no counts: every pass recorded every sample.
        known = {"counts": torch.full_like(self.counts, self.passes)} | dict(state)
        for name, values in self.recorded().items():
            values.copy_(known[name])

    def restart(self) -> None:
        """Forget the means so far; the next pass is the first that counts."""
        self.passes = 0
        self.counts.zero_()
        if self.weights is not None:
            self.weights.zero_()

    def open_pass(self, progress: float = 1.0) -> None:
        """Another pass over the samples begins, when this share of the run's epochs is finished."""
        if progress > UNRIPE and not self.ripe:
            self.ripe = True
            self.restart()
        self.passes += 1

    def write(
        self,
        index: Tensor,
        labels: Tensor,
        logits: Tensor,
        features: Tensor | None = None,
        *,
        weight: Tensor | None = None,
    ) -> None:
        """Record one batch of the pass that is open: positions [n], given labels [n] and logits [n, C].

        Where weights are kept, `weight`, a scalar above 0, is that of these records in the means.
        """
        # Several networks may predict a sample in one pass, each in place of the one before: that is one pass still.
        count = (self.counts.index_select(0, index) + 1).clamp(max=self.passes)
        self.counts.index_copy_(0, index, count)
        if self.weights is not None and weight is not None:
            total = self.weights.index_select(0, index) + weight
            self.weights.index_copy_(0, index, total)
            count = total / weight
        if self.features is not None and features is not None:
            self.features[index] = features.half()
        probabilities = logits.softmax(dim=1)
        self.losses.index_copy_(0, index, F.cross_entropy(logits, labels, reduction="none"))
        given = probabilities.gather(1, labels[:, None])[:, 0]
        best = probabilities.scatter(1, labels[:, None], 0.0).max(dim=1)
        against, rival, own = ((p + LEAST_BELIEF).log() for p in (1 - given, best.values, given))
        _average(self.margins, index, against - own, count)
        _average(self.rival_log_odds, index, rival - own, count)
        _average(self.disagreement_rate, index, (best.values > given).float(), count)
        share = (best.values / (1 - given).clamp_min(LEAST_BELIEF)).clamp(max=1.0)
        _vote(self.rivals, self.rival_vote, index, best.indices, share / count, fade=(count - 1) / count)
        top = torch.maximum(given, best.values)
        guess = torch.where(best.values > given, best.indices, labels)
        _vote(self.guesses, self.certainties, index, guess, top, fade=FADE)
        if self.mean_probs is not None:
            counted = count.clamp(max=1 / self.newest) if self.newest else count
            _average(self.mean_probs, index, probabilities, counted[:, None])
        if self.mean_log_probs is not None:
            log_probs, before = logits.log_softmax(dim=1).half(), self.mean_log_probs[index]
            weight = (1 / count).clamp_min(1 - FADE)[:, None]
            self.mean_log_probs[index] = before.float().lerp(log_probs.float(), weight).half()


def _average(means: Tensor, index: Tensor, values: Tensor, count: Tensor) -> None:
    """Take the values into the means of their samples, of which they are the count-th."""
    before = means.index_select(0, index)
    means.index_copy_(0, index, before + (values - before) / count)


def _vote(
    leaders: Tensor, leads: Tensor, index: Tensor, votes: Tensor, weight: Tensor, *, fade: float | Tensor
) -> None:
    """Weighted majority over the passes in constant memory: a vote for another class shortens the lead."""
    votes, leader, lead = votes.to(leaders.dtype), leaders.index_select(0, index), leads.index_select(0, index) * fade
    lead = torch.where(votes == leader, lead + weight, lead - weight)
    leaders.index_copy_(0, index, torch.where(lead < 0, votes, leader))
    leads.index_copy_(0, index, lead.abs())
