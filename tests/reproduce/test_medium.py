"""The medium scale: CIFAR-10 itself and its human labels, with only the runs that its tables and figures show."""

import csv
import importlib
from dataclasses import replace
from pathlib import Path

import pytest
from test_catalogue import ONE, built, runs

from labelmend.reproduce.catalogue import FIGURES, TABLES, Asked, key
from labelmend.reproduce.claims import claimed
from labelmend.reproduce.figures import FIGURES as DRAWN
from labelmend.reproduce.figures import Drawing
from labelmend.reproduce.protocol import MEDIUM, PAPER, SMALL, Scale
from labelmend.reproduce.reproduce import Reproduction
from labelmend.reproduce.runs import Result, RunStore
from labelmend.reproduce.tables import by_run

ROOT = Path(__file__).parents[2]
SEEDS_OF_THE_MAIN_CLAIM = {("CE", 50), ("M-DYR-H", 50)}


def test_table_2_has_every_cell_once_and_three_seeds_for_the_main_claim():
    found = runs("table2", MEDIUM)
    assert len({run.key for run in found}) == len(found) == 5 * 4 + 2 * 2
    assert {(run.row, run.noise) for run in found if run.config.seed} == SEEDS_OF_THE_MAIN_CLAIM
    assert {run.config.seed for run in found} == {0, 1, 2}


@pytest.mark.parametrize("run", runs("table2", MEDIUM), ids=lambda run: f"{run.row}-{run.noise}-{run.config.seed}")
def test_phases_and_drops_are_at_the_papers_fractions_of_a_shorter_schedule(run):
    method, options, optimisation = built(run)
    epochs = run.config.epochs
    drops = [epoch - 1 for epoch in range(2, epochs + 1) if method.rate(epoch) < method.rate(epoch - 1)]
    assert drops == [round(epochs * drop / 300) for drop in (100, 250)]
    assert (options.details, options.noise_model, options.schedule) == ("paper", "bmm", "mixup")
    assert (optimisation.learning_rate, optimisation.momentum, optimisation.weight_decay) == (0.1, 0.85, 1.3e-3)
    assert (optimisation.rates, optimisation.average, optimisation.filter_rate) == ("published", 0.99, 0.035)
    assert run.config.net.startswith("fast-")
    assert run.config.limit is None


def test_human_labels_are_found_in_the_root_and_where_they_lie_does_not_matter(tmp_path):
    (tmp_path / "cifar10n").mkdir()
    for name in ("labels.npz", "CIFAR-10_human.pt"):
        (tmp_path / "cifar10n" / name).touch()
        found = runs("cifar10n", MEDIUM, Asked(1, str(tmp_path)))
        assert {run.config.labels for run in found} == {
            f"{tmp_path}/cifar10n/{name}:{labels}" for labels in ("aggre_label", "random_label1")
        }
        assert [key(run.config) for run in found] == [run.key for run in runs("cifar10n", MEDIUM)]
        (tmp_path / "cifar10n" / name).unlink()
    assert len({run.key for run in found}) == 12


def test_the_command_line_asks_for_no_more_seeds_than_the_user_did(tmp_path):
    words = Reproduction(("table2",), MEDIUM, ONE, tmp_path).words("table2")
    assert words == ["reproduce", "table2", "--scale", "medium", "--seeds", "1"]
    assert Reproduction(("fig1",), MEDIUM, Asked(3), tmp_path).words("fig1")[-1] == "1"


def test_a_claim_is_checked_as_far_as_the_runs_of_tables_decide_it():
    shown = {run.key for name in TABLES for run in runs(name, MEDIUM)}
    needed = claimed(MEDIUM, ONE)
    assert {run.key for run in needed} < shown
    assert {(run.row, run.noise) for run in needed if run.config.seed} == SEEDS_OF_THE_MAIN_CLAIM
    assert "M-DYR-H without R" not in {run.row for run in needed}
    assert "M-DYR-H without R" in {run.row for run in claimed(SMALL, ONE)}


def test_other_scales_have_none_of_its_own_experiments():
    for scale in (SMALL, PAPER):
        for name in ("cifar10n", "memorising", "noise-models", "passes", "steps"):
            assert not (TABLES | FIGURES)[name].runs(scale, ONE)


def test_a_tenth_of_the_images_is_shown_as_often_as_all_of_them():
    whole, tenth = MEDIUM.stages["cifar10"], MEDIUM.stages["cifar10-tenth"]
    assert tenth.limit == tenth.samples == whole.samples / 10
    assert tenth.epochs == {schedule: 10 * epochs for schedule, epochs in whole.epochs.items()}


def test_the_curve_shows_how_much_was_memorised_by_network_and_epochs(tmp_path):
    stage = replace(SMALL.stages["cifar10"], limit=150)
    store = RunStore(tmp_path / "runs")
    run = FIGURES["memorising"].runs(MEDIUM, ONE)[0]
    settings = {name: value for name, value in run.config.settings.items() if name != "filter_rate"}
    config = replace(run.config, source="digits", net="mlp", limit=150, settings=settings)
    short = [replace(run, config=replace(config, epochs=epochs)) for epochs in (60, 5)]
    for run in short:
        store.make(run.config)
    drawn = DRAWN["memorising"](Drawing(Scale("medium", {"cifar10": stage}, ("cifar10",)), short, store))
    rows = list(csv.DictReader(drawn.numbers.splitlines()))
    assert len(rows) == len(short)
    assert all(float(row["best"]) >= float(row["last"]) for row in rows)
    learned = {int(row["epochs"]): float(row["learned"]) for row in rows}
    assert learned[60] > learned[5]
    assert "50 %" in drawn.caption


def test_runs_of_another_machine_are_taken_up_from_their_committed_lines(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    recovered = importlib.import_module("recover_runs").recover
    lines = tmp_path / "table2.csv"
    made, other = runs("table2", MEDIUM)[:2]
    result = Result(made.key, 0.75, 0.5, None, 0.9, 0.4, 0.1, 560.5, "0.2.0", "8757d4342a")
    lines.write_text(by_run(MEDIUM, [made], {made.key: result}))
    assert [recovered(lines, tmp_path), recovered(lines, tmp_path)] == [1, 0]
    store = RunStore(tmp_path / "runs")
    assert store.result(made.config) == result
    assert store.missing([made.config, other.config]) == [other.config]
