"""Wrong labels made on purpose. With evaluation, the only place that knows the truth."""

import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError, lookup
from .limits import sized
from .samples import NoisyLabels, Samples

CHUNK_VALUES = 2**24
RATE_SPREAD = 0.1
CIFAR10_MAP = {"truck": "automobile", "bird": "airplane", "deer": "horse", "cat": "dog", "dog": "cat"}
DIGITS_MAP = {"2": "7", "3": "8", "5": "6", "6": "5", "7": "1"}
CIFAR100_SUPERCLASSES = """
beaver dolphin otter seal whale; aquarium_fish flatfish ray shark trout; orchid poppy rose sunflower tulip;
bottle bowl can cup plate; apple mushroom orange pear sweet_pepper; clock keyboard lamp telephone television;
bed chair couch table wardrobe; bee beetle butterfly caterpillar cockroach; bear leopard lion tiger wolf;
bridge castle house road skyscraper; cloud forest mountain plain sea; camel cattle chimpanzee elephant kangaroo;
fox porcupine possum raccoon skunk; crab lobster snail spider worm; baby boy girl man woman;
crocodile dinosaur lizard snake turtle; hamster mouse rabbit shrew squirrel;
maple_tree oak_tree palm_tree pine_tree willow_tree; bicycle bus motorcycle pickup_truck train;
lawn_mower rocket streetcar tank tractor
"""


@dataclass(frozen=True)
class NoiseSpec:
    """A kind of noise, its nominal rate and the file it is read from, as in `symmetric:0.5` or `matrix:FILE`."""

    kind: str
    rate: float
    file: str = ""

    @classmethod
    def parse(cls, text: str) -> "NoiseSpec":
        """Read `kind:rate`, `asymmetric:rate:map.json` or `matrix:FILE`."""
        kind, _, rest = text.partition(":")
        lookup("noise kind", kind, KINDS)
        if kind == "matrix":
            if not rest:
                raise InputError(f"noise {text!r} has no file; write it as matrix:rates.csv")
            return cls(kind, 1 - float(read_matrix(rest).diagonal().mean()), rest)
        rate, colon, file = rest.partition(":")
        if colon and (kind != "asymmetric" or not file):
            raise InputError(f"noise {text!r} has {file!r} after its rate; only asymmetric:0.4:map.json takes a file")
        try:
            value = float(rate)
        except ValueError:
            raise InputError(f"noise {text!r} has no rate; write it as {kind}:0.5") from None
        if not 0 <= value <= 1:
            raise InputError(f"noise rate {rate} is outside 0..1; write half as {kind}:0.5")
        return cls(kind, value, file)

    def __str__(self) -> str:
        rate = [] if self.kind == "matrix" else [str(self.rate).removesuffix(".0")]
        return ":".join([self.kind, *rate, *([self.file] if self.file else [])])


def symmetric(data: Samples, spec: NoiseSpec, rng: torch.Generator) -> Tensor:
    """A share of the labels redrawn from all classes, so that some keep the true one (the paper's first criterion)."""
    chosen = _chosen(data, spec, rng)
    return _place(data.labels.observed, chosen, torch.randint(len(data.class_names), (len(chosen),), generator=rng))


def symmetric_excl(data: Samples, spec: NoiseSpec, rng: torch.Generator) -> Tensor:
    """A share of the labels redrawn from the other classes, so that the rate is the share of wrong labels."""
    labels, classes, chosen = data.labels.observed, len(data.class_names), _chosen(data, spec, rng)
    shift = torch.randint(1, classes, (len(chosen),), generator=rng)
    return _place(labels, chosen, (labels[chosen] + shift) % classes)


def asymmetric(data: Samples, spec: NoiseSpec, rng: torch.Generator) -> Tensor:
    """A share of each mapped class turned into the class it is easily taken for."""
    targets = torch.arange(len(data.class_names))
    for source, target in class_map(data, spec.file).items():
        targets[source] = target
    return _flip(data, targets, spec.rate, rng)


def pair(data: Samples, spec: NoiseSpec, rng: torch.Generator) -> Tensor:
    """A share of each class turned into the next one, the last into the first."""
    return _flip(data, torch.arange(len(data.class_names)).roll(-1), spec.rate, rng)


def instance(data: Samples, spec: NoiseSpec, rng: torch.Generator) -> Tensor:
    """Labels wrong in a way that depends on the sample: a random projection per true class scores the wrong classes.

    Flip rates are normal around the nominal rate, truncated to 0..1. Their spread shrinks below a rate of 0.1 and above
    0.9, because truncation would move the mean away from the nominal rate, and rate 0 would make 8 % of labels wrong.
    """
    if not isinstance(data.inputs, Tensor):
        raise InputError(f"instance noise reads every sample, but {data.name} is streamed; give a matrix or a map")
    labels, classes, features = data.labels.observed, len(data.class_names), math.prod(data.shape)
    normalise, chunk = data.kind.normaliser(data.inputs), max(1, CHUNK_VALUES // features)
    flipped = torch.rand(len(labels), generator=rng, dtype=torch.float64) < _flip_rates(len(labels), spec.rate, rng)
    observed = labels.clone()
    for label in range(classes):
        projection = torch.randn(features, classes, generator=rng)
        members = (flipped & (labels == label)).nonzero()[:, 0]
        for start in range(0, len(members), chunk):
            part = members[start : start + chunk]
            scores = normalise(data.inputs[part]).flatten(1) @ projection
            scores[:, label] = -math.inf
            observed[part] = torch.multinomial(scores.softmax(dim=1), 1, generator=rng)[:, 0]
    return observed


def matrix(data: Samples, spec: NoiseSpec, rng: torch.Generator) -> Tensor:
    """Each label drawn from its true class's row of the matrix."""
    rows, labels = _matrix_for(data, spec), data.labels.observed
    observed = labels.clone()
    for label, row in enumerate(rows):
        members = (labels == label).nonzero()[:, 0]
        if len(members):
            observed[members] = torch.multinomial(row, len(members), replacement=True, generator=rng)
    return observed


Corruption = Callable[[Samples, NoiseSpec, torch.Generator], Tensor]
KINDS: dict[str, Corruption] = {
    "symmetric": symmetric,
    "symmetric-excl": symmetric_excl,
    "asymmetric": asymmetric,
    "pair": pair,
    "instance": instance,
    "matrix": matrix,
}


def inject(data: Samples, spec: NoiseSpec, rng: torch.Generator) -> Samples:
    """The data set with wrong labels; the given ones become the truth that evaluation compares with."""
    return replace(data, labels=NoisyLabels(KINDS[spec.kind](data, spec, rng), data.labels.observed))


def nominal_rate(data: Samples, spec: NoiseSpec) -> float:
    """The rate that was asked for; a matrix is weighted by how frequent the true classes are."""
    if spec.kind != "matrix":
        return spec.rate
    truth = data.labels.observed if data.labels.truth is None else data.labels.truth
    return 1 - float(_matrix_for(data, spec).diagonal()[truth].mean())


def wrong_rate(labels: NoisyLabels) -> float | None:
    """The real share of wrong labels, where the truth is known."""
    return None if labels.truth is None else float((labels.observed != labels.truth).double().mean())


def class_map(data: Samples, file: str) -> dict[int, int]:
    """Which class is taken for which: from a JSON file of names, or the usual map of digits or CIFAR."""
    names = {name: i for i, name in enumerate(data.class_names)}
    if "cra" in names and not file:  # so the Hugging Face copy of CIFAR-100 spells it
        names["crab"] = names.pop("cra")
    if file:
        taken_for = read_json(file)
        if not isinstance(taken_for, dict) or not all(isinstance(name, str) for name in taken_for.values()):
            raise InputError(f'{file} is not a JSON object of class names, such as {{"cat": "dog"}}')
    elif data.name in ("digits", "mnist"):
        taken_for = DIGITS_MAP
    elif len(names) == 10 and names.keys() >= {*CIFAR10_MAP, *CIFAR10_MAP.values()}:
        taken_for = CIFAR10_MAP
    else:
        groups = [group.split() for group in CIFAR100_SUPERCLASSES.split(";")]
        taken_for = {a: b for group in groups for a, b in zip(group, group[1:] + group[:1], strict=True)}
        if names.keys() != taken_for.keys():
            raise InputError(
                f"{data.name} has no usual map of classes taken for each other; give one as asymmetric:0.4:map.json"
            )
    kind = f"class in {file}"
    return {lookup(kind, source, names): lookup(kind, target, names) for source, target in taken_for.items()}


def read_matrix(file: str) -> Tensor:
    """A row-stochastic matrix, row = true class, from .npy, .csv or .json."""
    suffix = Path(file).suffix
    if suffix not in (".npy", ".csv", ".json"):
        raise InputError(f"{file} is no matrix that can be read; give a .npy, .csv or .json file")
    content = read_json(file) if suffix == ".json" else sized(file).read_bytes()
    try:
        if suffix == ".npy":
            content = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
        elif suffix == ".csv":
            content = [line.split(",") for line in content.decode("utf-8-sig").splitlines() if line.strip()]
        values = np.array(content, dtype=np.float64)
    except Exception as error:  # a damaged header raises errors of many kinds
        raise InputError(f"{file} cannot be read as a matrix of numbers: {str(error).partition('. ')[0]}") from None
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise InputError(f"{file} has shape {values.shape}; a noise matrix has one row and one column a class")
    bad = ~(np.isfinite(values) & (values >= 0)).all(axis=1)
    if bad.any():
        raise InputError(f"{file} has a negative or missing number in row {bad.argmax()}; its numbers are shares")
    off = np.abs(values.sum(axis=1) - 1) > 1e-6
    if off.any():
        raise InputError(f"{file} has row {off.argmax()} that sums to {values[off.argmax()].sum():.6g}; rows sum to 1")
    return torch.from_numpy(values)


def read_json(file: str) -> Any:
    """What a JSON file holds."""
    try:
        return json.loads(sized(file).read_text(encoding="utf-8-sig"))
    except RecursionError:
        raise InputError(f"{file} is nested too deep to be read as JSON") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read as JSON: {error}") from None


def _matrix_for(data: Samples, spec: NoiseSpec) -> Tensor:
    rows = read_matrix(spec.file)
    if len(rows) != len(data.class_names):
        raise InputError(f"{spec.file} has {len(rows)} rows but {data.name} has {len(data.class_names)} classes")
    return rows


def _flip(data: Samples, targets: Tensor, rate: float, rng: torch.Generator) -> Tensor:
    labels = data.labels.observed
    flipped = torch.rand(len(labels), generator=rng, dtype=torch.float64) < rate
    return torch.where(flipped, targets[labels], labels)


def _flip_rates(samples: int, rate: float, rng: torch.Generator) -> Tensor:
    spread = max(min(RATE_SPREAD, rate, 1 - rate), 1e-12)
    low, high = (math.erf((bound - rate) / spread / math.sqrt(2)) for bound in (0, 1))
    drawn = low + (high - low) * torch.rand(samples, generator=rng, dtype=torch.float64)
    return (rate + spread * math.sqrt(2) * drawn.erfinv()).clamp(0, 1)


def _chosen(data: Samples, spec: NoiseSpec, rng: torch.Generator) -> Tensor:
    return torch.randperm(len(data), generator=rng)[: round(spec.rate * len(data))]


def _place(labels: Tensor, chosen: Tensor, values: Tensor) -> Tensor:
    observed = labels.clone()
    observed[chosen] = values
    return observed
