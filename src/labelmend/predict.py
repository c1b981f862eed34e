"""Use a trained model."""

import json
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from .core import generator
from .data.feed import Normaliser, sweep_size
from .engine.run_dir import RunDirectory
from .errors import InputError
from .nets import build_net


@dataclass(frozen=True)
class Model:
    """The trained networks of a run, with the normalisation and the class names that belong to them."""

    networks: list[nn.Module]
    normalise: Normaliser
    shape: tuple[int, ...]
    class_names: list[str]

    @torch.no_grad()
    def probabilities(self, inputs: Tensor) -> NDArray[np.float32]:
        """Class probabilities, [n, C]; inputs are raw images or features as in the data set."""
        if tuple(inputs.shape[1:]) != self.shape:
            raise InputError(f"the model takes samples of shape {self.shape}, not {tuple(inputs.shape[1:])}")
        parts = []
        for chunk in torch.split(inputs, sweep_size(inputs.device)):
            batch = self.normalise(chunk)
            parts.append(torch.stack([network(batch).softmax(dim=1) for network in self.networks]).mean(dim=0))
        found: NDArray[np.float32] = torch.cat(parts).numpy()
        return found


def load_model(run: RunDirectory) -> Model:
    """The model of a finished run; nothing is unpickled."""
    if not run.model.is_file():
        raise InputError(f"{run.path} has no model.safetensors; the run is {run.read().get('status')}")
    try:
        described = json.loads(run.model_json.read_bytes())
        weights = load_file(run.model)
        networks = []
        for number in range(described["networks"]):
            network = build_net(
                described["net"],
                described["shape"],
                len(described["classes"]),
                rng=generator(0, "unused"),
                norm_at=described["norm_at"],
            )
            prefix = f"{number}/"
            network.load_state_dict({k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)})
            networks.append(network.eval())
        normalise = Normaliser(torch.tensor(described["mean"]), torch.tensor(described["std"]))
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise InputError(f"the model in {run.path} cannot be read: {error}") from None
    return Model(networks, normalise, tuple(described["shape"]), described["classes"])
