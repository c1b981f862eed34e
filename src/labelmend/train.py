"""One robust training run, from a configuration to a finished run directory."""

import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from safetensors.torch import save as save_tensors
from torch import Tensor

from .choices import Choices, choose_for
from .config import Optimisation, TrainConfig
from .core import Learner, Ledger, Task, generator
from .data import Dataset, inject
from .data.feed import MemoryFeed, Normaliser
from .data.label_file import read_labels
from .data.noise import NoiseSpec, nominal_rate, wrong_rate
from .data.preflight import Preflight, PreflightError
from .data.sources import SourceOptions, open_source
from .data.stream import StreamedImages, StreamFeed
from .data.tables import Columns
from .engine.evaluation import detection_auc
from .engine.run_dir import RunDirectory, to_json, write_atomic
from .engine.trainer import InterruptedRunError, NotFiniteError, Observer, Trainer
from .errors import InputError
from .evidence import write_evidence
from .labels.judge import Judgement, judge
from .labels.noise import describe_noise
from .labels.table import LabelTable, csv_bytes, parquet_bytes
from .methods import Entry, find
from .nets import build_net, start_from
from .report.build import build_report
from .settings import check_keys, parse

VERSIONED = ("labelmend", "torch", "accelerate", "numpy", "scikit-learn", "safetensors", "pyarrow")


@dataclass
class Prepared:
    """A run that has been checked and built, and has not touched the disk."""

    config: TrainConfig
    entry: Entry
    options: Any
    optimisation: Optimisation
    data: Dataset
    preflight: Preflight
    choices: Choices
    accelerator: Accelerator
    run: RunDirectory
    noise: dict[str, Any] | None

    def description(self) -> dict[str, Any]:
        """What run.json says before the first epoch."""
        return {
            "status": "running",
            "config": asdict(self.config),
            "options": asdict(self.options),
            "optimisation": asdict(self.optimisation),
            "chosen": {
                "net": self.choices.net,
                "epochs": self.choices.epochs,
                "batch_size": self.choices.batch_size,
                "threads": self.choices.threads,
                "augment": None if self.choices.augment is None else asdict(self.choices.augment),
                "reasons": self.choices.reasons,
            },
            "data": {
                "name": self.data.name,
                "samples": len(self.data),
                "shape": list(self.data.shape),
                "classes": list(self.data.class_names),
                "test_samples": None if self.data.test is None else len(self.data.test.labels),
                "fingerprint": self.data.fingerprint(),
            },
            "noise": self.noise,
            "preflight": {"skipped": self.preflight.skipped, "notes": len(self.preflight.notes)},
            "machine": {"device": str(self.accelerator.device)},
            "versions": {"python": platform.python_version()} | {name: version(name) for name in VERSIONED},
        }


def prepare(
    config: TrainConfig, *, data: Dataset | None = None, advance: Callable[[int], None] = lambda done: None
) -> Prepared:
    """Check everything that can be checked before the first epoch; raises InputError and leaves nothing behind.

    `data` is a data set made in Python (`as_dataset`), used in place of the configuration's source.
    """
    entry = find(config.method)
    check_keys(config.settings, entry.options, Optimisation)
    options: Any = parse(entry.options, config.settings)
    optimisation = parse(Optimisation, config.settings)
    spec = None if config.noise is None else NoiseSpec.parse(config.noise)
    if config.limit is not None and config.limit < 2:
        raise InputError(f"--limit must be at least 2, not {config.limit}")
    if config.epochs is not None and config.epochs < 1:
        raise InputError(f"--epochs must be at least 1, not {config.epochs}")
    run = RunDirectory(Path(config.out))
    _check_place(run, config)
    accelerator = _accelerator(config, optimisation)
    preflight = Preflight()
    if data is None:
        data, preflight = _open_data(config, advance)
    data, noise = _spoil(data, config, spec)
    choices = choose_for(data, config, optimisation, on_gpu=accelerator.device.type != "cpu")
    torch.set_num_threads(choices.threads)
    build_net(choices.net, data.shape, len(data.class_names), rng=generator(0, "check"))
    return Prepared(config, entry, options, optimisation, data, preflight, choices, accelerator, run, noise)


def _open_data(config: TrainConfig, advance: Callable[[int], None]) -> tuple[Dataset, Preflight]:
    columns = Columns(config.image_column, config.label_column, config.id_column)
    options = SourceOptions(config.test, config.root, columns, config.size, config.skip_bad, config.memory)
    try:
        return open_source(config.source, options, advance=advance)
    except PreflightError as error:
        listed = Path(f"{config.out}.preflight.json")
        listed.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(listed, to_json(error.preflight.to_dict()))
        raise InputError(f"{error}\n  all of them are listed in {listed}") from None


def _spoil(data: Dataset, config: TrainConfig, spec: NoiseSpec | None) -> tuple[Dataset, dict[str, Any] | None]:
    """Other labels, fewer samples and wrong labels, in this order, as far as they were asked for."""
    if config.labels is not None:
        data = read_labels(config.labels, data)
    if config.limit is not None and config.limit < len(data):
        data = data.head(config.limit, generator(config.seed, "limit"))
    if spec is not None:
        data = inject(data, spec, generator(config.seed, "noise"))
        return data, {"kind": spec.kind, "nominal": nominal_rate(data, spec), "real": wrong_rate(data.labels)}
    real = wrong_rate(data.labels)
    return data, None if real is None else {"kind": f"labels {config.labels}", "nominal": None, "real": real}


def train(
    prepared: Prepared, *, observer: Observer | None = None, stop_signal: Any = lambda: None
) -> tuple[RunDirectory, list[str]]:
    """Run all epochs that are left and write every file of the run directory; gives it with any warnings."""
    run, data = prepared.run, prepared.data
    description = prepared.description()
    if run.run_json.is_file():
        _check_same(run.read(), description)
        run.update(status="running")
    else:
        run.create(description)
    write_atomic(run.preflight, to_json(prepared.preflight.to_dict()))
    normalise = Normaliser.of(data.inputs) if isinstance(data.inputs, Tensor) else data.inputs.normaliser()
    trainer = _trainer(prepared, normalise, observer or Observer(), stop_signal)
    warnings = trainer.resume()
    try:
        trainer.train()
    except InterruptedRunError:
        run.update(status="interrupted")
        raise
    except NotFiniteError as error:
        run.update(status="failed", error=str(error))
        raise
    _conclude(prepared, trainer, normalise)
    return run, warnings


def _conclude(prepared: Prepared, trainer: Trainer, normalise: Normaliser) -> None:
    """Judge the labels and write what the run leaves behind: table, noise, evidence, model, summary and report."""
    run, data = prepared.run, prepared.data
    judgement = judge(trainer.ledgers, data.labels.observed, len(data.class_names))
    table = label_table(data, trainer.ledgers, judgement)
    rows = table.to_arrow()
    write_atomic(run.labels_csv, csv_bytes(rows))
    write_atomic(run.labels_parquet, parquet_bytes(rows))
    write_atomic(run.noise_json, to_json(describe_noise(table, judgement)))
    write_evidence(run, data, table, trainer.learners[0], normalise)
    _write_model(prepared, trainer.learners, normalise)
    epochs = run.epochs()
    accuracies = [r["test_accuracy"] for r in epochs if r["test_accuracy"] is not None]
    summary = {
        "best_accuracy": max(accuracies, default=None),
        "last_accuracy": accuracies[-1] if accuracies else None,
        "noise_rate": judgement.rate,
        "auc": None if trainer.wrong is None else detection_auc(judgement.score, trainer.wrong.cpu()),
        "mixture": judgement.mixture,
        "degenerate": judgement.reason,
        "suspects": len(table.suspects()),
        "seconds": round(sum(r["seconds"] for r in epochs), 1),
    }
    prepared.accelerator.wait_for_everyone()
    run.update(status="finished", summary=summary)
    build_report(run)


def label_table(data: Dataset, ledgers: list[Ledger], judgement: Judgement) -> LabelTable:
    """What the judgement and the last tracking pass say of each sample."""
    return LabelTable(
        ids=data.ids,
        class_names=data.class_names,
        given=data.labels.observed.numpy(),
        noisy_probability=_floats(judgement.probability),
        rival=judgement.rival.cpu().numpy(),
        agreement=_floats(judgement.agreement),
        loss=_floats(ledgers[0].losses),
        margin=_floats(judgement.margin),
        steadiness=_floats(judgement.steadiness),
        score=_floats(judgement.score),
        truth=None if data.labels.truth is None else data.labels.truth.numpy(),
    )


def _floats(tensor: Tensor) -> NDArray[np.float64]:
    return tensor.cpu().double().numpy()


def _trainer(prepared: Prepared, normalise: Normaliser, observer: Observer, stop_signal: Any) -> Trainer:
    data, choices = prepared.data, prepared.choices
    seed = prepared.config.seed
    feed = _feed(prepared, data.inputs, data.labels.observed, normalise, training=True)
    test = None
    if data.test is not None:
        test = _feed(prepared, data.test.inputs, data.test.labels, normalise, training=False)
    method = prepared.entry.build(prepared.options, choices.epochs)
    truth = data.labels.truth
    return Trainer(
        method=method,
        learners=[_learner(prepared, number) for number in range(method.networks)],
        feed=feed,
        task=Task(feed.labels, len(data.class_names), choices.epochs),
        run=prepared.run,
        seed=seed,
        test=test,
        wrong=None if truth is None else truth != data.labels.observed,
        observer=observer,
        stop_signal=stop_signal,
    )


def _feed(
    prepared: Prepared, inputs: Tensor | StreamedImages, labels: Tensor, normalise: Normaliser, *, training: bool
) -> MemoryFeed | StreamFeed:
    choices, device = prepared.choices, prepared.accelerator.device
    augment = choices.augment if training else None
    size = choices.batch_size
    if isinstance(inputs, Tensor):
        return MemoryFeed(inputs, labels, normalise=normalise, batch_size=size, augment=augment, device=device)
    return StreamFeed(
        inputs,
        labels,
        normalise=normalise,
        batch_size=size,
        augment=augment is not None,
        workers=prepared.config.workers,
        device=device,
    )


def _learner(prepared: Prepared, number: int) -> Learner:
    data, optimisation, accelerator = prepared.data, prepared.optimisation, prepared.accelerator
    network = build_net(
        prepared.choices.net,
        data.shape,
        len(data.class_names),
        rng=generator(prepared.config.seed, "network", number),
        norm_at=_norm_at(prepared.options),
    )
    if prepared.config.init is not None:
        start_from(network, prepared.config.init)
    network = network.to(accelerator.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimiser = torch.optim.SGD(
        network.parameters(),
        lr=optimisation.learning_rate,
        momentum=optimisation.momentum,
        weight_decay=optimisation.weight_decay,
    )
    network, optimiser = accelerator.prepare(network, optimiser)
    return Learner(network, optimiser, backward=accelerator.backward)


def _norm_at(options: Any) -> Any:
    from .methods.details import DETAILS

    return DETAILS[getattr(options, "details", "paper")].norm_at


def _write_model(prepared: Prepared, learners: list[Learner], normalise: Normaliser) -> None:
    unwrap = prepared.accelerator.unwrap_model
    tensors = {
        f"{i}/{name}": tensor.detach().cpu().contiguous()
        for i, learner in enumerate(learners)
        for name, tensor in unwrap(learner.network).state_dict().items()
    }
    write_atomic(prepared.run.model, save_tensors(tensors))
    write_atomic(
        prepared.run.model_json,
        to_json(
            {
                "net": prepared.choices.net,
                "networks": len(learners),
                "norm_at": _norm_at(prepared.options),
                "shape": list(prepared.data.shape),
                "classes": list(prepared.data.class_names),
                "mean": normalise.mean.tolist(),
                "std": normalise.std.tolist(),
            }
        ),
    )


def _accelerator(config: TrainConfig, optimisation: Optimisation) -> Accelerator:
    if config.threads is not None and config.threads < 1:
        raise InputError(f"--threads must be at least 1, not {config.threads}")
    present = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if config.device != "auto" and not present.get(config.device, False):
        names = ", ".join(name for name, there in present.items() if there)
        raise InputError(f"device {config.device!r} is not available; here there is auto, {names}")
    precision = optimisation.precision
    if precision == "auto":
        precision = "bf16" if config.device != "cpu" and present["cuda"] and torch.cuda.is_bf16_supported() else "no"
    return Accelerator(
        cpu=config.device == "cpu" or not any([present["cuda"], present["mps"]]), mixed_precision=precision
    )


def _check_place(run: RunDirectory, config: TrainConfig) -> None:
    if run.path.is_file():
        raise InputError(f"{run.path} is a file; --out takes a folder")
    if run.run_json.is_file():
        if not config.resume:
            state = run.read().get("status")
            raise InputError(f"{run.path} holds a {state} run; go on with --resume or choose another --out")
    elif config.resume:
        raise InputError(f"there is no run to resume in {run.path}")
    elif run.path.is_dir() and any(run.path.iterdir()):
        raise InputError(f"{run.path} is not empty and holds no run; choose another --out")


def _check_same(before: dict[str, Any], now: dict[str, Any]) -> None:
    for key in ("options", "optimisation", "chosen", "data"):
        if before.get(key) != now[key]:
            raise InputError(f"the run was made with another {key}; resume it with the options it was started with")
    for key in ("method", "seed", "noise", "labels"):
        if before["config"].get(key) != now["config"][key]:
            raise InputError(
                f"the run was made with --{key} {before['config'].get(key)}, not {now['config'][key]}; "
                "resume it with the options it was started with"
            )
