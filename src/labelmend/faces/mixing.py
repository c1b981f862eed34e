"""Mixup for a loop that records what it predicts: a part of each batch stays as it is."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import Mix, to_device
from ..errors import InputError
from ..parts.mixing import draw_share, mix_along


@dataclass(frozen=True)
class Mixing:
    """Positions of a batch's samples [n], how they were mixed, and the rows of the batch that were not."""

    index: Tensor
    mix: Mix
    unmixed: Tensor

    def to(self, device: torch.device) -> "Mixing":
        """The same on another device."""
        if self.index.device == device:
            return self
        parts = self.index, self.mix.partner, self.mix.input_share, self.mix.target_share, self.unmixed
        index, partner, input_share, target_share, unmixed = (to_device(part, device) for part in parts)
        return Mixing(index, Mix(partner, input_share, target_share), unmixed)


def mixed(
    inputs: Tensor, index: Tensor, counts: Tensor, *, alpha: float, unmixed: float, rng: torch.Generator
) -> tuple[Tensor, Mixing]:
    """Inputs [n, ...] mixed by one share from Beta(alpha, alpha), except for a share of them, `unmixed`.

    Those with the lowest `counts` [n] stay as they are, by chance among equals. Everything but the one share is drawn
    on the device of the inputs.
    """
    if not inputs.is_floating_point():
        raise InputError(
            f"inputs of type {inputs.dtype} cannot be mixed; mix what the network's first layer makes of them"
        )
    if len(index) != len(inputs):
        raise InputError(f"there are {len(inputs):,} inputs, but {len(index):,} indices")
    if not alpha > 0 or not 0 <= unmixed <= 1:
        raise InputError(f"alpha must be above 0 and unmixed from 0 to 1, not {alpha} and {unmixed}")
    share = draw_share(alpha, rng)
    own = torch.Generator(inputs.device).manual_seed(rng.initial_seed())
    chance = torch.rand(len(index), generator=own, device=inputs.device)
    kept = (counts + chance).argsort()[: round(unmixed * len(index))]
    mix = mix_along(chance.argsort(), share, unmixed=kept)
    return mix.inputs(inputs), Mixing(index, mix, kept)
