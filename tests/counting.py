"""A network that remembers its passes."""

import torch
from torch import nn


class Counting(nn.Module):
    """Three classes of four features after BatchNorm; of each pass, in which mode and whether with gradients."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 3)
        self.passes = []

    def forward(self, x):
        self.passes.append(("train" if self.training else "eval", torch.is_grad_enabled()))
        return self.head(self.norm(x))

    @property
    def modes(self):
        return sorted(mode for mode, _ in self.passes)
