import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState

import labelmend
from labelmend.errors import InputError, InterruptedRunError
from labelmend.nets import FAST_NETS
from labelmend.report.made import repeated
from labelmend.training import calibration, engine
from labelmend.training.budget import SMALL_COST, Cost, Work, default_seconds, fit_budget, measure, parse_duration
from labelmend.training.config import TrainConfig
from labelmend.training.optimiser import FAST
from labelmend.training.prepare import prepare
from labelmend.training.session import train


@pytest.mark.parametrize("text", ["", "20", "m", "-5m", "1d", "20 m", "4s", "1h-3m", "nan", "9" * 400 + "h"])
def test_what_is_no_duration_is_refused_in_one_sentence(text):
    with pytest.raises(InputError, match="--time"):
        parse_duration(text)


def test_larger_sets_get_more_time_but_less_a_sample():
    times = [default_seconds(samples) for samples in (100, 3_000, 50_000, 1_000_000)]
    assert times == sorted(times)
    assert 2.5 * 60 < times[1] < 3.5 * 60
    assert 18 * 60 < times[2] <= 20.5 * 60


COSTS = {"narrow": Cost(1e-3, 3e-4), "middle": Cost(2e-3, 6e-4), "wide": Cost(8e-3, 2.4e-3)}


def test_more_time_gives_a_wider_network_and_never_takes_longer_than_there_is():
    work, before = Work(50_000, 10_000), 0
    for seconds in (60, 600, 1200, 3600, 36_000):
        fit = fit_budget(COSTS.items(), work, seconds)
        width = list(COSTS).index(fit.net)
        assert width >= before
        assert fit.seconds <= seconds or fit.epochs == 1
        before = width
    assert before == 2


def test_given_epochs_leave_the_width_to_the_time():
    work = Work(10_000, 0)
    assert fit_budget(COSTS.items(), work, 150, epochs=5).net == "middle"
    assert fit_budget(COSTS.items(), work, 5, epochs=5).net == "narrow"
    assert fit_budget(COSTS.items(), work, 5, epochs=5).epochs == 5


def test_networks_wider_than_the_first_that_is_too_wide_are_not_measured():
    def measured():
        yield from list(COSTS.items())[:2]
        raise AssertionError("there is no need to know what the widest costs")

    assert fit_budget(measured(), Work(50_000, 0), 600).net == "narrow"


def test_several_networks_share_the_time():
    one, four = (fit_budget(COSTS.items(), Work(10_000, 0, networks), 200) for networks in (1, 4))
    assert four.epochs < one.epochs


def test_smaller_images_in_a_part_of_the_run_leave_time_for_more_epochs():
    costs = {"narrow": COSTS["narrow"]}
    whole, small = (fit_budget(costs.items(), Work(50_000, 0, small_until=share), 1200) for share in (0.0, 0.5))
    assert small.epochs > whole.epochs
    assert small.seconds <= 1200


def test_further_views_in_the_end_are_part_of_the_time():
    costs = {"narrow": COSTS["narrow"]}
    one, six = (fit_budget(costs.items(), Work(50_000, 10_000, views=views), 1200) for views in (1, 6))
    assert six.epochs == one.epochs - 2
    assert six.seconds == pytest.approx(six.epochs * one.seconds / one.epochs + 5 * 60_000 * 3e-4)


def test_one_epoch_is_not_on_smaller_images_and_two_have_one_that_is():
    cost = Cost(1e-3, 0.0)
    seconds = [Work(1_000, 0, small_until=0.5).seconds(cost, epochs) for epochs in (1, 2, 3, 4)]
    assert seconds == pytest.approx([1, 1 + SMALL_COST, 2 + SMALL_COST, 2 + 2 * SMALL_COST])


def test_measuring_changes_nothing_but_the_clock():
    before = torch.get_rng_state()
    cost = measure("fast-16", (3, 32, 32), 4, batch_size=8, optimiser=FAST, device="cpu")
    assert 0 < cost.looking < cost.learning
    assert torch.equal(torch.get_rng_state(), before)


@pytest.fixture
def pictures():
    """A few pictures of two classes, bright and dark."""
    y = np.arange(48) % 2
    x = np.random.default_rng(0).integers(0, 120, (48, 16, 16, 3)) + 130 * y[:, None, None, None]
    return x.astype(np.uint8), y


@pytest.fixture(autouse=True)
def nothing_around():
    """No Accelerator that another test has left, whose precision a run would take."""
    AcceleratorState._reset_state()


@pytest.fixture
def costs(monkeypatch):
    """Machines of known speed: seconds a sample for each network in turn."""

    def pretend(factor):
        def cost(net, *shape, **options):
            return Cost(factor * (1 + FAST_NETS.index(net)), factor / 3)

        monkeypatch.setattr(calibration, "measure", cost)

    return pretend


def chosen(run):
    return json.loads(run.directory.run_json.read_text())["chosen"]


def test_a_slower_machine_gets_less_to_do_and_the_run_says_why(pictures, costs):
    options = {"time": "60s", "progress": False, "report": False, "threads": 1, "method": "ce"}
    options["settings"] = {"track_every": "50"}
    costs(0.004)
    quick = chosen(labelmend.train(pictures, **options))
    costs(0.2)
    slow = chosen(labelmend.train(pictures, **options))
    assert slow["epochs"] < quick["epochs"]
    assert FAST_NETS.index(slow["net"]) <= FAST_NETS.index(quick["net"])
    assert "minutes here" in slow["reasons"]["epochs"]
    assert slow["seconds"] <= 60


@pytest.mark.parametrize(
    ("factor", "precision", "why"), [(0.5, "bf16", "2.0 times as fast"), (0.95, "no", "only 1.05 times as fast")]
)
def test_a_timed_run_takes_bf16_where_this_cpu_gains_by_it(pictures, monkeypatch, factor, precision, why):
    def cost(net, *shape, precision, **options):
        learning = 0.1 * (factor if precision == "bf16" else 1) * (1 + FAST_NETS.index(net))
        return Cost(learning, learning / 3)

    monkeypatch.setattr(calibration, "measure", cost)
    monkeypatch.setattr(calibration, "bf16_on_cpu", lambda: True)
    monkeypatch.setattr(engine, "bf16_on_cpu", lambda: True)
    options = {"progress": False, "report": False, "threads": 1, "method": "ce"}
    run = labelmend.train(pictures, time="60s", settings={"track_every": "50"}, **options)
    assert chosen(run)["precision"] == precision
    assert why in chosen(run)["reasons"]["precision"]
    again = repeated(run.directory.read())
    assert again["settings"].get("precision", "no") == precision
    same = labelmend.train(pictures, net=again["net"], epochs=again["epochs"], settings=again["settings"], **options)
    model = "model.safetensors"
    assert (same.directory.path / model).read_bytes() == (run.directory.path / model).read_bytes()


def test_a_cpu_without_bf16_is_not_asked_for_it(pictures, costs, monkeypatch):
    monkeypatch.setattr(calibration, "bf16_on_cpu", lambda: False)
    costs(0.2)
    options = {"time": "20s", "progress": False, "report": False, "threads": 1, "method": "ce"}
    assert chosen(labelmend.train(pictures, **options))["precision"] == "no"


def test_choices_that_are_given_need_no_measuring(pictures, monkeypatch):
    def refused(*args, **options):
        raise AssertionError("nothing is left to measure")

    monkeypatch.setattr(calibration, "measure", refused)
    run = labelmend.train(pictures, net="fast-16", epochs=1, progress=False, report=False, threads=1)
    assert chosen(run)["seconds"] is None
    assert chosen(run)["precision"] == "no"


def test_a_run_that_had_little_time_is_repeated_with_the_folds_that_it_had(pictures, costs):
    costs(1e-4)
    run = labelmend.train(pictures, time="5s", progress=False, report=False, threads=1, settings={"controls": "8"})
    described = run.directory.read()
    again = repeated(described)
    assert again["settings"]["folds"] == str(described["options"]["folds"])
    assert "folds" not in repeated(described | {"config": described["config"] | {"time": None}})["settings"]


def test_a_run_in_bf16_is_not_resumed_where_it_would_be_imitated(pictures, monkeypatch, tmp_path, after):
    np.savez(tmp_path / "pictures.npz", x=pictures[0], y=pictures[1])
    config = TrainConfig(str(tmp_path / "pictures.npz"), str(tmp_path / "run"), time="20s", method="ce", threads=1)

    def cost(net, *shape, precision, **options):
        return Cost(0.01 * (1 if precision == "no" else 0.5) * (1 + FAST_NETS.index(net)), 1e-3)

    monkeypatch.setattr(calibration, "measure", cost)
    for module in (calibration, engine):
        monkeypatch.setattr(module, "bf16_on_cpu", lambda: True)
    with pytest.raises(InterruptedRunError):
        train(prepare(config), signals=after(3))
    monkeypatch.setattr(engine, "bf16_on_cpu", lambda: False)
    with pytest.raises(InputError, match="no bf16 instructions"):
        prepare(dataclasses.replace(config, resume=True, allow_drift=True))


def test_each_network_is_measured_once_in_each_precision(pictures, monkeypatch):
    measured = []

    def cost(net, *shape, precision, **options):
        measured.append((net, precision))
        return Cost(0.02 * (1 if precision == "no" else 0.5) * (1 + FAST_NETS.index(net)), 1e-3)

    monkeypatch.setattr(calibration, "measure", cost)
    for module in (calibration, engine):
        monkeypatch.setattr(module, "bf16_on_cpu", lambda: True)
    labelmend.train(pictures, time="20s", method="ce", threads=1, progress=False, report=False)
    assert len(measured) == len(set(measured)) > 2


def test_an_accelerator_of_the_program_around_keeps_its_precision(pictures):
    program = "\n".join(
        [
            "import numpy as np, labelmend as lm",
            "from accelerate import Accelerator",
            "accelerator = Accelerator(cpu=True, mixed_precision='no')",
            "rows = np.arange(120.0, dtype='float32').reshape(60, 2), np.arange(60) % 2",
            "lm.train(rows, epochs=1, progress=False, report=False)",
            "try:",
            "    lm.train(rows, epochs=1, progress=False, report=False, settings={'precision': 'fp16'})",
            "except lm.InputError as error:",
            "    print(accelerator.mixed_precision, error)",
        ]
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.startswith("no this program has an Accelerator with mixed_precision=no"), done.stderr


def test_a_resumed_run_keeps_what_it_chose_on_a_machine_that_was_faster(pictures, costs, tmp_path, after):
    y = pictures[1]
    np.savez(tmp_path / "pictures.npz", x=pictures[0], y=y)
    options = {"source": str(tmp_path / "pictures.npz"), "threads": 1, "time": "20s"}
    costs(0.02)
    whole, _ = train(prepare(TrainConfig(out=str(tmp_path / "whole"), **options)))
    config = TrainConfig(out=str(tmp_path / "cut"), **options)
    with pytest.raises(InterruptedRunError):
        train(prepare(config), signals=after(3))
    costs(0.5)
    run, _ = train(prepare(dataclasses.replace(config, resume=True)))
    for name in ("model.safetensors", "labels.csv", "noise.json"):
        assert (run.path / name).read_bytes() == (whole.path / name).read_bytes(), name
