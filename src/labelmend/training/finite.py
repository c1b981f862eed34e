"""NaN and infinities stop a run before they get into its files."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

REMEDY = (
    "; the last good checkpoint is kept. Train again with a lower learning rate, for example --set learning_rate=0.01"
)


class NotFiniteError(Exception):
    """Training produced NaN or infinity."""

    def __init__(self, what: str) -> None:
        super().__init__(what + REMEDY)


def check_weights(network: nn.Module, epoch: int) -> None:
    """Refuse weights or statistics that are not finite; one transfer from the device for all of them."""
    named = {name: tensor for name, tensor in network.state_dict().items() if tensor.is_floating_point()}
    if not bool(torch.stack([tensor.isfinite().all() for tensor in named.values()]).all()):
        first = next(name for name, tensor in named.items() if not tensor.isfinite().all())
        raise NotFiniteError(f"after epoch {epoch} the network's {first} is not finite")


def check_losses(losses: Tensor, epoch: int, name: Callable[[int], str]) -> None:
    """Refuse losses that are not finite; `name` gives the id of the first such sample for the message."""
    lost = ~losses.isfinite()
    if bool(lost.any()):
        first = int(lost.nonzero()[0])
        raise NotFiniteError(
            f"after epoch {epoch} the loss of {int(lost.sum()):,} samples is not finite, first of {name(first)}"
        )


def check_tensors(tensors: Mapping[str, Tensor]) -> None:
    """Refuse to save a state that is not finite."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise NotFiniteError(f"{name} is not finite")
