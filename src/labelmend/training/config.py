"""What a run is asked to do: every default of the command line and of Python, written once. Imports nothing slow."""

from dataclasses import dataclass, field
from typing import Literal

MOST_THREADS = 1024


@dataclass(frozen=True)
class TrainConfig:
    """A training run as the user asks for it; None leaves the choice to labelmend, which says why it chose."""

    source: str
    out: str
    method: str = "m-dyr-h"
    net: str | None = None
    epochs: int | None = None
    noise: str | None = None
    labels: str | None = None
    trusted: str | None = None
    test: str | None = None
    root: str | None = None
    image_column: str | None = None
    label_column: str | None = None
    id_column: str | None = None
    size: int | None = None
    skip_bad: bool = False
    memory: float = 2.0
    workers: int = 2
    init: str | None = None
    limit: int | None = None
    seed: int = 0
    device: str = "auto"
    compile: str = "auto"
    threads: int | None = None
    settings: dict[str, str] = field(default_factory=dict)
    save_every: float = 10.0
    resume: bool = False
    allow_drift: bool = False


@dataclass(frozen=True)
class Optimisation:
    """How networks are trained (Appendix B); part of `--set`."""

    learning_rate: float = field(default=0.1, metadata={"help": "learning rate that the run starts with", "least": 0})
    momentum: float = field(default=0.9, metadata={"help": "momentum of SGD", "least": 0, "most": 1})
    weight_decay: float = field(default=1e-4, metadata={"help": "weight decay", "least": 0})
    batch_size: int | None = field(default=None, metadata={"help": "samples a step; none chooses", "least": 2})
    augment: Literal["auto", "none", "crop", "crop-flip"] = field(
        default="auto", metadata={"help": "random crop after padding, and horizontal flip"}
    )
    precision: Literal["auto", "no", "fp16", "bf16"] = field(
        default="auto", metadata={"help": "mixed precision; auto uses bf16 on a GPU that has it"}
    )
