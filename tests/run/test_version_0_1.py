"""Run directories that version 0.1 wrote are read by every command that reads runs."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

from labelmend.run.directory import RunDirectory
from labelmend.run.model import load_model

MADE = Path(__file__).parent / "version-0.1"
"""Sixty rows with nine wrong labels, and the run of labelmend 0.1.0 on them, without its checkpoints and report."""


@pytest.fixture
def old_run(tmp_path, monkeypatch):
    """In the folder where the run was made."""
    shutil.copytree(MADE, tmp_path / "made")
    monkeypatch.chdir(tmp_path / "made")
    return RunDirectory.existing("run")


def rows(path):
    return list(csv.DictReader(Path(path).read_text().splitlines()))


def test_it_is_a_run_of_version_0_1(old_run):
    assert old_run.read()["versions"]["labelmend"] == "0.1.0"
    assert "decided_by" not in old_run.epochs_jsonl.read_text()


def test_its_report_is_built(old_run, labelmend):
    assert labelmend("report", "run").returncode == 0
    page = old_run.report.read_text()
    assert "of 60 labels look wrong" in page
    assert "The two groups of losses, after each tracking pass" in page


def test_its_labels_are_shown_and_exported(old_run, labelmend):
    assert "plant-" in labelmend("labels", "run").stdout
    assert labelmend("labels", "run", "--out", "issues.csv").returncode == 0
    assert len(rows("issues.csv")) == 9


def test_its_corrections_are_applied_and_undone(old_run, labelmend):
    before = Path("plants.csv").read_text()
    assert labelmend("apply", "run", "--out", "fixed.csv", "--write").returncode == 0
    after = Path("fixed.csv").read_text()
    changed = [pair for pair in zip(before.splitlines(), after.splitlines(), strict=True) if pair[0] != pair[1]]
    assert len(changed) == 9
    assert labelmend("undo", "fixed.csv").returncode == 0
    assert Path("fixed.csv").read_text() == before


def test_its_model_of_a_table_is_refused_because_it_does_not_know_its_columns(old_run, labelmend):
    """By position, a wrong order of the columns would give confident nonsense."""
    refused = labelmend("predict", "run", "plants.csv", "--out", "predicted.csv")
    assert refused.returncode == 2
    assert "by version 0.1); give an array, or train again on the table" in refused.stderr
    features = [
        [float(value) for name, value in row.items() if name not in ("id", "label")] for row in rows("plants.csv")
    ]
    predicted = load_model("run").predict(np.array(features, dtype=np.float32))
    assert sum(name == row["label"] for name, row in zip(predicted, rows("plants.csv"), strict=True)) == 51
