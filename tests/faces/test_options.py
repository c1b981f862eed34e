"""The options of `train` are described once."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import typer
from rich.markup import escape
from typer.main import get_command
from typer.testing import CliRunner

from labelmend import InputError, TrainConfig
from labelmend.faces.cli import app
from labelmend.faces.options import takes_every_option
from labelmend.report.build import command_line
from labelmend.training.config import about, flag
from labelmend.training.prepare import prepare
from labelmend.training.session import train

COMMANDS = get_command(app).commands


def options_of(command):
    return {name: option for option in COMMANDS[command].params for name in option.opts if name.startswith("--")}


def test_train_has_an_option_for_each_field_with_its_help_and_default():
    options = options_of("train")
    described = {flag(field): field for field in dataclasses.fields(TrainConfig) if field.name != "source"}
    assert options.keys() == described.keys()
    for name, field in described.items():
        assert options[name].help.startswith(escape(field.metadata["help"]).removesuffix("."))
        if field.default not in (dataclasses.MISSING, None):
            assert options[name].default == field.default


def test_a_field_is_all_that_a_new_option_takes():
    @dataclasses.dataclass(frozen=True)
    class Larger(TrainConfig):
        patience: int = dataclasses.field(default=3, metadata=about("Training", "Epochs to wait.", least=1))

    asked = []
    small = typer.Typer()

    @small.command()
    @takes_every_option(Larger)
    def train(context: typer.Context, **given) -> None:
        asked.append(Larger(**given | {"settings": {}}))

    run = CliRunner().invoke(small, ["digits", "--out", "run", "--patience", "5"])
    assert run.exit_code == 0, run.output
    assert asked[0].patience == 5
    assert "at least 1" in CliRunner().invoke(small, ["--help"]).output
    with pytest.raises(InputError, match="--patience must be at least 1, not 0"):
        Larger("digits", "run", patience=0)
    assert "--patience 5" in command_line(dataclasses.asdict(asked[0]))


@pytest.mark.parametrize("command", ["predict", "noise", "demo", "reproduce"])
def test_options_that_commands_share_have_one_description(command):
    trained, own = options_of("train"), options_of(command)
    shared = {"--image-column", "--label-column", "--id-column", "--skip-bad", "--seed", "--threads", "--device"}
    for name in shared & own.keys():
        assert own[name].help == trained[name].help


def test_the_command_of_the_report_uses_options_that_exist():
    config = TrainConfig("digits", "run", settings={"eta": 2}, skip_bad=True, epochs=3)
    words = command_line(dataclasses.asdict(config)).split()
    assert {word for word in words if word.startswith("--")} <= options_of("train").keys()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epochs": 1.5}, "--epochs takes a whole number or none, not 1.5"),
        ({"epochs": 0}, "--epochs must be at least 1, not 0"),
        ({"threads": 5000}, "--threads must be between 1 and 1024, not 5000"),
        ({"save_every": float("nan")}, "--save-every must be at least 0, not nan"),
        ({"seed": True}, "--seed takes a whole number, not True"),
        ({"log": "comet"}, "valid: mlflow, tensorboard, wandb"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_from_python_too(given, message):
    with pytest.raises(InputError, match=message):
        TrainConfig("digits", "run", **given)


def test_paths_are_taken_and_kept_as_text():
    config = TrainConfig(Path("a"), Path("b"), root=Path("c"))
    assert (config.source, config.out, config.root) == ("a", "b", "c")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run that no test changes."""
    settings = {"eta": "2", "track_every": "1"}
    out = str(tmp_path_factory.mktemp("trained") / "run")
    config = TrainConfig("digits", out, noise="symmetric:0.3", epochs=1, limit=100, settings=settings)
    return train(prepare(config))[0].path


@pytest.fixture
def run(tmp_path, trained):
    shutil.copytree(trained, tmp_path / "run")
    return tmp_path / "run"


def test_resume_alone_takes_everything_from_the_run(run, labelmend):
    before = (run / "labels.csv").read_bytes()
    (run / "labels.csv").unlink()
    resumed = labelmend("train", "--out", run, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert (run / "labels.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--noise", "symmetric:0.3", "--set", "eta=2"), 0, ""),
        (("--noise", "symmetric:0.4"), 2, "--noise symmetric:0.3"),
        (("--method", "ce"), 2, "--method"),
        (("--set", "eta=3"), 2, "another options"),
        (("--seed", "0"), 0, ""),
    ],
)
def test_an_option_given_again_is_checked(run, labelmend, words, code, message):
    resumed = labelmend("train", "--out", run, "--resume", *words)
    assert resumed.returncode == code, resumed.stderr
    assert message in resumed.stderr


@pytest.mark.parametrize(
    "config", [None, [], {}, {"source": 3}, {"source": "digits", "epochs": "many"}, {"source": "digits", "settings": 1}]
)
def test_a_damaged_configuration_is_refused_in_one_sentence(run, labelmend, config):
    described = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(described | {"config": config}))
    resumed = labelmend("train", "--out", run, "--resume")
    assert resumed.returncode == 2
    assert len(resumed.stderr.splitlines()) == 1


def test_without_a_source_and_without_resume_the_source_is_asked_for(tmp_path, labelmend):
    ended = labelmend("train", "--out", tmp_path / "run")
    assert ended.returncode == 2
    assert "SOURCE is missing" in ended.stderr
