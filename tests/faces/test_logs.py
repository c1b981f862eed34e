"""Epochs for TensorBoard, Weights & Biases and MLflow, inside the run directory."""

import dataclasses
import json
import sqlite3
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import pytest
from accelerate import Accelerator
from rich.console import Console

from labelmend.errors import InputError, InterruptedRunError
from labelmend.faces.logs import RunLog, check_tool
from labelmend.faces.terminal import run_with_progress
from labelmend.run.directory import RunDirectory
from labelmend.training.config import TrainConfig

TOOLS = ("tensorboard", "wandb", "mlflow")
theirs = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning", "ignore::UserWarning:pydantic"
)
"""Warnings of other people's loggers, of which the user of a run sees none."""


def record(epoch, **more):
    return {"epoch": epoch, "train_loss": 1 / epoch, "test_accuracy": 0.5, "tracked": True, "mixture": {"a": 1}} | more


def scalars(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {name: [(event.step, event.value) for event in events.Scalars(name)] for name in events.Tags()["scalars"]}


def logged(run, tool, epochs, **settings):
    """Log these epochs as one session of a run does: with its engine, it records an epoch, and then tells its log."""
    Accelerator(cpu=True)
    log = RunLog(tool, run, settings=settings)
    for epoch in epochs:
        run.append_epoch(record(epoch))
        log.epoch(record(epoch))
    log.close()


@pytest.fixture
def run(tmp_path):
    directory = RunDirectory(tmp_path / "a run")
    directory.create({"status": "running"})
    return directory


@pytest.fixture
def installed(monkeypatch):
    """Put a module of this name, with these members, in the place of a package."""

    def put(name, **members):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return put


@theirs
def test_a_resumed_run_goes_on_in_its_log_for_tensorboard(tmp_path, after):
    config = TrainConfig("digits", str(tmp_path / "run"), epochs=4, limit=60, threads=1, method="ce", log="tensorboard")
    with pytest.raises(InterruptedRunError):
        run_with_progress(config, Console(quiet=True), signals=after(7), report=False)
    run_with_progress(dataclasses.replace(config, resume=True), Console(quiet=True), report=False)
    found = scalars(tmp_path / "run/tensorboard")
    records = [json.loads(line) for line in (tmp_path / "run/epochs.jsonl").read_text().splitlines()]
    assert [each["epoch"] for each in records] == [1, 2, 3, 4]
    for name in ("train_loss", "test_accuracy", "lr"):
        assert found[name] == [(each["epoch"], pytest.approx(each[name])) for each in records]


@theirs
def test_a_log_that_begins_late_begins_with_the_first_epoch(run):
    for epoch in (1, 2):
        run.append_epoch(record(epoch))
    logged(run, "tensorboard", [3])
    assert [step for step, _ in scalars(run.path / "tensorboard")["train_loss"]] == [1, 2, 3]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_missing_tool_is_named_before_the_run(tool, tmp_path, labelmend, monkeypatch):
    monkeypatch.setitem(sys.modules, tool, None)
    ended = labelmend("train", "digits", "--out", tmp_path / "run", "--log", tool)
    assert ended.returncode == 2
    assert f"pip install 'labelmend[{tool}]'" in ended.stderr
    assert not (tmp_path / "run").exists()


def test_a_folder_that_no_database_address_can_name_is_refused_before_the_run(tmp_path, installed):
    installed("mlflow")
    with pytest.raises(InputError, match="without"):
        check_tool("mlflow", tmp_path / "50%")


def test_wandb_is_offline_inside_the_run_beside_a_run_of_the_users(run, installed):
    started = []

    def init(**options):
        started.append(SimpleNamespace(options=options, logged=[], finished=0))
        name = f"offline-run-2026010{len(started)}_120000-{options['id'] or 'abc123'}"
        (run.path / "wandb" / name).mkdir(parents=True)

        def log(values, step):
            started[-1].logged.append((step, values))

        def finish():
            started[-1].finished += 1

        return SimpleNamespace(log=log, finish=finish)

    installed("wandb", init=init, Settings=lambda **options: options)
    logged(run, "wandb", [1, 2], net="mlp", columns=["a"])
    logged(run, "wandb", [3], net="mlp")
    first, second = started
    assert first.options["mode"] == "offline"
    assert first.options["dir"] == str(run.path)
    assert first.options["config"] == {"net": "mlp", "columns": "['a']"}
    assert first.options["reinit"] == "create_new"
    assert second.options["id"] == "abc123"
    assert second.options["resume"] == "allow"
    assert [step for step, _ in first.logged + second.logged] == [1, 2, 3]
    assert first.logged[0][1] == {"train_loss": 1.0, "test_accuracy": 0.5}
    assert first.finished == second.finished == 1


def test_mlflow_has_a_database_inside_the_run_and_the_users_store_comes_back(run, installed):
    calls, uris, runs = [], ["the user's"], []

    def start_run(**options):
        calls.append(("start", options["run_id"], uris[-1]))
        runs.append(SimpleNamespace(info=SimpleNamespace(run_id="abc")))

    mlflow = installed(
        "mlflow",
        get_tracking_uri=lambda: uris[-1],
        set_tracking_uri=uris.append,
        search_runs=lambda **options: runs[:1],
        search_experiments=lambda **options: [],
        create_experiment=lambda **options: "1",
        start_run=start_run,
        log_params=lambda values: calls.append(("params", values)),
        log_metrics=lambda values, step: calls.append((step, values)),
        end_run=lambda: calls.append(("end",)),
    )
    mlflow.utils = SimpleNamespace(validation=SimpleNamespace(MAX_PARAM_VAL_LENGTH=500, MAX_PARAMS_TAGS_PER_BATCH=100))
    logged(run, "mlflow", [1], net="mlp")
    logged(run, "mlflow", [2], net="mlp")
    own = f"sqlite:///{run.path.resolve()}/mlflow/mlflow.db"
    numbers = {"train_loss": 1.0, "test_accuracy": 0.5}
    assert calls == [
        *[("start", None, own), ("params", {"net": "mlp"}), (1, numbers), ("end",)],
        *[("start", "abc", own), (2, numbers | {"train_loss": 0.5}), ("end",)],
    ]
    assert uris[-1] == "the user's"


@theirs
def test_wandb_itself_takes_the_epochs(run, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "online")
    logged(run, "wandb", [1, 2], net="mlp")
    logged(run, "wandb", [3], net="mlp")
    first, second = sorted((run.path / "wandb").glob("offline-run-*"))
    assert first.name.rpartition("-")[2] == second.name.rpartition("-")[2]
    assert all(list(folder.glob("*.wandb")) for folder in (first, second))


@theirs
def test_mlflow_itself_takes_the_epochs(run):
    pytest.importorskip("mlflow")
    logged(run, "mlflow", [1, 2], net="mlp")
    logged(run, "mlflow", [3], net="mlp")
    with sqlite3.connect(run.path / "mlflow/mlflow.db") as database:
        found = database.execute("select step, value from metrics where key = 'train_loss' order by step").fetchall()
        (runs,) = database.execute("select count(*) from runs").fetchone()
        params = dict(database.execute("select key, value from params").fetchall())
    database.close()
    assert found == [(1, 1.0), (2, 0.5), (3, pytest.approx(1 / 3))]
    assert runs == 1
    assert params == {"net": "mlp"}
