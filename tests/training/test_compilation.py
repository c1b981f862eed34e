import json

import pytest
import torch
from torch import nn

from labelmend.core import Learner
from labelmend.errors import InputError
from labelmend.training import compilation
from labelmend.training.compilation import Decision, decide

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")


@pytest.fixture
def quick(monkeypatch):
    """Compilation that wires everything up and generates no code."""
    monkeypatch.setattr(compilation, "BACKEND", "eager")


@pytest.fixture
def timed(monkeypatch):
    """Steps that take as long as the test says: eager first, compiled second."""

    def set_times(*seconds):
        times = iter(seconds)
        monkeypatch.setattr(compilation, "seconds_a_step", lambda network, inputs: next(times))

    return set_times


def small():
    return nn.Sequential(nn.Flatten(), nn.Linear(4, 3))


def example():
    return torch.zeros(5, 4)


@pytest.mark.parametrize(("asked", "compiled"), [("on", True), ("off", False)])
def test_what_is_asked_for_is_done_without_a_trial(asked, compiled):
    def no_trial():
        raise AssertionError("a batch was asked for")

    assert decide(asked, small(), no_trial, steps=10**9) == Decision(compiled, "as asked")


def test_a_short_run_is_not_compiled_and_no_trial_is_made(timed):
    timed(0.1)
    decision = decide("auto", small(), example, steps=20_000)
    assert not decision.compiled
    assert "33 min is too short" in decision.reason


def test_a_long_run_is_compiled_if_the_trial_was_faster(timed):
    timed(0.1, 0.08)
    decision = decide("auto", small(), example, steps=10**6)
    assert decision.compiled
    assert "20% faster, which saves about 5.6 h" in decision.reason


@pytest.mark.parametrize("compiled", [0.099, 0.2])
def test_a_long_run_is_not_compiled_if_the_trial_was_no_faster(timed, compiled):
    timed(0.1, compiled)
    decision = decide("auto", small(), example, steps=10**6)
    assert not decision.compiled
    assert "times as long" in decision.reason


def test_a_compiler_that_fails_is_not_used(monkeypatch):
    def fail(network, inputs):
        if not isinstance(network, nn.Sequential):
            raise RuntimeError("no compiler\nlong story")
        return 0.1

    monkeypatch.setattr(compilation, "seconds_a_step", fail)
    decision = decide("auto", small(), example, steps=10**6)
    assert decision == Decision(False, "no: it failed here (no compiler)")


def test_the_trial_leaves_the_network_as_it_was():
    network = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    decide("auto", network, lambda: torch.randn(8, 4), steps=1)
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert all(parameter.grad is None for parameter in network.parameters())


def test_only_full_batches_in_training_mode_take_the_compiled_pass():
    network = small()
    learner, calls = Learner(network, torch.optim.SGD(network.parameters(), lr=0.1)), []
    learner.compile_for(5, lambda inputs: calls.append(len(inputs)) or network(inputs))
    learner(torch.zeros(5, 4))
    learner(torch.zeros(3, 4))
    with learner.evaluating():
        learner(torch.zeros(5, 4))
    assert calls == [5]


def test_a_compiled_run_learns_what_an_eager_one_learns_and_resumes_as_it_was(quick, train_digits):
    eager, compiled = (train_digits(asked, compile=asked) for asked in ("off", "on"))
    assert compiled.read()["compile"] == {"compiled": True, "reason": "as asked"}
    assert eager.read()["compile"] == {"compiled": False, "reason": "as asked"}
    losses = [json.loads(run.epochs_jsonl.read_text().splitlines()[-1])["train_loss"] for run in (eager, compiled)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    again = train_digits("on", compile="off", resume=True)
    assert again.read()["compile"] == {"compiled": True, "reason": "as asked"}


def test_a_failing_compiler_that_was_asked_for_is_an_error_to_act_on(monkeypatch, train_digits):
    monkeypatch.setattr(compilation, "compiled", lambda network: lambda inputs: 1 / 0)
    with pytest.raises(InputError, match="--compile off"):
        train_digits(compile="on")


def test_short_runs_say_why_they_are_not_compiled(train_digits):
    assert "too short" in train_digits().read()["compile"]["reason"]
