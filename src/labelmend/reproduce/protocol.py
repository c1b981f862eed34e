"""The two scales: the paper's data, network and schedule, and one that two CPU cores can run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..methods.paper import PUBLISHED
from ..training.config import TrainConfig

APPENDIX_B = {"learning_rate": "0.1", "momentum": "0.9", "weight_decay": "0.0001", "precision": "no"}
"""SGD as in Appendix B; its batch size and augmentation depend on the data."""
AS_WRITTEN = {
    "details": "paper",
    "noise_model": "bmm",
    "em_iterations": "10",
    "track_every": "1",
    "eta": "1.0",
    "mixup_alpha": "32.0",
}
"""The paper's own methods as its text has them."""
SCHEDULES = {name: epochs for name, (epochs, *_) in PUBLISHED.items()}
"""Epochs of the paper's two schedules (Appendix B)."""


@dataclass(frozen=True)
class Row:
    """A line of a table: a method, the schedule it is trained by and what is changed in it."""

    name: str
    method: str
    schedule: str = "mixup"
    changed: Mapping[str, str] = field(default_factory=dict)
    ours: bool = True
    trusted: bool = False


@dataclass(frozen=True)
class Stage:
    """Where one of the paper's data sets is played: the data, the network and how long it is trained."""

    title: str
    source: str
    net: str
    epochs: Mapping[str, int]
    batch_size: int
    augment: str
    samples: int
    tested: int
    shape: tuple[int, int, int]
    classes: int
    limit: int | None = None
    size: int | None = None
    init: str | None = None
    trusted: int = 10
    changed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Scale:
    """A stage for each of the paper's data sets; the ablations of its appendix run on some of them."""

    name: str
    stages: Mapping[str, Stage]
    ablated: tuple[str, ...]

    def config(
        self, data: str, row: Row, noise: int | None, seed: int, *, kind: str = "symmetric", root: str | None = None
    ) -> TrainConfig:
        """The complete configuration of one run; `out` is for whoever makes it to say."""
        stage = self.stages[data]
        settings = {**APPENDIX_B, "batch_size": str(stage.batch_size), "augment": stage.augment, **stage.changed}
        if row.ours:
            settings |= {**AS_WRITTEN, "schedule": row.schedule}
        return TrainConfig(
            source=stage.source,
            out="",
            method=row.method,
            net=stage.net,
            epochs=stage.epochs[row.schedule],
            noise=None if noise is None else f"{kind}:{noise / 100:g}",
            trusted=f"{stage.trusted}-per-class" if row.trusted else None,
            root=_own_folder(root, stage.source),
            size=stage.size,
            init=stage.init,
            limit=stage.limit,
            seed=seed,
            settings=settings | dict(row.changed),
        )


def _own_folder(root: str | None, source: str) -> str | None:
    """The data set's own folder in the root, if it has one."""
    if root is not None and (Path(root) / source).is_dir():
        return str(Path(root) / source)
    return root


def _natural(title: str, source: str, *, samples: int, side: int, classes: int, trusted: int) -> Stage:
    return Stage(
        title,
        source,
        "preact-resnet18",
        SCHEDULES,
        128,
        "crop-flip",
        samples=samples,
        tested=10_000,
        shape=(3, side, side),
        classes=classes,
        trusted=trusted,
    )


CLOTHING_EPOCHS = dict.fromkeys(SCHEDULES, 10)
CLOTHING = {"learning_rate": "0.0008", "weight_decay": "0.001"}
"""As Tanaka et al. 2018 fine-tune a network that knows ImageNet, which the paper followed."""

PAPER = Scale(
    "paper",
    {
        "cifar10": _natural("CIFAR-10", "cifar10", samples=50_000, side=32, classes=10, trusted=100),
        "cifar100": _natural("CIFAR-100", "cifar100", samples=50_000, side=32, classes=100, trusted=10),
        "tiny-imagenet": _natural("TinyImageNet", "tiny-imagenet", samples=100_000, side=64, classes=200, trusted=5),
        "clothing1m": Stage(
            "Clothing1M",
            "clothing1m",
            "resnet50",
            CLOTHING_EPOCHS,
            32,
            "crop-flip",
            samples=1_000_000,
            tested=10_526,
            shape=(3, 224, 224),
            classes=14,
            size=224,
            init="timm:resnet50",
            changed=CLOTHING,
        ),
    },
    ablated=("cifar10",),
)

SMALL = Scale(
    "small",
    {
        "cifar10": Stage(
            "digits, in place of CIFAR-10",
            "digits",
            "mlp",
            dict.fromkeys(SCHEDULES, 30),
            32,
            "none",
            samples=1_438,
            tested=359,
            shape=(1, 8, 8),
            classes=10,
        ),
        "cifar100": Stage(
            "Fashion-MNIST, 3,000 images, in place of CIFAR-100",
            "fashion-mnist",
            "mlp",
            dict.fromkeys(SCHEDULES, 30),
            64,
            "none",
            samples=3_000,
            tested=10_000,
            shape=(1, 28, 28),
            classes=10,
            limit=3_000,
        ),
        "tiny-imagenet": Stage(
            "TinyImageNet at 16 px",
            "tiny-imagenet",
            "mlp",
            dict.fromkeys(SCHEDULES, 60),
            64,
            "none",
            samples=12_000,
            tested=3_000,
            shape=(3, 16, 16),
            classes=200,
            size=16,
        ),
        "clothing1m": Stage(
            "Clothing1M, 5,000 images at 32 px",
            "clothing1m",
            "slim-resnet",
            dict.fromkeys(SCHEDULES, 20),
            64,
            "crop-flip",
            samples=5_000,
            tested=10_526,
            shape=(3, 32, 32),
            classes=14,
            size=32,
            limit=5_000,
        ),
    },
    ablated=("cifar10", "cifar100"),
)

SCALES = {scale.name: scale for scale in (SMALL, PAPER)}
