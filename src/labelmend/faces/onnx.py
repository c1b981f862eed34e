"""The model of a run as an ONNX file, which runs without labelmend and without PyTorch."""

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ..core import generator
from ..errors import InputError
from ..learner import predicted
from ..nets.backbones import Backbone
from ..nets.pretrained import OWN, OWN_SIZE
from ..run.model import Model
from .console import only_errors

NEEDED = ("onnx", "onnxscript", "onnxruntime")
CHECKED_SIZES = (1, 2, 16)
"""Batch sizes at which the file must agree with the model."""
TOLERANCE = 1e-4
"""Largest difference of a probability: both compute in float32, in another order."""


class Encoder(nn.Module):
    """Raw images in, the features of the backbone out, rounded as labelmend keeps them."""

    mean: Tensor
    std: Tensor

    def __init__(self, model: Model) -> None:
        super().__init__()
        backbone, encoding = model.encoder(), model.encoding
        if not isinstance(backbone, Backbone) or encoding is None:
            raise TypeError("this model has no encoder")
        self.body, self.mirrored = backbone.body, encoding.mirrored
        self.register_buffer("mean", torch.tensor(backbone.mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(backbone.std).view(1, -1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Features, [n, width]."""
        views = (images.float().expand(-1, 3, -1, -1) - self.mean) / self.std
        found: Tensor = self.body(views)
        if self.mirrored:
            found = (found + self.body(views.flip(3))) / 2
        return found.half().float()


def takes_images(model: Model) -> bool:
    """Whether the exported file takes images.

    Of pretrained features, they must be those of the backbone that is part of labelmend, of images of its own size.
    """
    encoding = model.encoding
    if encoding is None:
        return len(model.shape) == 3
    return encoding.encoder == OWN and tuple(encoding.shape[1:]) == (OWN_SIZE, OWN_SIZE)


def input_shape(model: Model) -> tuple[int, ...]:
    """Shape of one sample as the exported file takes it."""
    return model.shape if model.encoding is None or not takes_images(model) else model.encoding.shape


class Classifier(nn.Module):
    """Raw samples in, class probabilities out: normalisation, and the mean over the networks."""

    mean: Tensor
    std: Tensor

    def __init__(self, model: Model) -> None:
        super().__init__()
        encoded = model.encoding is not None and takes_images(model)
        self.encoder = Encoder(model) if encoded else nn.Identity()
        self.networks = nn.ModuleList(model.networks)
        self.views = model.views
        shape = (1, -1, 1, 1) if len(model.shape) == 3 else (1, -1)
        self.register_buffer("mean", model.normalise.mean.view(shape))
        self.register_buffer("std", model.normalise.std.view(shape))

    def forward(self, inputs: Tensor) -> Tensor:
        """Probabilities, [n, C]."""
        normalised = (self.encoder(inputs).float() - self.mean) / self.std
        return torch.stack([predicted(each, normalised, views=self.views) for each in self.networks]).mean(dim=0)


class Exported(NamedTuple):
    """An ONNX file, and the largest difference between one of its probabilities and the model's own."""

    content: bytes
    difference: float


def export_onnx(model: Model) -> Exported:
    """The model as an ONNX file that was checked to give the same probabilities."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise InputError(f"an export to onnx needs {', '.join(missing)}: pip install 'labelmend[onnx]'")
    content = _exported(model)
    return Exported(content, _checked(content, model))


def _exported(model: Model) -> bytes:
    with _silent():
        program: Any = torch.onnx.export(
            Classifier(model).eval(),
            (_examples(model, max(CHECKED_SIZES)),),
            dynamo=True,
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            input_names=["inputs"],
            output_names=["probabilities"],
            verbose=False,
        )
    written = program.model_proto
    facts = {"classes": json.dumps(model.class_names), "shape": json.dumps(list(input_shape(model)))}
    for key, value in facts.items():
        written.metadata_props.add(key=key, value=value)
    content: bytes = written.SerializeToString()
    return content


@contextmanager
def _silent() -> Iterator[None]:
    """Leave out what the exporter says about its own future and about torchvision, which nothing here uses."""
    with only_errors("torch.onnx"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _checked(content: bytes, model: Model) -> float:
    """The largest difference of a probability; a file that does not load, or differs too much, is refused."""
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    # Rows are given as the network takes them: a table would be read and encoded first.
    eager = model.predict_proba if takes_images(model) else model.probabilities
    largest = 0.0
    for size in CHECKED_SIZES:
        inputs = _examples(model, size)
        (found,) = session.run(["probabilities"], {"inputs": inputs.numpy()})
        difference = float(np.abs(found - eager(inputs)).max())
        if not difference <= TOLERANCE:
            raise InputError(
                f"the exported model differs from the original by {difference:.2g} in a probability, more than "
                f"{TOLERANCE}; nothing was written"
            )
        largest = max(largest, difference)
    return largest


def _examples(model: Model, size: int) -> Tensor:
    """Random samples of the kind that the model takes: bytes of images, or features near the training data's."""
    rng = generator(0, "onnx", size)
    if takes_images(model):
        return torch.randint(0, 256, (size, *input_shape(model)), generator=rng, dtype=torch.uint8)
    return torch.randn(size, *model.shape, generator=rng) * model.normalise.std + model.normalise.mean
