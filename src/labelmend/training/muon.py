"""SGD whose steps for convolution filters are orthogonalised, so that every direction of a filter bank moves alike.

Jordan et al. (2024), "Muon: an optimizer for hidden layers in neural networks". It takes fewer epochs than plain SGD to
the same accuracy, which is what short runs need. The norm of each filter bank is held fixed; that changes nothing for
filters whose output is normalised, and makes weight decay unnecessary for them.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

FILTER_MOMENTUM = 0.6
ITERATIONS = 3
QUINTIC = (3.4445, -4.7750, 2.0315)
"""Coefficients of the odd polynomial that, applied again and again, moves all singular values near 1."""
SMALLEST = 1e-7


class Muon(torch.optim.SGD):
    """SGD in which parameters with four axes, which are filters, take orthogonalised steps of size `filter_rate`."""

    def __init__(self, parameters: Iterable[nn.Parameter], *, filter_rate: float, **settings: Any) -> None:
        every = list(parameters)
        filters = [parameter for parameter in every if parameter.dim() == 4]
        others = [parameter for parameter in every if parameter.dim() != 4]
        own: dict[str, Any] = {
            "params": filters,
            "lr": filter_rate,
            "momentum": 0.0,
            "weight_decay": 0.0,
            "nesterov": False,
        }
        rest: dict[str, Any] = {"params": others}
        super().__init__([rest, own], **settings)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Turn the gradients of the filters into orthogonal directions, then step as SGD does."""
        for parameter in self.param_groups[1]["params"]:
            if parameter.grad is None:
                continue
            state = self.state[parameter]
            if "speed" not in state:
                state["speed"] = torch.zeros_like(parameter)
            speed = state["speed"].mul_(FILTER_MOMENTUM).add_(parameter.grad)
            parameter.mul_(len(parameter) ** 0.5 / parameter.norm().clamp_min(SMALLEST))
            parameter.grad = orthogonalised(parameter.grad.add(speed, alpha=FILTER_MOMENTUM))
        result: float | None = super().step(closure)
        return result


def orthogonalised(values: Tensor) -> Tensor:
    """The nearest matrix whose singular values are all about 1, of a tensor whose first axis are the rows.

    Newton-Schulz iteration: a few products of matrices in place of a singular value decomposition.

    >>> rows = orthogonalised(torch.tensor([[3.0, 0.0, 0.0], [0.0, 0.5, 0.0]]))
    >>> bool((torch.linalg.svdvals(rows) - 1).abs().max() < 0.4)
    True
    """
    first, third, fifth = QUINTIC
    matrix = values.flatten(1)
    upright = matrix.shape[0] > matrix.shape[1]
    matrix = matrix.T if upright else matrix
    matrix = matrix / matrix.norm().clamp_min(SMALLEST)
    for _ in range(ITERATIONS):
        products = matrix @ matrix.T
        matrix = first * matrix + (third * products + fifth * products @ products) @ matrix
    result: Tensor = (matrix.T if upright else matrix).reshape(values.shape)
    return result
