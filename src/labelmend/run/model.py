"""model.safetensors and model.json: the trained networks of a run, written and used again."""

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from ..core import generator, head_of, inputs_of
from ..data.feed import Normaliser, sweep_size
from ..data.kinds.decode import MOST_PIXELS
from ..data.noise import read_json
from ..errors import InputError
from ..files import to_json, write_atomic
from ..nets import build_net, read_weights
from .directory import RunDirectory


@dataclass(frozen=True)
class Model:
    """The trained networks of a run with their normalisation and class names."""

    networks: list[nn.Module]
    normalise: Normaliser
    shape: tuple[int, ...]
    class_names: Sequence[str]

    def to(self, device: torch.device) -> "Model":
        """A copy that computes on this device."""
        networks = [copy.deepcopy(network).to(device) for network in self.networks]
        return replace(self, networks=networks, normalise=self.normalise.to(device))

    @torch.no_grad()
    def probabilities(self, inputs: Tensor | NDArray[Any]) -> NDArray[np.float32]:
        """Class probabilities, [n, C], for images or features as they are in the data set, not normalised."""
        parts = [
            torch.stack([network(batch).softmax(dim=1) for network in self.networks]).mean(dim=0)
            for batch in self._batches(inputs)
        ]
        found: NDArray[np.float32] = torch.cat(parts).cpu().numpy()
        return found

    @torch.no_grad()
    def features(self, inputs: Tensor | NDArray[Any]) -> Tensor:
        """The inputs of the first network's last layer, [n, features]."""
        with inputs_of(head_of(self.networks[0])) as seen:
            for batch in self._batches(inputs):
                self.networks[0](batch)
        return torch.cat(seen).cpu()

    def _batches(self, inputs: Tensor | NDArray[Any]) -> Iterator[Tensor]:
        inputs = torch.as_tensor(inputs)
        if tuple(inputs.shape[1:]) != self.shape:
            raise InputError(f"the model takes samples of shape {self.shape}, not {tuple(inputs.shape[1:])}")
        device = self.normalise.mean.device
        return (self.normalise(chunk.to(device)) for chunk in torch.split(inputs, sweep_size(device)))


def write_model(run: RunDirectory, model: Model, *, net: str, norm_at: str) -> None:
    """Write the weights, and what is needed to build the networks and to prepare their inputs."""
    tensors = {
        f"{number}/{name}": tensor.detach().cpu().contiguous()
        for number, network in enumerate(model.networks)
        for name, tensor in network.state_dict().items()
    }
    described = {
        "net": net,
        "networks": len(model.networks),
        "norm_at": norm_at,
        "shape": list(model.shape),
        "classes": list(model.class_names),
        "mean": model.normalise.mean.tolist(),
        "std": model.normalise.std.tolist(),
    }
    write_atomic(run.model, save_tensors(tensors))
    write_atomic(run.model_json, to_json(described))


def load_model(run: RunDirectory | str | PathLike[str]) -> Model:
    """The model of a finished run, given as its folder; nothing is unpickled."""
    run = run if isinstance(run, RunDirectory) else RunDirectory.existing(run)
    if not run.model.is_file():
        raise InputError(f"{run.path} has no model.safetensors; the run is {run.read().get('status')}")
    try:
        described = read_json(str(run.model_json))
        shape, classes = [int(size) for size in described["shape"]], [str(name) for name in described["classes"]]
        if described["networks"] < 1 or min(shape) < 1 or math.prod(shape) > MOST_PIXELS:
            raise ValueError(f"{described['networks']} networks for samples of shape {shape}")
        weights = read_weights(run.model)
        networks = [_network(described, shape, classes, weights, n) for n in range(described["networks"])]
        normalise = Normaliser(*(torch.tensor(described[name]).float() for name in ("mean", "std")))
        if not normalise.mean.shape == normalise.std.shape == (shape[0],):
            raise ValueError("its normalisation does not fit its samples")
    except Exception as error:  # the files may come from anywhere and hold anything
        reason = str(error).partition("\n")[0]
        raise InputError(f"the model in {run.path} cannot be read: {reason}") from None
    return Model(networks, normalise, tuple(shape), classes)


def _network(
    described: dict[str, Any], shape: list[int], classes: list[str], weights: dict[str, Tensor], number: int
) -> nn.Module:
    """A network with its weights, which are compared with its shapes before any memory is taken for it."""
    prefix = f"{number}/"
    own = {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}

    def build() -> nn.Module:
        rng, norm_at = generator(0, "unused"), described["norm_at"]
        return build_net(described["net"], shape, len(classes), rng=rng, norm_at=norm_at)

    with torch.device("meta"):
        wanted = {name: value.shape for name, value in build().state_dict().items()}
    if wanted != {name: value.shape for name, value in own.items()}:
        raise ValueError("its weights do not fit the network that model.json describes")
    network = build()
    network.load_state_dict(own)
    return network.eval()
