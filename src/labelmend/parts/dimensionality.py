"""How many dimensions the features of a batch fill around each sample."""

import torch
from torch import Tensor


def local_dimension(features: Tensor, neighbours: int = 20) -> Tensor:
    """Local intrinsic dimensionality of each row among the others, [n] (Ma et al. 2018, Amsaleg et al. 2015).

    The maximum-likelihood estimate -1 / mean(log(r_i / r_k)) from the distances r to the k nearest rows; a batch of n
    has at most n - 1. Where the distances are all alike they say nothing, and the estimate is 0. It is too high by the
    factor k / (k - 2) where density is even, and too low where neighbourhoods reach past the edge of the data.
    """
    apart = torch.cdist(features.float(), features.float(), compute_mode="donot_use_mm_for_euclid_dist")
    apart.fill_diagonal_(float("inf"))
    nearest = apart.topk(min(neighbours, len(features) - 1), largest=False).values.clamp_min(1e-12)
    spread = (nearest[:, -1:] / nearest).log().mean(dim=1)
    return torch.where(spread > 1e-6, 1 / spread, 0.0)
