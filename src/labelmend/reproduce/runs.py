"""Runs that are made once: each has a folder named by its configuration, and a result that is never made again."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from .. import __version__
from ..errors import InputError
from ..files import to_json, write_atomic
from ..run.directory import RunDirectory
from ..run.lock import owned
from ..run.model import load_model
from ..training.config import TrainConfig
from ..training.finite import NotFiniteError
from ..training.observer import Observer
from ..training.prepare import Prepared, prepare
from ..training.session import train
from ..training.signals import Signals
from .catalogue import key


class InUseError(Exception):
    """Another process is making this run."""


@dataclass(frozen=True)
class Result:
    """What a run came to. Accuracies are shares of the test samples; one that diverged has none.

    `auc` is the noise model's own after the last epoch, as the paper measures it; `judged` that of labelmend's verdict.
    `largest` is the share of the test samples that the network puts in its favourite class.
    """

    key: str
    best: float | None
    last: float | None
    auc: float | None
    judged: float | None
    noise_rate: float | None
    largest: float | None
    seconds: float
    version: str
    commit: str | None
    error: str | None = None


@dataclass(frozen=True)
class RunStore:
    """A folder of runs by key; several processes may work on it."""

    folder: Path

    def run(self, config: TrainConfig) -> RunDirectory:
        """Where the run with this configuration keeps its files."""
        return RunDirectory(self.folder / key(config) / "run")

    def result(self, config: TrainConfig) -> Result | None:
        """What the run came to, if it was made."""
        path = self._result_file(config)
        if not path.is_file():
            return None
        try:
            return Result(**json.loads(path.read_bytes()))
        except (ValueError, TypeError) as error:
            raise InputError(f"{path} is damaged ({error}); delete it, and the run is made again") from None

    def missing(self, configs: Iterable[TrainConfig]) -> list[TrainConfig]:
        """Those of the runs that were not made, each once."""
        every = {key(config): config for config in configs}
        return [config for config in every.values() if self.result(config) is None]

    def make(
        self,
        config: TrainConfig,
        *,
        observe: Callable[[Prepared], Observer] = lambda prepared: Observer(),
        signals: Signals | None = None,
    ) -> Result:
        """The result of a run, which is made, or taken up where it stopped, unless it is there."""
        home = self._result_file(config).parent
        home.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            try:
                stack.enter_context(owned(home))
            except InputError as error:
                raise InUseError(str(error)) from None
            found = self.result(config)
            if found is None:
                found = self._make(config, observe, signals)
                write_atomic(self._result_file(config), to_json(asdict(found)))
                shutil.rmtree(self.run(config).checkpoints, ignore_errors=True)
            return found

    def _make(self, config: TrainConfig, observe: Callable[[Prepared], Observer], signals: Signals | None) -> Result:
        run = self.run(config)
        prepared = prepare(replace(config, out=str(run.path), resume=run.run_json.is_file(), allow_drift=True))
        known: dict[str, Any] = {"key": key(config), "version": __version__, "commit": commit()}
        try:
            train(prepared, observer=observe(prepared), signals=signals)
        except NotFiniteError as error:
            seconds = sum(record["seconds"] for record in run.epochs())
            known |= dict.fromkeys(("best", "last", "auc", "judged", "noise_rate", "largest"))
            return Result(**known, seconds=round(seconds, 1), error=str(error))
        summary = run.read()["summary"]
        return Result(
            **known,
            best=summary["best_accuracy"],
            last=summary["last_accuracy"],
            auc=run.epochs()[-1]["auc"],
            judged=summary["auc"],
            noise_rate=summary["noise_rate"],
            largest=_largest_class(prepared, run),
            seconds=summary["seconds"],
        )

    def _result_file(self, config: TrainConfig) -> Path:
        return self.folder / key(config) / "result.json"


def _largest_class(prepared: Prepared, run: RunDirectory) -> float | None:
    test = prepared.data.test
    if test is None or not isinstance(test.inputs, torch.Tensor):
        return None
    model = load_model(run).to(torch.device(prepared.engine.device))
    predicted = torch.from_numpy(model.probabilities(test.inputs)).argmax(dim=1)
    return float(predicted.bincount().max()) / len(predicted)


def commit() -> str | None:
    """The commit of the source that runs, if it is kept in git where it lies."""
    try:
        _git("ls-files", "--error-unmatch", Path(__file__).name)
        return _git("describe", "--always", "--dirty", "--abbrev=10")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*words: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
