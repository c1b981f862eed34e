"""What is chosen where the user is silent: method, network, epochs, optimiser and more, each with the reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from ..data import Samples
from ..data.kinds import Augment
from ..data.kinds.images import Images
from ..errors import InputError
from ..methods.mend import MendOptions
from ..nets import FAST_NETS, TREES, is_trees
from .budget import Fit, default_seconds
from .calibration import Calibration, shorter_side
from .config import Optimisation, TrainConfig
from .engine import Engine
from .heads import FOLDS_OF_A_RUN as FOLDS
from .heads import HeadChoice, choose_head
from .optimiser import OptimiserSettings, optimiser_settings
from .threads import SMALL_NETS, suited_threads

CPU_EPOCHS = ((1_000, 120), (5_000, 60), (20_000, 30))
CPU_EPOCHS_LARGE = 20
GPU_EPOCHS = 300
BATCHES = ((2_500, 32), (10_000, 64))
PAPER_BATCH = 128
FAST_BATCHES = ((2_500, 64), (10_000, 128))
FAST_BATCH = 256
FEW_IMAGES, FOLDED_SECONDS = 5_000, 0.045
"""Images up to which `mend` judges them held-out, by several networks, and the seconds that each of them must have."""
CONTROLS, MOST_CONTROLS, FEWEST_CONTROLS = 0.1, 2_500, 500
"""Share of the samples that one network of `mend` does not learn, and the most and fewest of them."""
VAST, VAST_FOLDS, VAST_BATCH = 200_000, 3, 512
"""Rows from which on fewer networks judge them, since each has enough to learn, and in larger batches."""


@dataclass
class Defaults:
    """What a run uses, and why; whatever the user set is used as it is. `seconds` are expected for its epochs."""

    method: str
    net: str
    epochs: int
    precision: str
    batch_size: int
    threads: int
    augment: Augment | None
    optimiser: OptimiserSettings
    seconds: float | None = None
    features: dict[str, Any] | None = None
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Situation:
    """What choices depend on beside the user's wishes; `before` is what an earlier start of the same run chose."""

    data: Samples
    engine: Engine
    method: str
    networks: int
    seconds: float | None
    before: Mapping[str, Any]
    rounds: int = 1
    controls: int = 0


def choose_defaults(situation: Situation, config: TrainConfig, optimisation: Optimisation) -> Defaults:
    """Fill in what the user left open."""
    data, asked = situation.data, "as asked"
    nets, why_net = data.kind.default_nets(data.shape, on_gpu=situation.engine.on_gpu)
    nets = (config.net,) if config.net else nets
    refuse_trees(situation, config)
    batch, why_batch = _batch(len(data), fast=nets[0] in FAST_NETS)
    batch = optimisation.batch_size or batch
    head = _head(situation, config, batch)
    precision, why_precision = situation.engine.precision, situation.engine.why_precision
    if head is None:
        fit, why_epochs, precision, why_precision = _fit(situation, config, optimisation, nets, batch)
    else:
        fit, why_net = Fit(head.net, config.epochs or head.epochs, 0.0), head.reason
        why_epochs = f"two rounds of about {head.epochs // 2}, enough for {len(data):,} rows"
        if len(data) >= VAST and not optimisation.batch_size:
            batch, why_batch = VAST_BATCH, "large, since so many rows give enough steps an epoch"
    if is_trees(fit.net):
        fit, why_epochs = Fit(fit.net, situation.rounds, 0.0), "a round each: trees learn from all rows at once"
        batch, why_batch = len(data), "all rows: trees learn from them at once"
    if situation.seconds is not None and (head is not None or is_trees(fit.net)):
        why_epochs += "; --time is not used for rows of features, which take little"
    threads, why_threads = suited_threads(fit.net, len(data))
    augment, why_augment = data.kind.augmentation(data.shape, optimisation.augment, gentle=fit.net in FAST_NETS)
    suited = None if head is None else head.optimiser
    optimiser, why_optimiser = optimiser_settings(
        fit.net, batch, optimisation, suited=suited, side=shorter_side(data.shape)
    )
    if is_trees(fit.net):
        why_optimiser = "none: trees do not learn by gradients"
    reasons = {
        "augment": why_augment,
        "batch_size": asked if optimisation.batch_size else why_batch,
        "epochs": asked if config.epochs else why_epochs,
        "method": _why_method(situation, config),
        "net": asked if config.net and config.net != TREES else why_net,
        "optimiser": why_optimiser,
        "precision": asked if optimisation.precision != "auto" else why_precision,
        "threads": asked if config.threads else why_threads,
    }
    return Defaults(
        method=situation.method,
        net=fit.net,
        epochs=fit.epochs,
        precision=precision,
        batch_size=batch,
        threads=config.threads or threads,
        augment=augment,
        optimiser=optimiser,
        seconds=fit.seconds or None,
        reasons=reasons,
    )


def default_method(data: Samples, config: TrainConfig, *, on_gpu: bool) -> str:
    """The method where none is named: the library's own for rows and fast networks, else the paper's strongest."""
    if config.net is not None:
        return "mend" if config.net in (*FAST_NETS, "linear") or is_trees(config.net) else "m-dyr-h"
    nets, _ = data.kind.default_nets(data.shape, on_gpu=on_gpu)
    return "mend" if _are_rows(data) or nets[0] in FAST_NETS else "m-dyr-h"


def _why_method(situation: Situation, config: TrainConfig) -> str:
    why = "as asked" if config.method else "the library's own" if situation.method == "mend" else "the paper's"
    if situation.method != "mend":
        return why
    if situation.networks > 1:
        return f"{why}; {situation.networks} networks, each judges samples it did not learn"
    return f"{why}; {situation.controls:,} samples are not learned, as controls" if situation.controls else why


def suited_options(options: Any, data: Samples, seconds: float | None) -> Any:
    """Options of a method, with what depends on the data filled in where the user left it open.

    Held-out judging is worth several networks where a network would memorise its few samples, and there is time.
    """
    if not isinstance(options, MendOptions):
        return options
    if options.folds is None:
        few = len(data) <= FEW_IMAGES and (seconds is None or seconds >= FOLDED_SECONDS * len(data))
        folds = VAST_FOLDS if len(data) >= VAST else FOLDS
        options = replace(options, folds=folds if _are_rows(data) or few else 1)
    if options.controls is None and options.folds == 1:
        options = replace(options, controls=default_controls(len(data)))
    return options


def default_controls(samples: int) -> int:
    """Samples that one network does not learn, of so many: fewer than some hundreds would tell nothing.

    >>> default_controls(50_000), default_controls(8_000), default_controls(3_000)
    (2500, 800, 0)
    """
    controls = min(int(CONTROLS * samples), MOST_CONTROLS)
    return controls if controls >= FEWEST_CONTROLS else 0


def refuse_trees(situation: Situation, config: TrainConfig) -> None:
    """Explain what trees cannot do, where it was asked for."""
    if not is_trees(config.net):
        return
    if situation.method != "mend" or situation.networks < 2:
        asked = situation.method if situation.method != "mend" else "mend with folds=1"
        raise InputError(
            f"--net {config.net} has no gradients, which {asked} learns by; trees are trained by mend with 3, 7 or 13 "
            "folds: leave out --method, or choose --net mlp"
        )
    if not _are_rows(situation.data):
        raise InputError(f"--net {config.net} takes rows of features, not images; choose --features, or another --net")
    for name in ("epochs", "init"):
        if getattr(config, name) is not None:
            raise InputError(
                f"--{name} says nothing to trees, which learn from all rows at once; leave it out, or set rounds of "
                "boosting and leaves by the name, such as --net trees-60x8"
            )


def _are_rows(data: Samples) -> bool:
    return len(data.shape) == 1


def _head(situation: Situation, config: TrainConfig, batch: int) -> HeadChoice | None:
    """The classifier that suits rows of features, for the method that judges them held-out."""
    data = situation.data
    if not _are_rows(data) or situation.method != "mend" or config.net not in (None, TREES):
        return None
    assert isinstance(data.inputs, Tensor)
    rows = data.kind.normaliser(data.inputs)(data.inputs)
    classes = len(data.class_names)
    return choose_head(rows, data.labels.observed, classes, batch_size=batch, seed=config.seed, only=config.net)


def _fit(
    situation: Situation, config: TrainConfig, optimisation: Optimisation, nets: Sequence[str], batch: int
) -> tuple[Fit, str, str, str]:
    """Network and epochs with the reason, precision with the reason: as asked, as before, or by rules and the clock."""
    data, engine, before = situation.data, situation.engine, situation.before
    if {"net", "epochs"} <= before.keys():
        why = before.get("reasons", {})
        fit = Fit(config.net or before["net"], config.epochs or before["epochs"], before.get("seconds") or 0.0)
        precision = before.get("precision", engine.precision)
        return fit, str(why.get("epochs", "")), precision, str(why.get("precision", ""))
    plain = engine.precision, engine.why_precision
    if is_trees(nets[0]):
        return Fit(nets[0], situation.rounds, 0.0), "", *plain
    if config.epochs is not None and situation.seconds is None:
        return Fit(nets[min(1, len(nets) - 1)], config.epochs, 0.0), "", *plain
    if situation.seconds is None and (data.kind.name != Images.name or nets[0] in SMALL_NETS):
        epochs, why_epochs = _epochs(len(data), engine.on_gpu)
        return Fit(nets[0], config.epochs or epochs, 0.0), why_epochs, *plain
    calibration = Calibration(data, engine, optimisation, batch, config.threads)
    precision, why_precision = calibration.precision(nets)
    calibration = replace(calibration, engine=replace(engine, precision=precision))
    seconds = situation.seconds or default_seconds(len(data))
    fit = calibration.fit(nets, seconds, epochs=config.epochs, networks=situation.networks)
    source = "as asked" if situation.seconds else f"the default for {len(data):,} images; --time changes it"
    why_epochs = f"about {fit.seconds / 60:.1f} minutes here, of {seconds / 60:.1f} ({source})"
    return fit, why_epochs, precision, why_precision


def _epochs(samples: int, on_gpu: bool) -> tuple[int, str]:
    if on_gpu:
        return GPU_EPOCHS, "the paper's number, and there is a GPU"
    for limit, epochs in CPU_EPOCHS:
        if samples <= limit:
            return epochs, f"{samples:,} samples on a CPU"
    return CPU_EPOCHS_LARGE, f"{samples:,} samples on a CPU; more would be better"


def _batch(samples: int, *, fast: bool) -> tuple[int, str]:
    for limit, batch in FAST_BATCHES if fast else BATCHES:
        if samples <= limit:
            return batch, f"so that {samples:,} samples give {-(-samples // batch)} steps an epoch"
    return (FAST_BATCH, "enough steps an epoch, each of them quick") if fast else (PAPER_BATCH, "the paper's")
