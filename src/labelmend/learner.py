"""A network with its optimiser and its average, and what goes into its last layer. Imports nothing of ours."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


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


VIEWS = (1, 2, 6)
"""How many views of an image may be predicted as one."""


def predicted(network: Callable[[Tensor], Tensor], inputs: Tensor, *, views: int) -> Tensor:
    """Class probabilities, [n, C]: the mean over so many views of each image; of anything else there is one view."""
    total = network(inputs).float().softmax(dim=1)
    for view in islice(other_views(inputs), views - 1):
        total = total + network(view).float().softmax(dim=1)
    return total / views


def other_views(images: Tensor) -> Iterator[Tensor]:
    """The mirror image of images [n, channels, height, width]; then both moved a pixel up and left, and down and right.

    >>> [view.tolist() for view in islice(other_views(torch.arange(4.0).view(1, 1, 2, 2)), 2)]
    [[[[[1.0, 0.0], [3.0, 2.0]]]], [[[[3.0, 2.0], [1.0, 0.0]]]]]
    """
    height, width = images.shape[2:]
    yield images.flip(3)
    wider = F.pad(images, (1, 1, 1, 1), mode="reflect")
    for moved in (wider[..., :height, :width], wider[..., 2:, 2:]):
        yield moved
        yield moved.flip(3)


def shrunk(images: Tensor, scale: float) -> Tensor:
    """Images [n, channels, height, width] at this share of their height and width, smoothed so that nothing flickers.

    >>> shrunk(torch.ones(2, 3, 32, 24), 0.75).shape
    torch.Size([2, 3, 24, 18])
    """
    sides = [max(1, round(side * scale)) for side in images.shape[2:]]
    smooth = images.device.type != "mps"  # not there before torch 2.7
    return F.interpolate(images, size=sides, mode="bilinear", align_corners=False, antialias=smooth)


class AveragedWeights:
    """An exponential average of a network's weights over the steps of training, as a network that predicts.

    After step t the weights count `1 - min(decay, t / (t + 10))`, so that the start is soon forgotten. Running
    statistics of normalisation layers are averaged in the same way; whole numbers are copied.

    >>> network = nn.Linear(1, 1)
    >>> average = AveragedWeights(network, decay=0.5)
    >>> _ = nn.init.constant_(network.weight, average.network.weight.item() + 2.0)
    >>> before = average.network.weight.item()
    >>> average.update(network)
    >>> round((average.network.weight.item() - before) / 2, 3)
    0.909
    """

    SETTLING = 10

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.network = copy.deepcopy(network).eval().requires_grad_(False)
        self.decay = decay
        self.updates = 0

    @torch.no_grad()
    def update(self, network: nn.Module) -> None:
        """Take one step of training into the average."""
        self.updates += 1
        share = 1 - min(self.decay, self.updates / (self.updates + self.SETTLING))
        pairs = list(zip(self._values(self.network), self._values(network), strict=True))
        smooth = [(mean, now) for mean, now in pairs if mean.is_floating_point()]
        torch._foreach_lerp_([mean for mean, _ in smooth], [now for _, now in smooth], share)
        for mean, now in pairs:
            if not mean.is_floating_point():
                mean.copy_(now)

    def restart(self, network: nn.Module) -> None:
        """Forget the average; it starts anew from this network."""
        self.network.load_state_dict(network.state_dict())
        self.updates = 0

    @staticmethod
    def _values(network: nn.Module) -> list[Tensor]:
        return [*(parameter.data for parameter in network.parameters()), *network.buffers()]


class Learner:
    """A network with its optimiser: predicts when called, and learns by `descend`.

    `trained` is the network as it is called in training where that is another object, such as one that shares its
    gradients with other processes. `fresh` builds the network again as it was before its first step. With `average`,
    the decay of an average of the weights, that average predicts in evaluation: it is what is tracked, guessed by and
    tested, whatever the method. A `scale` below 1 shows smaller images to the network. A network that does not learn by
    gradients has `fit`: it takes all inputs, their targets [n, C] and a generator, and replaces what was learned
    before.
    """

    def __init__(
        self,
        network: nn.Module,
        optimiser: torch.optim.Optimizer,
        *,
        backward: Callable[[Tensor], None] = torch.Tensor.backward,
        trained: nn.Module | None = None,
        fresh: Callable[[], nn.Module] | None = None,
        average: float | None = None,
        fit: Callable[[Tensor, Tensor, torch.Generator], None] | None = None,
    ) -> None:
        self.network = network
        self.fit = fit
        self.fresh = fresh
        self.optimiser = optimiser
        self.backward = backward
        self.trained = network if trained is None else trained
        self.average = None if average is None else AveragedWeights(network, average)
        self.base_rates = [float(group["lr"]) for group in optimiser.param_groups]
        self.compiled: Callable[[Tensor], Tensor] | None = None
        self.compiled_size = 0
        self.watched = False
        self.scale = 1.0

    def __call__(self, inputs: Tensor) -> Tensor:
        forward: Callable[[Tensor], Tensor] = self.trained if self.network.training else self.evaluated
        if self.scale < 1:
            return forward(self.shown(inputs))
        fits = self.network.training and not self.watched and len(inputs) == self.compiled_size
        if self.compiled is not None and fits:
            forward = self.compiled
        return forward(inputs)

    def shown(self, inputs: Tensor) -> Tensor:
        """Inputs as the network is shown them now: images may be made smaller."""
        return shrunk(inputs, self.scale) if self.scale < 1 else inputs

    def averaged(self, images: Tensor, *, views: int) -> Tensor:
        """Logarithms of what is predicted for so many views of each image together, [n, C]."""
        probabilities = predicted(self, images, views=views)
        return probabilities.clamp_min(torch.finfo(probabilities.dtype).tiny).log()

    def compile_for(self, size: int, forward: Callable[[Tensor], Tensor]) -> None:
        """Train on batches of this size by a compiled pass; each other shape or mode would be compiled by itself."""
        self.compiled, self.compiled_size = forward, size

    def descend(self, loss: Tensor) -> None:
        """One optimisation step down the gradient of the loss."""
        self.optimiser.zero_grad(set_to_none=True)
        self.backward(loss)
        self.optimiser.step()
        if self.average is not None:
            self.average.update(self.network)

    def reset(self) -> None:
        """Forget everything learned: the weights from before the first step, and no momentum."""
        if self.fresh is None:
            raise TypeError("this learner has no `fresh` function to build its network again")
        self.network.load_state_dict(self.fresh().state_dict())
        self.optimiser.state.clear()
        if self.average is not None:
            self.average.restart(self.network)

    @property
    def evaluated(self) -> nn.Module:
        """The network that predicts in evaluation: the averaged one where there is one."""
        return self.network if self.average is None else self.average.network

    @property
    def head(self) -> nn.Linear:
        """The last linear layer of the network that would predict now."""
        return head_of(self.network if self.network.training else self.evaluated)

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
        """Set the learning rates to this multiple of those that the run started with."""
        for group, base in zip(self.optimiser.param_groups, self.base_rates, strict=True):
            group["lr"] = base * factor

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
