"""One robust training run, from a prepared run to a finished run directory."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace

import torch
from accelerate import Accelerator
from torch import Tensor

from ..core import Draws
from ..data import Samples
from ..data.kinds import Normaliser
from ..data.kinds.encoded import Encoded
from ..data.kinds.images import Images
from ..detect.dynamics import judge_ledgers
from ..detect.judge import FOUND, Judgement
from ..detect.readings import averaged_readings
from ..detect.summary import describe_noise
from ..detect.table import LabelTable
from ..errors import InputError, InterruptedRunError, StorageError
from ..run.card import write_card
from ..run.directory import RunDirectory
from ..run.evidence import write_evidence
from ..run.labels import write_labels
from ..run.lock import owned
from ..run.model import Model, write_model
from ..run.noise import write_noise
from ..run.preflight import write_preflight
from .assemble import assemble, norm_at
from .checkpoint import saved
from .compilation import Decision, compiled_forward, decide
from .engine import cpu_threads
from .evaluation import detection_auc
from .finite import NotFiniteError
from .observer import Observer
from .prepare import Prepared, check_same
from .signals import Signals
from .trainer import Trainer


@dataclass(frozen=True)
class Trained:
    """What a run came to: the judgement of all labels, the label table, and the model."""

    judgement: Judgement
    table: LabelTable
    model: Model


def train_in_memory(prepared: Prepared, *, observer: Observer | None = None) -> Trained:
    """Run all epochs and give what they came to; nothing is written, so that such a run cannot be resumed."""
    prepared = replace(prepared, run=RunDirectory(prepared.run.path, writes=False))
    with cpu_threads(prepared.choices.threads):
        accelerator = prepared.engine.start()
        normalise = prepared.data.kind.normaliser(prepared.data.inputs)
        trainer = assemble(prepared, accelerator, normalise, observer=observer)
        trainer.train()
        return _trained(prepared, trainer, normalise)


def train(
    prepared: Prepared,
    *,
    observer: Observer | None = None,
    signals: Signals | None = None,
    afterwards: Callable[[RunDirectory], None] = lambda run: None,
) -> tuple[RunDirectory, list[str]]:
    """Run all epochs that are left and write every file of the run directory; gives it with any warnings.

    `afterwards` is called with the finished run while this process still owns it, for instance to build a report.
    """
    run = prepared.run
    if not prepared.config.out:
        raise InputError("the run has no place: name a folder for it with --out")
    with cpu_threads(prepared.choices.threads), _owned(prepared) if run.writes else nullcontext():
        accelerator = prepared.engine.start()
        accelerator.wait_for_everyone()
        try:
            warnings = _run(prepared, accelerator, observer, signals)
            if run.writes:
                afterwards(run)
            return run, warnings
        except InterruptedRunError:
            run.update(status="interrupted")
            raise
        except (NotFiniteError, StorageError) as error:
            raise _failed(run, error) from error
        except OSError as error:
            raise _failed(run, StorageError(f"{error.strerror or error}: {error.filename or run.path}")) from error
        except RuntimeError as error:  # raised by a signal, wherever the run happens to be
            if "DataLoader worker" not in str(error):
                raise
            ended = f"a process that decodes images ended ({str(error).splitlines()[0].strip()})"
            raise _failed(run, StorageError(ended)) from error


def _failed(run: RunDirectory, error: Exception) -> Exception:
    """The error, noted in run.json as far as anything can be written."""
    with suppress(OSError):
        run.update(status="failed", error=str(error))
    return error


@contextmanager
def _owned(prepared: Prepared) -> Iterator[None]:
    """Own the run directory and begin or go on in it; one that cannot be written to, or begun, is left as it was."""
    run, new = prepared.run, not prepared.run.path.exists()
    with ExitStack() as stack:
        try:
            run.path.mkdir(parents=True, exist_ok=True)
            stack.enter_context(owned(run.path))
            _open(prepared)
        except OSError as error:
            if new:
                shutil.rmtree(run.path, ignore_errors=True)
            reason = error.strerror or error
            raise InputError(f"cannot write to {run.path}: {reason}; choose another --out") from None
        try:
            yield
        except InputError:
            if new and not saved(run.checkpoints):
                shutil.rmtree(run.path, ignore_errors=True)
            raise


def _open(prepared: Prepared) -> None:
    run, description = prepared.run, prepared.description()
    if run.run_json.is_file():
        check_same(run.read(), description, allow_drift=prepared.config.allow_drift)
        run.update(status="running")
    else:
        run.create(description)
    write_preflight(run, prepared.preflight)


def _run(prepared: Prepared, accelerator: Accelerator, observer: Observer | None, signals: Signals | None) -> list[str]:
    normalise = prepared.data.kind.normaliser(prepared.data.inputs)
    trainer = assemble(prepared, accelerator, normalise, observer=observer, stop_signal=signals or (lambda: None))
    _compile(prepared, accelerator, trainer)
    warnings = trainer.resume()
    for warning in warnings:
        trainer.observer.warn(warning)
    with nullcontext() if signals is None else signals.heeded():
        trainer.train()
    if prepared.run.writes:
        _conclude(prepared, trainer, normalise)
    accelerator.wait_for_everyone()
    return warnings


def _compile(prepared: Prepared, accelerator: Accelerator, trainer: Trainer) -> None:
    """Compile the steps on images as they are, if asked for or if it pays; a resumed run does as it did before."""
    run = prepared.run
    trainer.observer.stage(0, "compiling", 0)
    network = trainer.learners[0].network
    steps = trainer.feed.steps * sum(trainer.scale(epoch) == 1 for epoch in range(1, trainer.task.epochs + 1))

    def example() -> Tensor:
        return next(iter(trainer.feed.shuffled(Draws(trainer.seed, 1)))).inputs

    if run.writes and "compile" not in run.read():
        if trainer.learners[0].fit is not None:
            decision = Decision(False, "no: trees have no steps of gradients")
        else:
            decision = decide(prepared.config.compile, network, example, steps=steps)
        run.update(compile=asdict(decision))
    accelerator.wait_for_everyone()
    if Decision(**run.read()["compile"]).compiled:
        inputs = example()
        for learner in trainer.learners:
            learner.compile_for(len(inputs), compiled_forward(learner.network, learner.trained, inputs))


def _trained(prepared: Prepared, trainer: Trainer, normalise: Normaliser) -> Trained:
    """The labels judged by what all passes recorded, and the networks as a model."""
    data = prepared.data
    judgement = judge_ledgers(
        trainer.ledgers,
        data.labels.observed,
        len(data.class_names),
        by_predictions=trainer.method.judged_by_predictions,
        held_out=trainer.method.cross_fitted,
        controls=trainer.method.controls(),
        average=averaged_readings if _is_table_or_text(prepared.data) else None,
    )
    if data.trusted is not None:
        judgement = judgement.trusting(data.trusted.numpy())
    truth = data.labels.truth
    table = LabelTable.of(
        judgement,
        data.labels.observed.numpy(),
        ids=data.ids,
        class_names=data.class_names,
        truth=None if truth is None else truth.numpy(),
    )
    networks = [learner.evaluated.eval() for learner in trainer.learners]
    model = Model(
        networks, normalise.to(trainer.task.labels.device), data.kind, data.shape, data.class_names, trainer.views
    )
    return Trained(judgement, table, model)


def _conclude(prepared: Prepared, trainer: Trainer, normalise: Normaliser) -> None:
    """Judge the labels and write what the run leaves behind: table, noise, evidence, model, summary and report."""
    run, found = prepared.run, _trained(prepared, trainer, normalise)
    judgement, table = found.judgement, found.table
    noise = describe_noise(table, judgement)
    write_labels(run, table)
    write_noise(run, noise)
    write_evidence(run, prepared.data, table, found.model)
    write_model(run, found.model, net=prepared.choices.net, norm_at=norm_at(prepared.options))
    epochs = run.epochs()
    accuracies = [r["test_accuracy"] for r in epochs if r["test_accuracy"] is not None]
    summary = {
        "best_accuracy": max(accuracies, default=None),
        "last_accuracy": accuracies[-1] if accuracies else None,
        "noise_rate": judgement.rate,
        "auc": None
        if trainer.wrong is None
        else detection_auc(torch.from_numpy(judgement.score), trainer.wrong.cpu(), known=trainer.task.trusted),
        "mixture": judgement.mixture,
        "degenerate": None if judgement.finding == FOUND else judgement.reason,
        "finding": judgement.finding,
        "suspects": len(table.suspects()),
        "seconds": round(sum(r["seconds"] for r in epochs), 1),
    }
    write_card(run, run.read() | {"summary": summary}, noise, found.model)
    run.update(status="finished", summary=summary)


def _is_table_or_text(data: Samples) -> bool:
    """Whether the samples are rows or texts that were read, and no features of pictures."""
    kind = data.kind.of if isinstance(data.kind, Encoded) else data.kind
    return len(data.shape) == 1 and (kind is None or kind.name != Images.name)
