"""labelmend's own learner without files: trained in memory, and kept as plain values and NumPy arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from scipy.sparse import issparse
from torch import Tensor

from ..core import generator
from ..data.kinds.cache import nothing_kept
from ..data.kinds.features import Features
from ..data.kinds.normaliser import Normaliser
from ..data.readers.objects import from_objects
from ..data.samples import Inputs
from ..data.text import COLUMNS, strongest_directions
from ..detect.judge import Judgement
from ..detect.predictions import Floats, Ints
from ..errors import InputError, lookup
from ..run.model import Model, packed_model, restored_model
from ..training.assemble import norm_at
from ..training.config import TrainConfig
from ..training.observer import Observer
from ..training.prepare import Prepared, column_wishes, prepare
from ..training.session import Trained, train_in_memory

ROWS, FRAME, TEXTS, IMAGES = "rows of numbers", "a DataFrame", "texts", "images"
OPTIONS = (
    "method",
    "image_column",
    "columns",
    "drop_columns",
    "category",
    "text_column",
    "size",
    "memory",
    "workers",
    "init",
    "features",
    "unfreeze",
    "device",
    "threads",
    "settings",
)
"""Options of `TrainConfig` that make sense for data in memory, beside those that are parameters of the estimator."""
PREDICTED_AT_ONCE = 10_000


@dataclass(frozen=True)
class Reduced(Features):
    """Columns that a decomposition made of many sparse ones; their relative scales mean something, as of texts."""

    def normaliser(self, inputs: Inputs) -> Normaliser:
        """The mean of each column, and one standard deviation for all."""
        assert isinstance(inputs, Tensor)
        variance, mean = torch.var_mean(inputs.double(), dim=0, correction=0)
        return Normaliser.from_moments(mean, variance.mean().sqrt().expand_as(mean))


class PackedModel:
    """A trained model as plain values and NumPy arrays, so that what stores it stores no class of PyTorch.

    `reduction` [columns, wide columns] makes the rows that the model takes of wider ones; None leaves them as they are.
    """

    def __init__(
        self, described: dict[str, Any], weights: dict[str, NDArray[Any]], reduction: NDArray[np.float32] | None
    ) -> None:
        self.described, self.weights, self.reduction = described, weights, reduction

    @classmethod
    def of(cls, trained: Trained, prepared: Prepared, reduction: NDArray[np.float32] | None) -> "PackedModel":
        """The model of a finished run."""
        net, place = prepared.choices.net, norm_at(prepared.options)
        described, tensors = packed_model(trained.model, net=net, norm_at=place)
        return cls(described, {name: tensor.numpy().copy() for name, tensor in tensors.items()}, reduction)

    def __getstate__(self) -> dict[str, Any]:
        return {"described": self.described, "weights": self.weights, "reduction": self.reduction}

    @cached_property
    def model(self) -> Model:
        """The model itself, made when it is first needed."""
        model = restored_model(self.described, {name: torch.tensor(value) for name, value in self.weights.items()})
        if len(model.shape) == 1:
            for network in model.networks:
                network.double()
        return model

    @torch.no_grad()
    def predict_proba(self, data: Any) -> Floats:
        """Probabilities [n, C].

        Those of rows are computed in double precision: in single precision the last digits depend on which other rows
        are predicted at the same time.
        """
        with nothing_kept():
            inputs = self.model.inputs(reduced(data, self.reduction))
        if len(self.model.shape) != 1:
            return self.model.probabilities(inputs).astype(np.float64)
        found = []
        for rows in torch.split(self.model.normalise(inputs).double(), PREDICTED_AT_ONCE):
            found.append(torch.stack([network(rows).softmax(dim=1) for network in self.model.networks]).mean(dim=0))
        every: Floats = torch.cat(found).numpy()
        return every


def own_config(options: Mapping[str, Any], **chosen: Any) -> TrainConfig:
    """The configuration of a run that is kept in memory."""
    for name in options:
        lookup("option of LabelMendClassifier", name, dict.fromkeys(OPTIONS))
    return TrainConfig(source="", out="", **chosen, **options)


def kind_of(data: Any) -> str:
    """What the samples are: rows of numbers, a DataFrame, texts or images."""
    if hasattr(data, "columns"):
        return FRAME
    if getattr(data, "ndim", 1) > 1 and not isinstance(data, list | tuple):
        return IMAGES if data.ndim > 2 else ROWS
    values = data if isinstance(data, list | tuple) else np.asarray(data).tolist() if hasattr(data, "__array__") else []
    first = next((value for value in values if not isinstance(value, float | None) and _name(value) != "NAType"), None)
    if isinstance(first, str):
        return TEXTS
    return IMAGES if isinstance(first, Image.Image) or getattr(first, "ndim", 0) > 1 else ROWS


def _name(value: Any) -> str:
    return type(value).__name__


def check_finite(rows: Any) -> None:
    """Refuse rows of numbers with gaps, and name the first."""
    values = rows.data if issparse(rows) else rows
    if np.isfinite(values).all():
        return
    where = "" if issparse(rows) else f", first in row {int((~np.isfinite(rows)).any(axis=1).argmax())}"
    what = "NaN" if np.isnan(values).any() else "inf"
    raise InputError(
        f"X contains {what}{where}; give a DataFrame, whose gaps are filled and marked, or fill them yourself"
    )


def fit_own(data: Any, labels: Ints, config: TrainConfig, *, verbose: bool) -> tuple[Judgement, PackedModel]:
    """The judgement of labels by a run on this data, and the model; classes are named by their positions."""
    reduction = None
    if issparse(data) and data.shape[1] > COLUMNS:
        reduction = strongest_directions(data, generator(config.seed, "sparse columns")).float().numpy()
    samples = from_objects(
        reduced(data, reduction), labels, image=config.image_column, name="X", wishes=column_wishes(config)
    )
    if reduction is not None:
        samples = replace(samples, kind=Reduced())
    with nothing_kept():
        prepared = prepare(config, data=samples)
    trained = _shown(prepared) if verbose else train_in_memory(prepared)
    return trained.judgement, PackedModel.of(trained, prepared, reduction)


def reduced(data: Any, reduction: NDArray[np.float32] | None) -> Any:
    """Rows as a model takes them: reduced where there is a reduction, and sparse ones dense; other data as it is."""
    if reduction is None:
        return data.toarray() if issparse(data) else data
    return np.asarray(data @ reduction.T, dtype=np.float32)


def _shown(prepared: Prepared) -> Trained:
    """A run whose choices and progress are printed to the standard error stream."""
    from rich.console import Console

    from .progress import observed
    from .terminal import show_choices

    console = Console(stderr=True)
    show_choices(prepared, console)
    observer: Observer
    with observed(console, prepared.entry.id, prepared.choices.epochs) as observer:
        return train_in_memory(prepared, observer=observer)
