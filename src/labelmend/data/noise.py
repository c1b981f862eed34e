"""Wrong labels made on purpose. With evaluation, the only place that knows the truth."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..errors import InputError, choose
from .dataset import Dataset, NoisyLabels


@dataclass(frozen=True)
class NoiseSpec:
    """A kind of noise and its nominal rate, as in `symmetric:0.5`."""

    kind: str
    rate: float

    @classmethod
    def parse(cls, text: str) -> "NoiseSpec":
        """Read `kind:rate`."""
        kind, _, rate = text.partition(":")
        choose("noise kind", kind, KINDS)
        try:
            value = float(rate)
        except ValueError:
            raise InputError(f"noise {text!r} has no rate; write it as {kind}:0.5") from None
        if not 0 <= value <= 1:
            raise InputError(f"noise rate {rate} is outside 0..1; write half as {kind}:0.5")
        return cls(kind, value)


def symmetric(labels: Tensor, classes: int, chosen: Tensor, rng: torch.Generator) -> Tensor:
    """Chosen labels redrawn from all classes, so that some keep the true one (the paper's first criterion)."""
    return _place(labels, chosen, torch.randint(classes, (len(chosen),), generator=rng))


def symmetric_excl(labels: Tensor, classes: int, chosen: Tensor, rng: torch.Generator) -> Tensor:
    """Chosen labels redrawn from the other classes, so that the rate is the share of wrong labels."""
    shift = torch.randint(1, classes, (len(chosen),), generator=rng)
    return _place(labels, chosen, (labels[chosen] + shift) % classes)


Corruption = Callable[[Tensor, int, Tensor, torch.Generator], Tensor]
KINDS: dict[str, Corruption] = {"symmetric": symmetric, "symmetric-excl": symmetric_excl}


def inject(data: Dataset, spec: NoiseSpec, rng: torch.Generator) -> Dataset:
    """The data set with wrong labels; the given ones become the truth that evaluation compares with."""
    truth = data.labels.observed
    chosen = torch.randperm(len(truth), generator=rng)[: round(spec.rate * len(truth))]
    observed = KINDS[spec.kind](truth, len(data.class_names), chosen, rng)
    return replace(data, labels=NoisyLabels(observed, truth))


def wrong_rate(labels: NoisyLabels) -> float | None:
    """The real share of wrong labels, where the truth is known."""
    return None if labels.truth is None else float((labels.observed != labels.truth).double().mean())


def _place(labels: Tensor, chosen: Tensor, values: Tensor) -> Tensor:
    observed = labels.clone()
    observed[chosen] = values
    return observed
