"""The device, precision and processes that a run trains with: chosen and checked first, started when it trains."""

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, is_initialized
from torch import distributed

from ..errors import InputError
from .config import Optimisation, TrainConfig

OURS = "labelmend"
"""Marks the state that all Accelerators of a process share as made by a run, and not by the program around it."""


@dataclass(frozen=True)
class Engine:
    """What a run trains with; making one starts nothing."""

    device: str
    precision: str
    rank: int = 0
    processes: int = 1

    @classmethod
    def choose(cls, config: TrainConfig, optimisation: Optimisation) -> "Engine":
        """As asked, or the best that is there; raises InputError for what is not."""
        present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
        if config.device != "auto" and not present.get(config.device, False):
            names = ", ".join(["auto", *(name for name, there in present.items() if there)])
            raise InputError(f"device {config.device!r} is not available; available: {names}")
        device = next(name for name, there in present.items() if there) if config.device == "auto" else config.device
        precision: str = optimisation.precision
        if precision == "auto":
            suited = "bf16" if device == "cuda" and torch.cuda.is_bf16_supported() else "no"
            precision = precision_around() or suited
        rank, count = (int(os.environ.get(name, default)) for name, default in (("RANK", "0"), ("WORLD_SIZE", "1")))
        return cls(device, "no", rank, count).in_precision(precision)

    def in_precision(self, precision: str) -> "Engine":
        """The same engine computing so; InputError for bf16 on a CPU that would have to imitate it."""
        if precision == "bf16" and not self.on_gpu and not bf16_on_cpu():
            raise InputError(
                "this CPU has no bf16 instructions and would be many times slower; leave out precision=bf16, or resume "
                "the run on a machine that has them"
            )
        return replace(self, precision=precision)

    @property
    def on_gpu(self) -> bool:
        """Whether there is something faster than a CPU."""
        return self.device != "cpu"

    @property
    def why_precision(self) -> str:
        """The reason for the precision, where nothing was timed."""
        return f"{self.precision}, which this device computes in" if self.precision != "no" else "single"

    def from_first(self, values: list[float]) -> list[float]:
        """The first process's values, for all of them; each waits for the others here."""
        if self.processes == 1:
            return values
        shared = torch.tensor(values, dtype=torch.float64, device=self.start().device)
        distributed.broadcast(shared, src=0)
        return [float(value) for value in shared.cpu()]

    def start(self) -> Accelerator:
        """The engine itself; of several processes, each waits for the others here."""
        if os.environ.get("LOCAL_WORLD_SIZE", "1") == os.environ.get("WORLD_SIZE", "1"):
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        around = precision_around()
        if around not in (None, self.precision):
            raise InputError(
                f"this program has an Accelerator with mixed_precision={around}, and a process computes in one; "
                f"leave out precision={self.precision}"
            )
        if is_initialized() and AcceleratorState().mixed_precision != self.precision:
            AcceleratorState._reset_state()  # it would refuse another precision than that of the run before
        ours = not is_initialized()
        if self.processes > 1 and not distributed.is_initialized():
            atexit.register(_leave_the_others)
        accelerator = Accelerator(cpu=self.device == "cpu", mixed_precision=self.precision)
        if ours:
            AcceleratorState._shared_state[OURS] = True
        return accelerator


def precision_around() -> str | None:
    """The precision of the Accelerator that the program around has made, None if it has none."""
    if not is_initialized() or AcceleratorState._shared_state.get(OURS):
        return None
    return str(AcceleratorState().mixed_precision)


def _leave_the_others() -> None:
    """End the group of processes while Python still runs: its threads may yet have tensors to free, and abort later."""
    if distributed.is_initialized():
        distributed.destroy_process_group()


def bf16_on_cpu() -> bool:
    """Whether this CPU computes in bf16 rather than imitate it."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


@contextmanager
def cpu_threads(count: int) -> Iterator[None]:
    """So many threads inside, and afterwards as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
