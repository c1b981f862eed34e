"""A trained model: model.safetensors with the weights, model.json with what they belong to."""

import copy
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from ..core import generator, head_of, inputs_of
from ..data.encode import Progress, encode, with_text_rows
from ..data.feed import sweep_size
from ..data.kinds import Kind, Normaliser
from ..data.kinds.decode import MOST_PIXELS
from ..data.kinds.encoded import Encoded, Encoding
from ..data.kinds.features import Features
from ..data.kinds.images import Images, brought_to
from ..data.kinds.table import Table
from ..data.kinds.text import Text
from ..data.noise import read_json
from ..data.samples import Samples
from ..data.sources import AS_IT_IS, SourceOptions, open_inputs
from ..data.table_encoding import TableEncoding
from ..data.text import TextEncoder
from ..errors import InputError
from ..files import to_json, write_atomic
from ..learner import VIEWS, predicted
from ..nets import build_net, read_weights
from ..nets.backbones import Backbone, find_backbone
from ..nets.sentences import SENTENCES, SentenceEncoder, find_sentence_encoder
from ..nets.small import Linear
from .directory import RunDirectory

TABLE, ENCODER = "table/", "encoder/"
"""Before the names of what the encoding of a table, or a fitted encoder of texts, keeps among the weights."""


@dataclass(frozen=True)
class Model:
    """The trained networks of a run, with the normalisation, the kind of data and the class names that belong to them.

    Made by `labelmend.load(run).model`; predictions are averaged over the networks, and over so many `views` of
    each image.
    """

    networks: Sequence[nn.Module]
    normalise: Normaliser
    kind: Kind
    shape: tuple[int, ...]
    class_names: Sequence[str]
    views: int = 1

    def predict_proba(self, data: Any, *, root: str | Path | None = None) -> NDArray[np.float32]:
        """Class probabilities, [n, C], in the order of `class_names`.

        `data` is an array, a DataFrame, a list of pictures or texts, a folder of images or texts, one such file, or a
        table. Images are brought to the model's size; columns of tables go by their names, and those of an array by
        their positions; columns that the model does not use, and categories that are new to it, give a warning. A model
        of pretrained features computes those of the samples first; rows of such features are taken as they are.
        """
        return self.probabilities(self.inputs(data, root=root))

    def predict(self, data: Any, *, root: str | Path | None = None) -> list[str]:
        """The most probable class of each sample, by name."""
        best = self.predict_proba(data, root=root).argmax(axis=1)
        return [self.class_names[label] for label in best.tolist()]

    def inputs(self, data: Any, *, root: str | Path | None = None) -> Tensor:
        """What the networks take for this data, before normalisation."""
        takes = isinstance(data, Tensor | np.ndarray) and not isinstance(self.kind, Table)
        fits = takes and tuple(data.shape[1:]) == self.shape
        if fits and (len(self.shape) == 1 or data.dtype in (torch.uint8, np.uint8)):
            return torch.tensor(data) if isinstance(data, np.ndarray) else data
        read = self.samples(data, SourceOptions(root=None if root is None else str(root)))
        for note in read.notes:
            warnings.warn(str(note), stacklevel=3)
        assert isinstance(read.inputs, Tensor)
        return read.inputs

    def samples(
        self, data: Any, options: SourceOptions = AS_IT_IS, *, progress: Progress = lambda done, of: None
    ) -> Samples:
        """The data as samples whose inputs are what the networks take; labels are not needed."""
        encoding, encoder = self.encoding, self.encoder()
        if encoding is None or encoder is None:
            return open_inputs(data, self.kind, self.shape, options)
        if not isinstance(encoder, Backbone):
            of = self.kind.of if isinstance(self.kind, Encoded) and self.kind.of is not None else Text()
            read = open_inputs(data, of, (), options)
            if isinstance(encoder, TextEncoder):
                return with_text_rows(read, encoder)
            return encode(read, encoder.to(self.normalise.mean.device), progress=progress)
        kind = Images(flips=encoding.mirrored)
        read = open_inputs(data, kind, encoding.shape, options)
        assert isinstance(read.inputs, Tensor)
        images = replace(read, kind=kind, inputs=brought_to(read.inputs, encoding.shape))
        return encode(images, encoder.to(self.normalise.mean.device), progress=progress)

    @property
    def encoding(self) -> Encoding | None:
        """How the features that the networks take are made; None if they take samples as they are."""
        return self.kind.encoding if isinstance(self.kind, Encoded) else None

    def encoder(self) -> Backbone | SentenceEncoder | TextEncoder | None:
        """What makes these features of samples; None if there is nothing, or they are the user's own."""
        if self.encoding is None or self.encoding.from_file:
            return None
        if isinstance(self.kind, Encoded) and self.kind.fitted is not None:
            return self.kind.fitted
        name = self.encoding.encoder
        found = find_sentence_encoder(name) if name.startswith(SENTENCES) else find_backbone(name)
        if found.identity != self.encoding.identity:
            raise InputError(
                f"the model was trained on features of {self.encoding.identity}, but {found.identity} is installed: "
                "the same network with other weights"
            )
        return found

    @torch.no_grad()
    def linear_weights(self) -> Tensor | None:
        """Weights of raw inputs in the logits, [C, columns], the mean of all networks; None if they are not linear."""
        if not all(isinstance(network, Linear) for network in self.networks):
            return None
        device, columns = self.normalise.mean.device, self.shape[0]
        steps, origin = torch.eye(columns, device=device) / self.normalise.std, torch.zeros(1, columns, device=device)
        found = [(network(steps) - network(origin)).T for network in self.networks]
        return torch.stack(found).mean(dim=0).cpu()

    def to(self, device: torch.device) -> "Model":
        """A copy that computes on this device."""
        networks = [copy.deepcopy(network).to(device) for network in self.networks]
        return replace(self, networks=networks, normalise=self.normalise.to(device))

    @torch.no_grad()
    def probabilities(self, inputs: Tensor | NDArray[Any]) -> NDArray[np.float32]:
        """Class probabilities, [n, C]; inputs are raw images, features as in the data set, or encoded rows."""
        parts = [
            torch.stack([predicted(each, batch, views=self.views) for each in self.networks]).mean(dim=0)
            for batch in self._batches(inputs)
        ]
        found: NDArray[np.float32] = torch.cat(parts).cpu().numpy()
        return found

    @torch.no_grad()
    def features(self, inputs: Tensor | NDArray[Any]) -> Tensor:
        """What goes into the first network's last layer, [n, features]."""
        with inputs_of(head_of(self.networks[0])) as seen:
            for batch in self._batches(inputs):
                self.networks[0](batch)
        return torch.cat(seen).cpu()

    def _batches(self, inputs: Tensor | NDArray[Any]) -> Iterator[Tensor]:
        inputs = torch.tensor(inputs) if isinstance(inputs, np.ndarray) else inputs
        if tuple(inputs.shape[1:]) != self.shape:
            raise InputError(f"the model takes samples of shape {self.shape}, not {tuple(inputs.shape[1:])}")
        device = self.normalise.mean.device
        return (self.normalise(chunk.to(device)) for chunk in torch.split(inputs, sweep_size(device)))


def write_model(run: RunDirectory, model: Model, *, net: str, norm_at: str) -> None:
    """Write the weights, and what is needed to build the networks and to prepare their inputs."""
    described, tensors = packed_model(model, net=net, norm_at=norm_at)
    write_atomic(run.model, save_tensors(tensors))
    write_atomic(run.model_json, to_json(described))


def packed_model(model: Model, *, net: str, norm_at: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What JSON can hold of a model, and its tensors by name; `restored_model` takes both."""
    tensors = {
        f"{number}/{name}": tensor.detach().cpu().contiguous()
        for number, network in enumerate(model.networks)
        for name, tensor in network.state_dict().items()
    }
    described = {
        "net": net,
        "networks": len(model.networks),
        "norm_at": norm_at,
        "views": model.views,
        "kind": model.kind.name,
        "shape": list(model.shape),
        "columns": list(model.kind.columns),
        "classes": list(model.class_names),
        "mean": model.normalise.mean.tolist(),
        "std": model.normalise.std.tolist(),
    }
    if isinstance(model.kind, Encoded) and model.kind.encoding is not None:
        of = model.kind.of
        described["features"] = asdict(model.kind.encoding) | {
            "of": None if of is None else of.name,
            "columns": [] if of is None else list(of.columns),
        }
        if model.kind.fitted is not None:
            described["encoder"] = model.kind.fitted.described()
            tensors |= {f"{ENCODER}{name}": tensor for name, tensor in model.kind.fitted.tensors().items()}
    if isinstance(model.kind, Table) and model.kind.encoding is not None:
        described["table"] = model.kind.encoding.described()
        tensors |= {f"{TABLE}{name}": tensor.contiguous() for name, tensor in model.kind.encoding.tensors().items()}
    return described, tensors


def load_model(run: RunDirectory | str | Path) -> Model:
    """The model of a finished run, which may be given by its path; nothing is unpickled."""
    run = run if isinstance(run, RunDirectory) else RunDirectory.existing(Path(run))
    if not run.model.is_file():
        described = run.read()
        if described.get("kind") == "judged":
            raise InputError(f"the run in {run.path} has no model: it judged the predictions of another one")
        raise InputError(f"{run.path} has no model.safetensors; the run is {described.get('status')}")
    try:
        return restored_model(read_json(str(run.model_json)), read_weights(run.model))
    except Exception as error:  # these files may come from anywhere, and break any of this
        reason = str(error).partition("\n")[0]
        raise InputError(f"the model in {run.path} cannot be read: {reason}") from None


def restored_model(described: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Model:
    """The model that `packed_model` gave; ValueError or another error if the parts do not fit each other."""
    shape, classes = [int(size) for size in described["shape"]], [str(name) for name in described["classes"]]
    if described["networks"] < 1 or min(shape) < 1 or math.prod(shape) > MOST_PIXELS:
        raise ValueError(f"{described['networks']} networks for samples of shape {shape}")
    networks = [_network(described, shape, classes, weights, n) for n in range(described["networks"])]
    normalise = Normaliser(*(torch.tensor(described[name]).float() for name in ("mean", "std")))
    if not normalise.mean.shape == normalise.std.shape == (shape[0],):
        raise ValueError("its normalisation does not fit its samples")
    kind = _kind(described, shape, weights)
    return Model(networks, normalise, kind, tuple(shape), classes, _views(described, shape))


def _views(described: Mapping[str, Any], shape: Sequence[int]) -> int:
    """How many views of each image are predicted; version 0.1 did not write it down."""
    views = described.get("views", 1)
    if views not in VIEWS or (views > 1 and (len(shape) != 3 or min(shape[1:]) < 2)):
        raise ValueError(f"{views} views of samples of shape {shape}")
    return int(views)


def _kind(described: Mapping[str, Any], shape: Sequence[int], weights: Mapping[str, Tensor]) -> Kind:
    """The kind of data that the model takes; version 0.1 did not write it down, nor the names of columns."""
    if len(shape) == 3:
        return Images()
    if "features" in described:
        about = described["features"]
        sides = tuple(int(side) for side in about["shape"])
        if sides and (len(sides) != 3 or min(sides) < 1 or math.prod(sides) > MOST_PIXELS):
            raise ValueError(f"features of samples of shape {sides}")
        mirrored = bool(about["mirrored"])
        made_by = Encoding(str(about["encoder"]), str(about["identity"]), sides, mirrored)
        if about.get("of") != Text.name:
            return Encoded(of=Images(flips=mirrored), encoding=made_by)
        of = Text(tuple(str(name) for name in about.get("columns", ())))
        return Encoded(of=of, encoding=made_by, fitted=_fitted(described, shape, weights))
    if "table" in described:
        own = {name.removeprefix(TABLE): tensor for name, tensor in weights.items() if name.startswith(TABLE)}
        encoding = TableEncoding.restored(described["table"], own)
        if encoding.width != shape[0]:
            raise ValueError(f"its table makes {encoding.width} columns for samples of shape {shape}")
        return Table.encoded_by(encoding)
    columns = [str(name) for name in described.get("columns", ())]
    if columns and len(columns) != shape[0]:
        raise ValueError(f"{len(columns)} columns for samples of shape {shape}")
    return Features(columns)


def _fitted(described: Mapping[str, Any], shape: Sequence[int], weights: Mapping[str, Tensor]) -> TextEncoder | None:
    """The encoder that was fitted to the texts of the run, if the model has one."""
    if "encoder" not in described:
        return None
    own = {name.removeprefix(ENCODER): value for name, value in weights.items() if name.startswith(ENCODER)}
    found = TextEncoder.restored(described["encoder"], own)
    if found.width != shape[0]:
        raise ValueError(f"its encoder gives {found.width} columns for samples of shape {shape}")
    return found


def _network(
    described: Mapping[str, Any],
    shape: Sequence[int],
    classes: Sequence[str],
    weights: Mapping[str, Tensor],
    number: int,
) -> nn.Module:
    """A network with its weights; one that the weights do not fit takes no memory, whatever size it claims."""
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
