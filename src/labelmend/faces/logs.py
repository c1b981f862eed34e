"""Epochs for tools that draw curves: TensorBoard, Weights & Biases and MLflow, through accelerate's trackers.

Everything stays inside the run directory, and nothing is sent anywhere: W&B is always offline (`wandb sync` uploads a
run afterwards), and MLflow keeps its own database there.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..run.directory import RunDirectory
from ..training.observer import Observer
from .console import only_errors

PROJECT = "labelmend"
Settings = Mapping[str, Any]


def check_tool(name: str, run: Path) -> None:
    """Refuse a tool that is not installed, which accelerate would only leave out, or that cannot log to this run."""
    if find_spec(name) is None:
        raise InputError(f"--log {name} needs an extra: pip install 'labelmend[{name}]'")
    if name == "mlflow" and set("?#%") & set(str(run.resolve())):
        raise InputError(
            f"--log mlflow keeps a database, which cannot lie in {run}: choose an --out without ?, # and %"
        )


class RunLog(Observer):
    """Every number of every epoch, in RUN/tensorboard, RUN/wandb or RUN/mlflow.

    A resumed run goes on in the same log; if it had none before, the log begins with its first epoch. `settings` are
    kept beside the curves where the tool has a place for them.
    """

    def __init__(self, tool: str, run: RunDirectory, *, settings: Settings | None = None) -> None:
        check_tool(tool, run.path)
        self.tool, self.run = tool, run
        self.settings = {name: _plain(value) for name, value in (settings or {}).items()}
        self.opened: _Open | None = None

    def epoch(self, record: dict[str, Any]) -> None:
        records = [record]
        if self.opened is None:
            if not (self.run.path / self.tool).exists():
                records = [*(each for each in self.run.epochs() if each["epoch"] < record["epoch"]), record]
            self.opened = OPENERS[self.tool](self.run.path, records[0]["epoch"], self.settings)
        for each in records:
            numbers = {name: value for name, value in each.items() if name != "epoch" and _is_number(value)}
            self.opened.tracker.log(numbers, step=each["epoch"])

    def close(self) -> None:
        """Finish the log."""
        if self.opened is not None:
            self.opened.close()


class _Open:
    """A tracker of accelerate that was started, and what is to be done after it has finished."""

    def __init__(self, tracker: Any, afterwards: Callable[[], None] = lambda: None) -> None:
        self.tracker, self.afterwards = tracker, afterwards
        tracker.start()

    def close(self) -> None:
        try:
            self.tracker.finish()
        finally:
            self.afterwards()


def _tensorboard(run: Path, epoch: int, settings: Settings) -> _Open:
    """Events; epochs that a resumed run repeats replace the earlier ones. Settings would be a folder of their own."""
    from accelerate.tracking import TensorBoardTracker

    return _Open(TensorBoardTracker("tensorboard", run, purge_step=epoch))


def _wandb(run: Path, epoch: int, settings: Settings) -> _Open:
    """An offline run of W&B, with the id of the one that is there already.

    The user's own run of W&B, if there is one, goes on beside it; so settings are given at once, because accelerate
    would add them to that one.
    """
    from accelerate.tracking import WandBTracker

    wandb = import_module("wandb")
    before = sorted((run / "wandb").glob("offline-run-*-*"))
    tracker = WandBTracker(
        PROJECT,
        name=run.name,
        dir=str(run),
        mode="offline",
        id=before[-1].name.rpartition("-")[2] if before else None,
        resume="allow",
        reinit="create_new",
        config=dict(settings),
        settings=wandb.Settings(silent=True, console="off"),
    )
    return _Open(tracker)


def _mlflow(run: Path, epoch: int, settings: Settings) -> _Open:
    """A run of MLflow in a database of its own, which is found again there; the user's own store comes back after."""
    mlflow = import_module("mlflow")
    folder = (run / "mlflow").resolve()
    folder.mkdir(exist_ok=True)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    try:
        with only_errors("mlflow"):
            return _mlflow_run(mlflow, folder, settings, afterwards=lambda: mlflow.set_tracking_uri(before))
    except BaseException:
        mlflow.set_tracking_uri(before)
        raise


def _mlflow_run(mlflow: Any, folder: Path, settings: Settings, afterwards: Callable[[], None]) -> _Open:
    """The run in this database, a new one where there is none; the user's own active run goes on after it."""
    from accelerate.tracking import MLflowTracker

    earlier = mlflow.search_runs(
        experiment_names=[PROJECT], max_results=1, order_by=["start_time DESC"], output_format="list"
    )
    tracker = MLflowTracker(
        PROJECT,
        logging_dir=str(folder / "artifacts"),
        run_id=earlier[0].info.run_id if earlier else None,
        run_name=folder.parent.name,
        nested_run=True,
    )
    opened = _Open(tracker, afterwards)
    if not earlier:
        tracker.store_init_configuration(dict(settings))
    return opened


OPENERS: dict[str, Callable[[Path, int, Settings], _Open]] = {
    "tensorboard": _tensorboard,
    "wandb": _wandb,
    "mlflow": _mlflow,
}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    """A value that every tool can keep."""
    return value if isinstance(value, str | int | float | bool) else str(value)
