"""The command as a user meets it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

from labelmend import __version__ as labelmend_version
from labelmend.faces.cli import app

TINY = ("--epochs", "1", "--limit", "120", "--threads", "1")


def archive(path, **arrays):
    np.savez(path, **arrays)
    return path


def features(rows=60):
    rng = np.random.default_rng(0)
    y = np.arange(rows) % 3
    return {"x": rng.normal(size=(rows, 5)) + y[:, None] * 3, "y": y}


def test_train_then_report_then_predict(tmp_path, labelmend):
    source = archive(tmp_path / "rows.npz", **features())
    trained = labelmend("train", source, "--noise", "symmetric-excl:0.2", "--out", tmp_path / "run", *TINY)
    assert trained.returncode == 0, trained.stderr
    assert "really wrong 20.0%" in trained.stdout
    assert labelmend("report", tmp_path / "run").returncode == 0
    unlabelled = archive(tmp_path / "new.npz", x=features()["x"])
    predicted = labelmend("predict", tmp_path / "run", unlabelled)
    header, *rows = [line.split(",") for line in predicted.stdout.splitlines()]
    assert header == ["id", "predicted", "probability", "p(0)", "p(1)", "p(2)"]
    assert len(rows) == 60
    for _, cls, probability, *every in rows:
        assert every[int(cls)] == probability == max(every, key=float)
        assert sum(map(float, every)) == pytest.approx(1, abs=1e-4)


def wrong_rows(path, rows=600):
    """A table of three easy classes of which every fifth label is wrong; gives the right labels."""
    rng = np.random.default_rng(0)
    truth = np.arange(rows) % 3
    given = np.where(np.arange(rows) % 5 == 0, (truth + 1) % 3, truth)
    x = rng.normal(size=(rows, 4)) + 4 * np.eye(3, 4)[truth]
    lines = [
        ",".join([str(i), *(f"{v:.4f}" for v in row), "abc"[y]])
        for i, (row, y) in enumerate(zip(x, given, strict=True))
    ]
    path.write_text("\r\n".join(["id,w,x,y,z,label", *lines, ""]))
    return truth


def test_wrong_labels_are_listed_corrected_and_brought_back(tmp_path, labelmend):
    table, run = tmp_path / "rows.csv", tmp_path / "my run"
    truth = wrong_rows(table)
    trained = labelmend("train", table, "--label-column", "label", "--out", run, "--epochs", 20, "--threads", 1)
    assert trained.returncode == 0
    assert f"labelmend apply '{run}' --out DEST" in trained.stdout
    listed = labelmend("labels", run, "--top", 5)
    assert listed.stdout.splitlines()[0].split() == ["sample", "given", "suggested", "P(wrong)", "steady", "verdict"]
    flagged = json.loads((run / "noise.json").read_text())["flagged"]
    assert flagged > 20
    assert len(listed.stdout.splitlines()) == 7
    assert f"5 of {flagged};" in listed.stdout
    assert f"20 of {flagged};" in labelmend("labels", run).stdout
    assert labelmend("labels", run, "--top", 5, "--out", tmp_path / "five.csv").returncode == 0
    assert len((tmp_path / "five.csv").read_text().splitlines()) == 6
    assert (
        labelmend(
            "labels", run, "--cleanlab", "--verdict", "keep,relabel,look", "--out", tmp_path / "all.csv"
        ).returncode
        == 0
    )
    exported = (tmp_path / "all.csv").read_text().splitlines()
    assert exported[0].startswith("is_label_issue,label_score,given_label,predicted_label,id")
    assert len(exported) == 601
    corrected = tmp_path / "my corrected set"
    dry = labelmend("apply", run, "--out", corrected)
    assert "--write" in dry.stdout
    assert not (corrected).exists()
    written = labelmend("apply", run, "--out", corrected, "--write")
    assert written.returncode == 0
    assert f"labelmend undo '{corrected}'" in written.stdout
    rows = (corrected / "rows.csv").read_text().splitlines()[1:]
    right = [line.split(",")[-1] == "abc"[y] for line, y in zip(rows, truth, strict=True)]
    assert np.mean(right) > 0.97
    assert labelmend("undo", corrected).returncode == 0
    assert (corrected / "rows.csv").read_bytes() == table.read_bytes()


@pytest.mark.parametrize(
    ("words", "named"),
    [(("--verdict", "drop"), "drop"), (("--out", "labels.txt"), ".parquet"), (("--top", "many"), "--top")],
)
def test_bad_usage_of_labels_is_named(words, named, tmp_path, labelmend, train_digits):
    ended = labelmend("labels", train_digits().path, *words)
    assert ended.returncode == 2
    assert named in ended.stderr


def test_bad_samples_stop_a_run_are_listed_and_can_be_skipped(tmp_path, labelmend):
    table = tmp_path / "rows.csv"
    lines = [f"{i},{i % 7},{'ab'[i % 2]}" for i in range(40)] + [f"{i},1," for i in range(25)]
    table.write_text("\n".join(["f,g,label", *lines]) + "\n")
    stopped = labelmend("train", table, "--out", tmp_path / "run", *TINY)
    assert stopped.returncode == 2
    assert "25 unusable samples" in stopped.stderr
    assert "row 41: an empty label" in stopped.stderr
    assert not (tmp_path / "run").exists()
    assert len(json.loads((tmp_path / "run.preflight.json").read_text())["problems"]) == 25
    went_on = labelmend("train", table, "--skip-bad", "--out", tmp_path / "run", *TINY)
    assert went_on.returncode == 0, went_on.stderr
    assert "25 unusable samples" in went_on.stdout


def test_two_people_train_on_the_same_noise_by_a_label_file(tmp_path, labelmend):
    file = tmp_path / "noisy.npz"
    made = labelmend("noise", "digits", "--noise", "symmetric:0.8", "--out", file)
    assert made.returncode == 0, made.stderr
    assert "nominal 80.0%" in made.stdout
    before = file.read_bytes()
    again = labelmend("noise", "digits", "--noise", "symmetric:0.2", "--out", file)
    assert (again.returncode, file.read_bytes()) == (2, before)
    assert "--force" in again.stderr
    assert labelmend("noise", "digits", "--noise", "symmetric:0.8", "--out", file, "--force").returncode == 0
    assert file.read_bytes() == before
    for name in ("one", "two"):
        assert labelmend("train", "digits", "--labels", file, "--out", tmp_path / name, *TINY).returncode == 0
    tables = [(tmp_path / name / "labels.csv").read_bytes() for name in ("one", "two")]
    assert tables[0] == tables[1]
    assert json.loads((tmp_path / "one" / "run.json").read_text())["noise"]["real"] > 0.6


def test_methods_lists_every_system_of_the_paper_and_their_settings(labelmend):
    listed = labelmend("methods").stdout
    own = "ce st-s st-h dy-s dy-h m m-dyr-s m-dyr-h md-dyr-h md-dyr-sh"
    others = "forward backward glc joint mentornet d2l l2rw iterative co-teaching elr dividemix"
    for id in f"{own} {others}".split():
        assert f"\n{id} " in f"\n{listed}"
    assert "needs --trusted" in listed
    assert "paper|released" in labelmend("methods", "m-dyr-h").stdout


@pytest.mark.parametrize("command", sorted(get_command(app).commands))
def test_the_help_of_each_command_has_an_example_and_no_types_of_flags(command, labelmend):
    shown = labelmend(command, "--help").stdout
    assert f"Try: labelmend {command}" in shown
    assert "bool" not in shown


def test_help_names_the_extras_whose_brackets_could_be_taken_for_markup(labelmend):
    shown = labelmend("train", "--help").stdout
    assert "labelmend[photos]" in shown
    assert "labelmend[text]" in shown


def test_help_leads_with_the_task_and_groups_commands_by_it(labelmend):
    shown = labelmend("--help").stdout
    headings = ["Find the wrong labels", "Find wrong labels", "Fix them", "Use the model", "Research"]
    places = [shown.index(heading) for heading in headings]
    assert places == sorted(places)
    assert "bool" not in shown


def test_the_version_is_told(labelmend):
    shown = labelmend("--version")
    assert (shown.returncode, shown.stdout) == (0, f"labelmend {labelmend_version}\n")


def test_a_shell_completes_commands_and_options():
    def completed(words):
        asked = {"_LABELMEND_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        command = Path(sys.executable).with_name("labelmend")  # what shells complete is the name of the command
        return subprocess.run([command], env=os.environ | asked, capture_output=True, text=True).stdout.split()

    assert completed("labelmend tr") == ["train"]
    assert completed("labelmend train --noi") == ["--noise"]


BAD = {
    "unknown method": (("digits", "--method", "m-dyr-x"), "did you mean 'm-dyr-"),
    "unknown source": (("digitz",), "did you mean 'digits'"),
    "unknown setting": (("digits", "--set", "noise_modle=gmm"), "did you mean 'noise_model'"),
    "bad setting value": (("digits", "--set", "noise_model=abc"), "bmm|gmm"),
    "setting without value": (("digits", "--set", "eta"), "key=value"),
    "setting out of range": (("digits", "--set", "eta=-1"), "at least 0"),
    "unknown noise kind": (("digits", "--noise", "symetric:0.5"), "did you mean 'symmetric'"),
    "noise without rate": (("digits", "--noise", "symmetric"), "symmetric:0.5"),
    "noise rate above one": (("digits", "--noise", "symmetric:1.5"), "outside 0..1"),
    "noise rate not a number": (("digits", "--noise", "symmetric:nan"), "outside 0..1"),
    "no epochs": (("digits", "--epochs", "0"), "at least 1"),
    "unknown net": (("digits", "--net", "resnet99"), "unknown net"),
    "net too large for the images": (("digits", "--net", "preact-resnet18"), "16 px"),
    "unknown device": (("digits", "--device", "tpu"), "not available"),
    "unknown compile mode": (("digits", "--compile", "maybe"), "auto, off, on"),
    "bf16 without the hardware": (("digits", "--set", "precision=bf16", "--device", "cpu"), "no bf16 instructions"),
    "no threads": (("digits", "--threads", "0"), "--threads"),
    "missing file": (("nowhere.npz",), "no file"),
    "nothing to resume": (("digits", "--resume"), "no run to resume"),
    "a method that needs trusted samples": (("digits", "--method", "glc"), "--trusted 10-per-class"),
    "a learned mentor without trusted samples": (
        ("digits", "--method", "mentornet", "--set", "mentor=learned"),
        "give them by --trusted",
    ),
    "trusted samples of unknown truth": (("digits", "--trusted", "3"), "name samples that somebody has checked"),
    "trusted samples from nowhere": (("digits", "--trusted", "nowhere.csv"), "no file"),
    "limit of one": (("digits", "--limit", "1"), "--limit"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_usage_gets_one_sentence_and_leaves_nothing(case, tmp_path, labelmend, monkeypatch):
    monkeypatch.setattr("labelmend.training.engine.bf16_on_cpu", lambda: False)
    words, expected = BAD[case]
    shown = labelmend("train", *words, "--out", tmp_path / "run")
    assert_refused(shown, expected, tmp_path / "run")


ODD = {
    "no y": ({"x": np.zeros((4, 2))}, "no array 'y'"),
    "no x": ({"y": np.zeros(4)}, "no array 'x'"),
    "unequal lengths": ({"x": np.zeros((4, 2)), "y": np.arange(5)}, "4 samples in x but 5 labels"),
    "single class": ({"x": np.zeros((4, 2)), "y": np.zeros(4)}, "single class"),
    "float images": ({"x": np.full((4, 8, 8), 9.0), "y": np.arange(4)}, "floats outside 0..1"),
    "two-dimensional labels": ({"x": np.zeros((4, 2)), "y": np.zeros((4, 2))}, "labels are one number"),
    "pickled objects": ({"x": np.array([{}, {}]), "y": np.arange(2)}, "plain arrays"),
    "test with unknown class": (
        {"x": np.zeros((4, 2)), "y": np.arange(4), "x_test": np.zeros((1, 2)), "y_test": np.array([9])},
        "no training sample has",
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_a_bad_archive_is_named_in_one_sentence(case, tmp_path, labelmend):
    arrays, expected = ODD[case]
    shown = labelmend("train", archive(tmp_path / "odd.npz", **arrays), "--out", tmp_path / "run")
    assert_refused(shown, expected, tmp_path / "run")


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"x": np.zeros((4, 2)), "y": np.array([0, 1, np.nan, 0])}, "row 2: no label"),
        ({"x": np.array([[1.0], [np.nan], [2.0]]), "y": np.array([0, 1, 1])}, "row 1: a missing or infinite feature"),
    ],
)
def test_unusable_rows_of_an_archive_are_named_and_can_be_skipped(arrays, expected, tmp_path, labelmend):
    source = archive(tmp_path / "odd.npz", **arrays)
    shown = labelmend("train", source, "--out", tmp_path / "run")
    assert shown.returncode == 2
    assert expected in shown.stderr
    assert not (tmp_path / "run").exists()
    assert labelmend("train", source, "--out", tmp_path / "run", "--skip-bad", "--epochs", 1).returncode == 0


def test_a_file_that_is_no_archive_is_refused(tmp_path, labelmend):
    (tmp_path / "odd.npz").write_bytes(b"not a zip")
    shown = labelmend("train", tmp_path / "odd.npz", "--out", tmp_path / "run")
    assert_refused(shown, "cannot be read", tmp_path / "run")


def test_a_finished_run_is_not_overwritten(tmp_path, labelmend):
    assert labelmend("train", "digits", "--out", tmp_path / "run", *TINY).returncode == 0
    before = (tmp_path / "run" / "labels.csv").read_bytes()
    again = labelmend("train", "digits", "--out", tmp_path / "run", *TINY)
    assert again.returncode == 2
    assert "holds a run that is finished; continue it with --resume" in again.stderr
    assert (tmp_path / "run" / "labels.csv").read_bytes() == before


def test_a_terminated_run_says_so_and_resumes(tmp_path):
    words = ["train", "digits", "--out", str(tmp_path / "run"), "--epochs", "200", "--threads", "1"]
    process = subprocess.Popen([sys.executable, "-m", "labelmend", *words], stderr=subprocess.PIPE, text=True)
    epochs = tmp_path / "run" / "epochs.jsonl"
    deadline = time.monotonic() + 60
    while not epochs.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGTERM)
    _, shown = process.communicate(timeout=30)
    assert process.returncode == 143
    assert f"continue with: labelmend train --out {tmp_path / 'run'} --resume" in shown
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "interrupted"


def test_the_installed_module_runs_in_a_process_of_its_own():
    shown = subprocess.run([sys.executable, "-m", "labelmend", "--help"], capture_output=True, text=True)
    assert shown.returncode == 0
    assert "Find the wrong labels" in shown.stdout


def assert_refused(shown, expected, run):
    assert shown.returncode == 2, shown.stderr
    assert expected in shown.stderr
    assert len(shown.stderr.strip().splitlines()) == 1
    assert "Traceback" not in shown.stderr
    assert not run.exists()


def test_help_is_there_at_once_because_it_imports_nothing_slow():
    program = "import sys, labelmend.__main__; print([m for m in ('torch', 'numpy', 'pyarrow') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
