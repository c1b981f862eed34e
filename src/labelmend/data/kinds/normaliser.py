"""Inputs at a common scale."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Normaliser:
    """Inputs to zero mean and unit variance, per channel or per feature column."""

    mean: Tensor
    std: Tensor

    @classmethod
    def from_moments(cls, mean: Tensor, std: Tensor) -> "Normaliser":
        """A normaliser with these statistics; a constant channel or column is only centred."""
        return cls(mean.float(), torch.where(std > 1e-6, std, torch.ones_like(std)).float())

    def __call__(self, inputs: Tensor) -> Tensor:
        """Normalised float32 inputs; images channels last."""
        shape = (1, -1, 1, 1) if inputs.dim() == 4 else (1, -1)
        scaled = (inputs.float() - self.mean.view(shape)) / self.std.view(shape)
        return scaled.contiguous(memory_format=torch.channels_last) if inputs.dim() == 4 else scaled

    def to(self, device: torch.device | str) -> "Normaliser":
        """The same statistics on a device."""
        return Normaliser(self.mean.to(device), self.std.to(device))
