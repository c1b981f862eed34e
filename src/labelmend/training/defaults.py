"""Network, epochs, batch size, augmentation and threads chosen from the data, each with the reason."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from ..data import Samples
from ..data.kinds import Augment
from .config import Optimisation, TrainConfig

CPU_EPOCHS = ((1_000, 120), (5_000, 60), (20_000, 30))
CPU_EPOCHS_LARGE = 20
GPU_EPOCHS = 300
BATCHES = ((2_500, 32), (10_000, 64))
PAPER_BATCH = 128
SMALL_NETS = ("convnet", "mlp")


@dataclass
class Defaults:
    """What a run uses, and why; whatever the user set is used as it is."""

    net: str
    epochs: int
    batch_size: int
    threads: int
    augment: Augment | None
    reasons: dict[str, str] = field(default_factory=dict)


def choose_defaults(data: Samples, config: TrainConfig, optimisation: Optimisation, *, on_gpu: bool) -> Defaults:
    """Fill in what the user left open."""
    net, why_net = data.kind.default_net(data.shape, on_gpu=on_gpu)
    epochs, why_epochs = _epochs(len(data), on_gpu)
    batch, why_batch = _batch(len(data))
    augment, why_augment = data.kind.augmentation(data.shape, optimisation.augment)
    reasons = {"augment": why_augment}
    reasons["net"] = "as asked" if config.net else why_net
    reasons["epochs"] = "as asked" if config.epochs else why_epochs
    threads, why_threads = _threads(config.net or net)
    reasons["threads"] = "as asked" if config.threads else why_threads
    reasons["batch_size"] = "as asked" if optimisation.batch_size else why_batch
    return Defaults(
        net=config.net or net,
        epochs=config.epochs or epochs,
        batch_size=optimisation.batch_size or batch,
        threads=config.threads or threads,
        augment=augment,
        reasons=dict(sorted(reasons.items())),
    )


def _epochs(samples: int, on_gpu: bool) -> tuple[int, str]:
    if on_gpu:
        return GPU_EPOCHS, "the paper's number, and there is a GPU"
    for limit, epochs in CPU_EPOCHS:
        if samples <= limit:
            return epochs, f"{samples:,} samples on a CPU"
    return CPU_EPOCHS_LARGE, f"{samples:,} samples on a CPU; more would be better"


def _batch(samples: int) -> tuple[int, str]:
    for limit, batch in BATCHES:
        if samples <= limit:
            return batch, f"so that {samples:,} samples give {-(-samples // batch)} steps an epoch"
    return PAPER_BATCH, "the paper's"


def _threads(net: str) -> tuple[int, str]:
    if net in SMALL_NETS:
        return 1, "one: in a network this small, threads would mostly wait for each other"
    together = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if together > 1:
        return max(1, available_cores() // together), f"the cores available, shared by {together} processes"
    return available_cores(), "one for each core available"


def available_cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Cores that this process may really use: its affinity and, in a container, its quota (cgroup v2)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        limit, period = quota.read_text().split()
        return max(1, min(cores, int(limit) // int(period)))
    except (OSError, ValueError):
        return cores
