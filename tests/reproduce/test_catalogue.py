"""Experiments are complete configurations: the paper's at its scale, and one run for one configuration."""

import dataclasses

import pytest

from labelmend.errors import InputError
from labelmend.methods import find
from labelmend.reproduce.catalogue import FIGURES, TABLES, Asked, key
from labelmend.reproduce.claims import CLAIMS, claimed
from labelmend.reproduce.plan import epochs_of, shared_settings
from labelmend.reproduce.protocol import PAPER, SCALES, SMALL
from labelmend.training.config import Optimisation, TrainConfig
from labelmend.training.settings import parse

ONE = Asked(seeds=1)


def runs(name, scale=PAPER, asked=ONE):
    return (TABLES | FIGURES)[name].runs(scale, asked)


def built(run):
    """The method as it will be trained, its options and its optimisation."""
    config = run.config
    entry = find(config.method)
    options = parse(entry.options, config.settings)
    return entry.build(options, config.epochs), options, parse(Optimisation, config.settings)


@pytest.mark.parametrize(
    ("name", "count"),
    [("table1", 20), ("table2", 32), ("table3", 24), ("table4", 50), ("tinyimagenet", 9), ("clothing1m", 2)],
)
def test_the_papers_tables_have_its_runs(name, count):
    assert len(runs(name)) == count
    assert len({run.key for run in runs(name)}) == count


@pytest.mark.parametrize("run", runs("table2"), ids=lambda run: f"{run.data}-{run.row}-{run.noise}")
def test_table_2_has_the_hyperparameters_of_appendix_b(run):
    method, options, optimisation = built(run)
    assert run.config.net == "preact-resnet18"
    assert (optimisation.learning_rate, optimisation.momentum, optimisation.weight_decay) == (0.1, 0.9, 1e-4)
    assert optimisation.batch_size == 128
    assert optimisation.augment == "crop-flip"
    assert run.config.epochs == 300
    assert [epoch for epoch in range(2, 301) if method.rate(epoch) < method.rate(epoch - 1)] == [101, 251]
    assert method.rate(300) == pytest.approx(0.01)
    assert (options.mixup_alpha, options.em_iterations, options.eta) == (32.0, 10, 1.0)
    assert (options.details, options.noise_model) == ("paper", "bmm")
    assert all(method.tracks(epoch) for epoch in range(1, 301))
    changes = [epoch for epoch in range(2, 301) if method.phase(epoch) != method.phase(epoch - 1)]
    assert changes == ([106] if "dyr" in run.config.method else [])
    assert epochs_of(run.config) == {"drops": "100, 250", "corrects": "106" if "dyr" in run.config.method else ""}
    assert (run.config.noise, run.config.limit, run.config.size) == (f"symmetric:{run.noise / 100:g}", None, None)


@pytest.mark.parametrize("run", runs("table1"), ids=lambda run: f"{run.row}-{run.noise}")
def test_table_1_has_the_schedule_without_mixup(run):
    method, options, optimisation = built(run)
    assert run.config.epochs == 120
    assert [epoch for epoch in range(2, 121) if method.rate(epoch) < method.rate(epoch - 1)] == [31, 81, 111]
    changes = [epoch for epoch in range(2, 121) if method.phase(epoch) != method.phase(epoch - 1)]
    assert changes == ([] if run.config.method == "ce" else [31])
    assert optimisation.batch_size == 128
    assert options.details == "paper"


def test_dynamic_mixup_comes_before_its_bootstrapping():
    for run in runs("table3"):
        method, *_ = built(run)
        changes = [epoch for epoch in range(2, 301) if method.phase(epoch) != method.phase(epoch - 1)]
        assert changes == ([106, 111] if run.config.method.startswith("md") else [106])
        assert epochs_of(run.config)["corrects"] == str(changes[-1])


def test_table_5_never_draws_the_true_label_and_its_rivals_get_what_they_need():
    for run in runs("table5"):
        assert run.config.noise == f"symmetric-excl:{run.noise / 100:g}"
        assert (run.config.trusted is None) == (run.row not in ("MentorNet", "L2RW"))


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_every_run_of_every_experiment_can_be_built(scale):
    every = [run for name in TABLES | FIGURES for run in runs(name, scale)] + claimed(scale, ONE)
    for run in {run.key: run for run in every}.values():
        built(run)


def test_a_run_that_two_experiments_need_is_one_run():
    shared = {run.key for run in runs("table2")} & {run.key for run in runs("table3")}
    assert len(shared) == 2
    assert {run.key for run in runs("fig1")} <= {run.key for run in runs("table2")}
    assert len({run.key for run in runs("frequency")} & {run.key for run in runs("em-iterations")}) == 1


OTHER = {
    "source": "digits", "method": "m", "net": "mlp", "epochs": 7, "noise": "pair:0.1", "labels": "a.npz",
    "trusted": "3-per-class", "test": "b", "image_column": "c", "label_column": "d", "id_column": "e", "size": 7,
    "skip_bad": True, "init": "f", "limit": 7, "seed": 7, "settings": {"eta": 7}, "time": "7m",
    "features": "j", "unfreeze": True, "columns": "k", "drop_columns": "l", "category": "m", "text_column": "n",
    "decisions": "o",
}  # fmt: skip
CIRCUMSTANCES = {
    "out": "g", "root": "h", "memory": 7.0, "workers": 7, "device": "cpu", "compile": "on", "threads": 7,
    "save_every": 7.0, "log": "tensorboard", "resume": True, "allow_drift": True,
}  # fmt: skip


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(TrainConfig)])
def test_only_circumstances_do_not_make_another_run(field):
    config = runs("table1")[0].config
    changed = dataclasses.replace(config, **{field: (OTHER | CIRCUMSTANCES)[field]})
    assert changed != config
    assert (key(changed) == key(config)) == (field in CIRCUMSTANCES)


def test_what_is_asked_for_narrows_an_experiment():
    chosen = Asked(seeds=2, only=frozenset({"m"}), noise=frozenset({50, 80}), data=frozenset({"fashion-mnist"}))
    found = runs("table2", SMALL, chosen)
    assert [(run.row, run.noise, run.config.seed) for run in found] == [
        ("M", 50, 0),
        ("M", 80, 0),
        ("M", 50, 1),
        ("M", 80, 1),
    ]
    assert {run.config.source for run in found} == {"fashion-mnist"}


def test_a_data_set_has_its_own_folder_in_the_root_or_shares_it(tmp_path):
    (tmp_path / "cifar100").mkdir()
    roots = {run.data: run.config.root for run in runs("table2", asked=Asked(1, str(tmp_path)))}
    assert roots == {"cifar10": str(tmp_path), "cifar100": str(tmp_path / "cifar100")}


def test_every_claim_has_a_name_of_its_own_and_runs_on_both_data_sets():
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        for data in ("cifar10", "cifar100"):
            assert len(claim.planned(SMALL, Asked(seeds=3), data)) == 3 * (1 + (claim.second is not None))


def test_what_all_runs_share_is_said_once():
    shared = shared_settings(runs("appendix-a"))
    assert shared["batch_size"] == "128"
    assert "noise_model" not in shared


def test_a_fraction_above_one_is_no_distance_between_passes():
    entry = find("m-dyr-h")
    with pytest.raises(InputError, match="whole number"):
        entry.build(parse(entry.options, {"track_every": "2.5"}), 30)
