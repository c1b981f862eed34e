"""A network with its optimiser, and what goes into its last layer. Imports nothing of ours."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


def head_of(network: nn.Module) -> nn.Linear:
    """A network's last linear layer."""
    return [module for module in network.modules() if isinstance(module, nn.Linear)][-1]


@contextmanager
def inputs_of(layer: nn.Module) -> Iterator[list[Tensor]]:
    """What goes into a layer, for every pass that is made inside."""
    seen: list[Tensor] = []
    hook = layer.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    try:
        yield seen
    finally:
        hook.remove()


class Learner:
    """A network with its optimiser: predicts when called, and learns by `descend`.

    `trained` is the network as it is called in training where that is another object, such as one that shares its
    gradients with other processes. `fresh` builds the network again as it was before its first step.
    """

    def __init__(
        self,
        network: nn.Module,
        optimiser: torch.optim.Optimizer,
        *,
        backward: Callable[[Tensor], None] = torch.Tensor.backward,
        trained: nn.Module | None = None,
        fresh: Callable[[], nn.Module] | None = None,
    ) -> None:
        self.network = network
        self.fresh = fresh
        self.optimiser = optimiser
        self.backward = backward
        self.trained = network if trained is None else trained
        self.base_rates = [float(group["lr"]) for group in optimiser.param_groups]
        self.compiled: Callable[[Tensor], Tensor] | None = None
        self.compiled_size = 0
        self.watched = False

    def __call__(self, inputs: Tensor) -> Tensor:
        forward: Callable[[Tensor], Tensor] = self.trained if self.network.training else self.network
        fits = self.network.training and not self.watched and len(inputs) == self.compiled_size
        if self.compiled is not None and fits:
            forward = self.compiled
        return forward(inputs)

    def compile_for(self, size: int, forward: Callable[[Tensor], Tensor]) -> None:
        """Train on batches of this size by a compiled pass; each other shape or mode would be compiled by itself."""
        self.compiled, self.compiled_size = forward, size

    def descend(self, loss: Tensor) -> None:
        """One optimisation step down the gradient of the loss."""
        self.optimiser.zero_grad(set_to_none=True)
        self.backward(loss)
        self.optimiser.step()

    def reset(self) -> None:
        """Forget everything learned: the weights from before the first step, and no momentum."""
        if self.fresh is None:
            raise TypeError("this learner has no `fresh` function to build its network again")
        self.network.load_state_dict(self.fresh().state_dict())
        self.optimiser.state.clear()

    @property
    def head(self) -> nn.Linear:
        """The network's last linear layer."""
        return head_of(self.network)

    @contextmanager
    def features(self) -> Iterator[list[Tensor]]:
        """What goes into the last layer, [n, features] with its gradients, for every pass that is made inside."""
        was_watched, self.watched = self.watched, True
        try:
            with inputs_of(self.head) as seen:
                yield seen
        finally:
            self.watched = was_watched

    def set_rate(self, factor: float) -> None:
        """Set each learning rate to this multiple of the one that its weights started with."""
        for group, rate in zip(self.optimiser.param_groups, self.base_rates, strict=True):
            group["lr"] = rate * factor

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """The network in evaluation mode and without gradients, put back as it was afterwards."""
        was_training = self.network.training
        self.network.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.network.train(was_training)
