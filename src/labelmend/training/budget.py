"""A time budget: which network, and how many epochs, the machine at hand can train in the time that there is."""

import math
import re
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional as F  # noqa: N812

from ..core import generator
from ..errors import InputError
from ..nets import build_net
from .optimiser import OptimiserSettings

PART = re.compile(r"(\d+(?:\.\d+)?)(h|m|s)")
SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0}
SHORTEST = 5.0
FEW, FEW_SECONDS, GROWTH = 3_000, 180.0, 0.675
"""3 minutes for 3,000 images; the exponent makes it 20 for 50,000."""
LEAST_SECONDS = 200.0
USABLE = 0.82
"""Share of the budget that epochs may take; the rest is for a machine that slows."""
AROUND, AROUND_SAMPLE, LEAST_USABLE = 20.0, 1.2e-3, 0.3
"""Seconds of a run, and a sample, for reading, timing, judging and the report; epochs have this share all the same."""
SMALL_COST = 0.58
"""What an epoch on smaller images takes of one on images as they are."""
SWEEPS = 0.5
"""Tracking passes an epoch."""
ENOUGH_EPOCHS, ENOUGH_SAMPLES, ENOUGH_POWER = 10, 50_000, 0.4
"""Epochs from which on a wider network gains more than further epochs, for so many samples; fewer need more."""
MOST_EPOCHS, MOST_OF_ENOUGH = 300, 3
MEASURED_SECONDS, MEASURED_STEPS = 1.2, 4


def parse_duration(text: str) -> float:
    """Seconds of a duration such as `90s`, `20m` or `1h30m`.

    >>> parse_duration("1h30m"), parse_duration("90s"), parse_duration("2.5m")
    (5400.0, 90.0, 150.0)
    """
    if not re.fullmatch(f"(?:{PART.pattern})+", text):
        raise InputError(f"--time takes a duration such as 90s, 20m or 1h30m, not {text!r:.100}")
    seconds = sum(float(number) * SECONDS[unit] for number, unit in PART.findall(text))
    if not SHORTEST <= seconds < math.inf:
        raise InputError(f"--time must be at least {SHORTEST:.0f} seconds, not {text}")
    return seconds


def default_seconds(samples: int) -> float:
    """The time that a run on so many images may take where the user set none.

    >>> [round(default_seconds(samples) / 60) for samples in (500, 3_000, 50_000)]
    [3, 3, 20]
    """
    return max(LEAST_SECONDS, FEW_SECONDS * math.pow(samples / FEW, GROWTH))


@dataclass(frozen=True)
class Cost:
    """Seconds that a sample takes in training, and in a pass without gradients."""

    learning: float
    looking: float


@dataclass(frozen=True)
class Work:
    """What a run has to do: samples to learn and to test, networks to train, the share of it on smaller images, and how
    many views of each image are predicted in the end.
    """

    samples: int
    test_samples: int
    networks: int = 1
    small_until: float = 0.0
    views: int = 1

    def seconds(self, cost: Cost, epochs: int) -> float:
        """How long so many epochs take with their tracking passes; the last one predicts all views of each image."""
        learning = self.samples * (self.networks * cost.learning + SWEEPS * cost.looking)
        epoch = learning + self.networks * self.test_samples * cost.looking
        further = (self.views - 1) * (self.samples + self.networks * self.test_samples) * cost.looking
        small = min(int(self.small_until * epochs), epochs - 1)
        return epoch * (epochs - small * (1 - SMALL_COST)) + further

    def epochs(self, cost: Cost, seconds: float, most: int) -> int:
        """The most epochs that the time is enough for, at least one."""
        return next((count for count in range(most, 1, -1) if self.seconds(cost, count) <= seconds), 1)


@dataclass(frozen=True)
class Fit:
    """A network and a number of epochs that fit a budget, and the seconds they are expected to take."""

    net: str
    epochs: int
    seconds: float


def measure(
    net: str,
    shape: Sequence[int],
    classes: int,
    *,
    batch_size: int,
    optimiser: OptimiserSettings,
    device: torch.device | str,
    precision: str = "no",
) -> Cost:
    """What a network costs on this machine, by a few steps on made-up samples; nothing else is changed by it."""
    device = torch.device(device)
    network = build_net(net, shape, classes, rng=generator(0, "calibration")).to(device)
    network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    inputs = torch.randn(batch_size, *shape, generator=generator(0, "calibration")).to(device)
    if inputs.dim() == 4:
        inputs = inputs.contiguous(memory_format=torch.channels_last)
    labels = torch.arange(batch_size, device=device) % classes
    half = torch.float16 if precision == "fp16" else torch.bfloat16
    descent = optimiser.build(network)

    def forward() -> torch.Tensor:
        with torch.autocast(device.type, half, enabled=precision != "no"):
            scores: torch.Tensor = network(inputs)
        return scores.float()

    def learn() -> None:
        descent.zero_grad(set_to_none=True)
        F.cross_entropy(forward(), labels).backward()  # type: ignore[no-untyped-call]
        descent.step()

    learning = _usual_seconds(learn, device)
    network.eval()
    with torch.no_grad():
        looking = _usual_seconds(forward, device)
    return Cost(learning / batch_size, looking / batch_size)


def _usual_seconds(step: Callable[[], object], device: torch.device) -> float:
    """The median of the seconds of some calls, after one that does not count: a busy machine makes it a longer one."""
    taken, until = list[float](), time.perf_counter() + MEASURED_SECONDS
    while len(taken) <= MEASURED_STEPS or time.perf_counter() < until:
        started = time.perf_counter()
        step()
        if device.type != "cpu":
            getattr(torch, device.type).synchronize()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken[1:])


def usable_seconds(seconds: float, samples: int) -> float:
    """How much of the time epochs may take.

    >>> round(usable_seconds(1200, 50_000)), round(usable_seconds(300, 50_000)), round(usable_seconds(60, 50_000))
    (984, 220, 18)
    """
    around = AROUND + AROUND_SAMPLE * samples
    return max(LEAST_USABLE * seconds, min(USABLE * seconds, seconds - around))


def enough_epochs(samples: int) -> int:
    """Epochs from which on a wider network gains more than further epochs do.

    >>> enough_epochs(50_000), enough_epochs(3_000)
    (10, 31)
    """
    return round(ENOUGH_EPOCHS * math.pow(max(1.0, ENOUGH_SAMPLES / samples), ENOUGH_POWER))


def fit_budget(costs: Iterable[tuple[str, Cost]], work: Work, seconds: float, *, epochs: int | None = None) -> Fit:
    """The widest network that has enough epochs in the time, or the narrowest; with `epochs` given, those are enough.

    `costs` come from narrow to wide, and none is asked for beyond the first that is too wide.
    """
    usable, wanted = usable_seconds(seconds, work.samples), epochs or enough_epochs(work.samples)
    most = min(MOST_EPOCHS, MOST_OF_ENOUGH * enough_epochs(work.samples))
    best: Fit | None = None
    for net, cost in costs:
        enough = work.seconds(cost, wanted) <= usable
        if best is None or enough:
            chosen = epochs or work.epochs(cost, usable, most)
            best = Fit(net, chosen, work.seconds(cost, chosen))
        if not enough:
            break
    assert best is not None
    return best
