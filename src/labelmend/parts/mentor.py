"""The network that says, from how a sample's loss has gone, how much the sample should count."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

STAGES = 100
"""Stages of a training that are told apart: percentages."""


class Mentor(nn.Module):
    """MentorNet (Jiang et al. 2018, Section 3.2 and Figure 1): two embeddings and a recurrent net, then two layers.

    The recurrent net reads [n, visits, 2]: at each of a sample's latest visits its loss, and how far that was above the
    moving percentile of all losses. Progress starts without a meaning, so that a stage not met yet says nothing.
    """

    def __init__(
        self, classes: int, rng: torch.Generator, *, recurrent: int = 4, label_width: int = 2, progress_width: int = 5
    ) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(rng.get_state())
            self.label = nn.Embedding(classes, label_width)
            self.progress = nn.Embedding(STAGES, progress_width)
            self.recurrent = nn.LSTM(2, recurrent, batch_first=True, bidirectional=True)
            self.hidden = nn.Linear(2 * recurrent + label_width + progress_width, 20)
            self.verdict = nn.Linear(20, 1)
        nn.init.zeros_(self.progress.weight)

    def forward(self, history: Tensor, labels: Tensor, progress: Tensor) -> Tensor:
        """Log-odds that each label is right; `progress`, a single percentage, is that of all samples."""
        _, (last, _) = self.recurrent(history)
        features = [*last, self.label(labels), self.progress(progress).expand(len(labels), -1)]
        scores: Tensor = self.verdict(torch.tanh(self.hidden(torch.cat(features, dim=1))))
        return scores[:, 0]

    @torch.no_grad()
    def weigh(self, history: Tensor, labels: Tensor, progress: Tensor) -> Tensor:
        """The samples' weights, between 0 and 1: sigmoid of the log-odds."""
        return self.forward(history, labels, progress).sigmoid()

    def fit(self, history: Tensor, labels: Tensor, progress: Tensor, right: Tensor, *, steps: int = 100) -> None:
        """Learn from samples of which it is known whether their label is right, on from what was learned before."""
        optimiser = torch.optim.Adam(self.parameters(), lr=0.01)
        for _ in range(steps):
            optimiser.zero_grad()
            F.binary_cross_entropy_with_logits(self(history, labels, progress), right.float()).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
