"""What a notebook shows: runs, tables and findings, and a bar that stays one output."""

import sys
from types import ModuleType

import numpy as np
import pytest
import rich.console

import labelmend as lm
from labelmend.detect.table import SHOWN
from labelmend.faces.notebook import NotebookObserver, notebook_status
from labelmend.faces.progress import observed
from labelmend.run.directory import RunDirectory
from labelmend.run.judged import write_judged

HOSTILE = "<script>alert(1)</script>"
CONFIG = {"source": "", "labels": HOSTILE, "truth": None}


class Output:
    """An output of a cell, with everything that was shown in it."""

    def __init__(self, shown):
        self.shown = [shown]

    def update(self, shown):
        self.shown.append(shown)


@pytest.fixture
def cell(monkeypatch):
    """The outputs of a cell of a notebook that has no widgets."""
    outputs = []

    def display(shown, display_id=None):
        outputs.append(Output(shown))
        return outputs[-1] if display_id else None

    package, module = ModuleType("IPython"), ModuleType("IPython.display")
    module.display, module.HTML, package.display = display, str, module
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    return outputs


@pytest.fixture(scope="module")
def table():
    truth = np.arange(300) % 3
    names = np.array([HOSTILE, "dog & cat", "owl"])
    given = names[np.where(np.arange(300) % 10 == 0, (truth + 1) % 3, truth)]
    ids = [f"{HOSTILE}{i}" for i in range(300)]
    return lm.judge(given, 0.9 * np.eye(3)[truth] + 0.1 / 3, class_names=names, ids=ids)


@pytest.fixture
def run(table, tmp_path):
    directory = RunDirectory(tmp_path / "run")
    write_judged(directory, table, config=CONFIG, samples=None, auc=None, seconds=0, afterwards=lambda run: None)
    return lm.load(directory.path)


def test_a_table_shows_what_was_found_and_its_most_suspicious_labels(table):
    page = table._repr_html_()
    assert table.summary() in page
    assert page.count("<tr>") == 1 + SHOWN
    assert "relabel" in page
    assert "<script" not in page


def test_a_finding_shows_its_rate_and_the_noisiest_classes(table, run):
    for noise in (table.noise, run.noise):
        page = noise._repr_html_()
        assert "Wrong labels found" in page
        assert f"{table.noise_rate:.1%}" in page
        assert "dog &amp; cat" in page
        assert "<script" not in page


def test_a_run_shows_its_finding_its_data_and_its_suspects(run):
    page = run._repr_html_()
    assert run.summary() in page
    assert "300 samples, 3 classes" in page
    assert page.count("relabel</td>") == SHOWN
    assert "<script" not in page


def test_a_trained_run_shows_what_was_trained(train_digits):
    page = lm.load(train_digits(epochs=1).path)._repr_html_()
    assert "m-dyr-h, convnet, 1 epochs" in page
    assert "test samples" in page
    assert "AUC" in page


def test_a_run_without_labels_says_so_and_does_not_fail(tmp_path):
    run = RunDirectory(tmp_path / HOSTILE.replace("/", ""))
    run.create({"status": "interrupted"})
    page = lm.load(run.path)._repr_html_()
    assert "noise.json is missing" in page
    assert "<script" not in page


def test_corrections_show_what_would_change(run):
    page = run.corrections()._repr_html_()
    assert "30 of 300 labels would change" in page
    assert repr(run.corrections()).startswith("<corrections of 30 of 300 labels")
    assert "<script" not in page
    assert "left out" in run.corrections(drop=True)._repr_html_()


def test_training_in_a_notebook_shows_one_bar_however_many_epochs_there_are(cell, monkeypatch):
    monkeypatch.setattr("labelmend.faces.notebook.SECONDS_BETWEEN", 0.0)
    x, y = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32), np.arange(60) % 3
    counts = []
    for epochs in (1, 4):
        cell.clear()
        lm.train((x, y), method="ce", net="mlp", epochs=epochs, report=False, threads=1)
        counts.append(len(cell))
        bars = [output for output in cell if "<progress" in str(output.shown[-1])]
        assert len(bars) == 1
        assert f"epoch {epochs}/{epochs}" in bars[0].shown[-1]
        assert "left" not in bars[0].shown[-1]
    assert counts[0] == counts[1]


def test_a_bar_is_updated_only_so_often_but_always_at_the_end(cell, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("labelmend.faces.notebook.time.monotonic", lambda: now[0])
    bar = NotebookObserver(HOSTILE, 1)
    bar.stage(1, "training", 1000)
    for _ in range(1000):
        now[0] += 0.001
        bar.advance()
    bar.warn(f"{HOSTILE} is slow")
    bar.epoch({"epoch": 1, "test_accuracy": 0.9, "noise_rate": None, "tracked": False})
    (output,) = cell
    assert len(output.shown) <= 7
    assert 'value="1000" max="1000"' in output.shown[-1]
    assert "accuracy 0.900" in output.shown[-1]
    assert "is slow" in output.shown[-1]
    assert "<script" not in output.shown[-1]


def test_a_bar_of_a_resumed_run_counts_time_from_where_it_began(cell, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("labelmend.faces.notebook.time.monotonic", lambda: now[0])
    bar = NotebookObserver("ce", 10)
    bar.stage(6, "training", 10, done=0)
    for _ in range(10):
        now[0] += 1.0
        bar.advance()
    assert "10 s, 40 s left" in cell[0].shown[-1]


def test_what_is_being_prepared_is_said_and_then_gone(cell):
    with notebook_status("reading <b>") as status:
        assert "reading &lt;b&gt;" in cell[0].shown[-1]
        status.update("more")
    assert cell[0].shown[-1] == ""
    assert len(cell) == 1


def test_a_quiet_run_shows_nothing_in_a_notebook(cell):
    with observed(rich.console.Console(quiet=True), "ce", 1) as observer:
        observer.stage(1, "training", 1)
        observer.epoch({"epoch": 1, "test_accuracy": 0.9, "noise_rate": None, "tracked": False})
    assert not cell
