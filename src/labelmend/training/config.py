"""What a run is asked to do: every option of `train`, described once for the command line and for Python.

A new option is a new field of `TrainConfig`; the command line, its help, the checks and run.json follow from it.
Imports nothing slow.
"""

import os
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal, get_type_hints

from ..errors import lookup
from .settings import check_limits, joined_names, typed

MAIN, DATA, TRAINING, RUN = "Options", "Data", "Training", "Run"


def about(group: str, help: str, *, circumstance: bool = False, **more: Any) -> dict[str, Any]:
    """The description of an option: its place in the help, and what it is.

    A `circumstance` says where and how a run is made, and does not make it another run. `more` can hold `flag` (the
    option's name, if it is not the field's), `metavar`, `choices`, `least` and `most` of a number, and `names` where
    Python may give a list that the command line joins by commas.
    """
    return {"group": group, "help": help, "circumstance": circumstance, **more}


@dataclass(frozen=True)
class TrainConfig:
    """A training run as the user asks for it; None leaves the choice to labelmend, which says why it chose.

    Values are checked by their types and limits; paths become text.
    """

    source: str = field(
        metadata=about(
            DATA,
            "A folder of images or .txt files with one subfolder per class; a .csv, .tsv, .parquet or .xlsx with a "
            "label column, and columns to learn from or an image column; an .npz with arrays x and y; or one of "
            "clothes, digits, mnist, fashion-mnist, cifar10, cifar100, tiny-imagenet, clothing1m.",
            metavar="SOURCE",
        )
    )
    out: str = field(
        metadata=about(MAIN, "Folder for the run; must not hold one yet.", metavar="RUN", circumstance=True)
    )
    time: str | None = field(
        default=None,
        metadata=about(
            MAIN,
            "How long the run may take, such as 90s, 20m or 1h30m: a short calibration on this machine picks the width "
            "of the network and the epochs. By default about 3 minutes for 3,000 images and 20 for 50,000.",
            metavar="DURATION",
        ),
    )
    method: str | None = field(
        default=None,
        metadata=about(TRAINING, "Training method, by default chosen from the data; 'labelmend methods' lists them."),
    )
    net: str | None = field(
        default=None,
        metadata=about(
            TRAINING,
            "fast-16 to fast-128, preact-resnet18, resnet50, slim-resnet, convnet, mlp, linear, trees or timm:NAME; by "
            "default chosen from the data and the time.",
        ),
    )
    epochs: int | None = field(
        default=None, metadata=about(TRAINING, "Passes over the data, in place of a time.", least=1)
    )
    noise: str | None = field(
        default=None,
        metadata=about(
            DATA,
            "Make labels wrong first: symmetric:R redraws a share R from all classes, symmetric-excl:R from the other "
            "classes; asymmetric:R[:map.json], pair:R, instance:R, matrix:FILE.",
            metavar="KIND:RATE",
        ),
    )
    labels: str | None = field(
        default=None,
        metadata=about(
            DATA, "Take the labels from FILE or FILE:KEY (.npz or .csv), such as CIFAR-10N's.", metavar="FILE[:KEY]"
        ),
    )
    trusted: str | None = field(
        default=None,
        metadata=about(
            DATA,
            "Samples whose labels are right, for methods that learn from some: a .csv with a column id (and one of "
            "labels, if the given ones are not right), or a .txt with one id per line; or, where the truth is known as "
            "after --noise, a number of samples of each class, such as 10-per-class.",
            metavar="FILE|N-per-class",
        ),
    )
    decisions: str | None = field(
        default=None,
        metadata=about(
            DATA,
            "Labels that people decided, in a run (labelmend review) or a .csv with columns id, decision and label: "
            "they are taken and trusted, and samples that are bad or none of the classes are left out.",
            metavar="RUN|FILE",
        ),
    )
    test: str | None = field(
        default=None, metadata=about(DATA, "A source of the same kind to evaluate on.", metavar="SOURCE")
    )
    root: str | None = field(
        default=None,
        metadata=about(
            DATA,
            "Folder of a named data set's files, or of the images that a table names.",
            metavar="FOLDER",
            circumstance=True,
        ),
    )
    image_column: str | None = field(
        default=None, metadata=about(DATA, "Column of image paths or bytes in a table.", metavar="NAME")
    )
    label_column: str | None = field(default=None, metadata=about(DATA, "Column of labels in a table.", metavar="NAME"))
    id_column: str | None = field(default=None, metadata=about(DATA, "Column of ids in a table.", metavar="NAME"))
    columns: str | None = field(
        default=None,
        metadata=about(
            DATA, "Learn from these columns of a table only, joined by commas.", metavar="NAMES", names=True
        ),
    )
    drop_columns: str | None = field(
        default=None, metadata=about(DATA, "Learn from all columns of a table but these.", metavar="NAMES", names=True)
    )
    category: str | None = field(
        default=None,
        metadata=about(
            DATA,
            "Columns of a table whose values are names of categories, also if they look like numbers.",
            metavar="NAMES",
            names=True,
        ),
    )
    text_column: str | None = field(
        default=None,
        metadata=about(
            DATA,
            "Columns of a table that are free text, also if they look like categories or ids.",
            metavar="NAMES",
            names=True,
        ),
    )
    size: int | None = field(default=None, metadata=about(DATA, "Resize images to this many pixels square."))
    skip_bad: bool = field(default=False, metadata=about(DATA, "Go on without unusable samples."))
    memory: float = field(
        default=2.0,
        metadata=about(
            DATA, "GiB of decoded images to hold in memory; larger sets are streamed from disk.", circumstance=True
        ),
    )
    workers: int = field(
        default=2, metadata=about(DATA, "Processes that decode streamed images.", least=0, most=256, circumstance=True)
    )
    init: str | None = field(
        default=None,
        metadata=about(
            TRAINING,
            "Start from these weights (.safetensors, or timm:NAME); layers of another shape stay new.",
            metavar="FILE|timm:NAME",
        ),
    )
    features: str | None = field(
        default=None,
        metadata=about(
            TRAINING,
            "Train on features of a pretrained network: efficientnet-lite0 (needs labelmend[photos]), timm:NAME, "
            "transformers:NAME, or of texts sentence-transformers:NAME (needs labelmend[text]); or your own in a .npz "
            "or .safetensors, one row per sample. auto, the default, uses efficientnet-lite0 for small sets of photos "
            "where it is installed; none never does.",
            metavar="NAME|FILE",
        ),
    )
    unfreeze: bool = field(
        default=False,
        metadata=about(
            TRAINING,
            "Train the network that --features names too, at a tenth of its head's learning rate; slow without a GPU.",
        ),
    )
    limit: int | None = field(
        default=None, metadata=about(DATA, "Train on this many samples, drawn at random.", least=2)
    )
    seed: int = field(
        default=0, metadata=about(TRAINING, "Seed of everything random: the same seed gives the same bytes.")
    )
    device: str = field(default="auto", metadata=about(RUN, "auto, cpu, cuda or mps.", circumstance=True))
    compile: str = field(
        default="auto",
        metadata=about(
            RUN,
            "torch.compile: on, off, or auto, which tries it on long runs.",
            choices=("auto", "on", "off"),
            circumstance=True,
        ),
    )
    threads: int | None = field(
        default=None,
        metadata=about(
            RUN,
            "CPU threads; by default chosen from the network, at most OMP_NUM_THREADS.",
            least=1,
            most=1024,
            circumstance=True,
        ),
    )
    settings: Mapping[str, Any] = field(
        default_factory=dict,
        metadata=about(
            TRAINING,
            "Change a setting of the method; 'labelmend methods ID' lists them. Can be given several times.",
            flag="--set",
            metavar="KEY=VALUE",
        ),
    )
    save_every: float = field(
        default=10.0,
        metadata=about(
            RUN,
            "Minutes between checkpoints inside an epoch; there is always one after it.",
            least=0,
            circumstance=True,
        ),
    )
    log: str | None = field(
        default=None,
        metadata=about(
            RUN,
            "Also log every epoch for this tool, inside the run directory and without a network: tensorboard, wandb or "
            "mlflow (each needs the extra of its name).",
            metavar="TOOL",
            choices=("tensorboard", "wandb", "mlflow"),
            circumstance=True,
        ),
    )
    resume: bool = field(
        default=False,
        metadata=about(
            RUN,
            "Continue the run in --out; SOURCE and all options it was started with are read from its run.json.",
            circumstance=True,
        ),
    )
    allow_drift: bool = field(
        default=False, metadata=about(RUN, "Resume even with other threads, processes or versions.", circumstance=True)
    )

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for described in fields(self):
            value, what, limits = getattr(self, described.name), flag(described), described.metadata
            value = os.fspath(value) if isinstance(value, os.PathLike) else value
            if limits.get("names") and isinstance(value, list | tuple):
                value = joined_names(value)
            value = typed(what, value, hints[described.name])
            check_limits(what, value, limits)
            if value is not None and "choices" in limits:
                lookup(f"value of {what}", value, dict.fromkeys(limits["choices"]))
            object.__setattr__(self, described.name, value)
        plain = {key: value.item() if hasattr(value, "item") else value for key, value in self.settings.items()}
        object.__setattr__(self, "settings", plain)


def flag(described: Field[Any]) -> str:
    """The command-line name of a field."""
    return str(described.metadata.get("flag", f"--{described.name.replace('_', '-')}"))


@dataclass(frozen=True)
class Optimisation:
    """How networks are trained (Appendix B); part of `--set`."""

    learning_rate: float | None = field(
        default=None,
        metadata={"help": "learning rate that factors of the schedule multiply; none suits the network", "least": 0},
    )
    momentum: float | None = field(
        default=None, metadata={"help": "momentum of SGD; none suits the network", "least": 0, "most": 1}
    )
    weight_decay: float | None = field(
        default=None, metadata={"help": "weight decay; none suits the network", "least": 0}
    )
    filter_rate: float | None = field(
        default=None,
        metadata={
            "help": "fast networks: learning rate of orthogonalised steps of filters; 0 is plain SGD, none suits",
            "least": 0,
        },
    )
    small_until: float | None = field(
        default=None,
        metadata={
            "help": "share of the run in which images are shown at three quarters of their size; none suits",
            "least": 0,
            "most": 1,
        },
    )
    rates: Literal["auto", "published", "triangular"] = field(
        default="auto",
        metadata={"help": "learning rates over the run: the method's published drops, or one rise and fall"},
    )
    average: float | Literal["auto", "none"] = field(
        default="auto",
        metadata={"help": "decay of averaged weights, which are tracked, guessed by and tested", "least": 0, "most": 1},
    )
    batch_size: int | None = field(default=None, metadata={"help": "samples per step; none chooses", "least": 2})
    augment: Literal["auto", "none", "crop", "crop-flip"] = field(
        default="auto", metadata={"help": "random crop after padding, and horizontal flip"}
    )
    precision: Literal["auto", "no", "fp16", "bf16"] = field(
        default="auto",
        metadata={
            "help": "mixed precision; auto uses bf16 on a GPU that has it, and on a CPU where a timed run gains by it"
        },
    )
