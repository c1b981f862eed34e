"""torch.compile where it pays: tried on throw-away steps before the first epoch of a long run."""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ..errors import InputError

BACKEND = "inductor"
TRIAL_SECONDS = 60.0
"""About what compiling takes."""
TRIAL_SHARE = 0.02
"""A trial may cost this share of the run that it might shorten."""
LEAST_GAIN = 0.03
TIMED_STEPS = 3


@dataclass(frozen=True)
class Decision:
    """Whether training steps are compiled, and why."""

    compiled: bool
    reason: str


def decide(asked: str, network: nn.Module, example: Callable[[], Tensor], *, steps: int) -> Decision:
    """Decide for a run of this many steps on batches like the example; `asked` is auto, on or off.

    With auto, a few eager steps tell how long the run will take. If a trial costs next to nothing of that, one is
    made, and the compiled steps must be faster. Training goes on from untouched weights: the steps are of a copy.
    """
    if asked != "auto":
        return Decision(asked == "on", "as asked")
    inputs = example()
    trial = copy.deepcopy(network).train()
    eager = seconds_a_step(trial, inputs)
    whole = eager * steps
    if TRIAL_SHARE * whole < TRIAL_SECONDS:
        return Decision(False, f"no: a run of about {_duration(whole)} is too short to repay it")
    try:
        faster = seconds_a_step(compiled(trial), inputs)
    except Exception as error:  # the compiler can raise any exception
        return Decision(False, f"no: it failed here ({_first_line(error)})")
    gain = 1 - faster / eager
    if gain < LEAST_GAIN:
        return Decision(False, f"no: a compiled step takes {faster / eager:.2f} times as long as an eager one here")
    return Decision(True, f"yes: a compiled step is {gain:.0%} faster, which saves about {_duration(gain * whole)}")


def compiled(network: nn.Module) -> Callable[[Tensor], Tensor]:
    """The same network, with the same weights, that is compiled when it is first called."""
    return torch.compile(network, backend=BACKEND, dynamic=False)


def compiled_forward(network: nn.Module, trained: nn.Module, inputs: Tensor) -> Callable[[Tensor], Tensor]:
    """A compiled pass of the trained network for batches like this one, or an error that says what to do."""
    try:
        compiled(copy.deepcopy(network).train())(inputs)
    except Exception as error:  # the compiler can raise any exception
        raise InputError(f"torch.compile failed ({_first_line(error)}); go without it: --compile off") from None
    return compiled(trained)


def seconds_a_step(
    network: Callable[[Tensor], Tensor], inputs: Tensor, update: Callable[[], object] = lambda: None
) -> float:
    """The shortest of a few training steps, each with an `update` of the weights, after one that does not count."""
    times = []
    for _ in range(TIMED_STEPS):
        started = time.perf_counter()
        logits = network(inputs)
        torch.autograd.backward(F.cross_entropy(logits.float(), logits.detach().argmax(dim=1)))
        update()
        if inputs.device.type != "cpu":
            torch.accelerator.synchronize(inputs.device)
        times.append(time.perf_counter() - started)
    return min(times[1:])


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min" if seconds >= 60 else "a minute"


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:120] if lines else type(error).__name__
