"""Labels judged by anybody's predictions: the command in all formats, the function, and the runs they leave."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from animals import ANIMALS, GIVEN, NAMES, PROBABILITIES, TRUTH, WRONG, N
from PIL import Image

import labelmend as lm
from labelmend.data.readers.predictions import read_labels, read_probabilities
from labelmend.report import build

SHARED = Path("/work/shared/data/predictions")


@pytest.fixture
def no_report(monkeypatch):
    monkeypatch.setattr(build, "build_report", lambda run: None)


@pytest.fixture
def files(tmp_path):
    """A folder with the probabilities and labels in every format."""
    np.save(tmp_path / "probs.npy", PROBABILITIES)
    np.savez(tmp_path / "all.npz", pred_probs=PROBABILITIES, labels=GIVEN, true_label=TRUTH, is_wrong=GIVEN != TRUTH)
    np.savez(tmp_path / "odd.npz", scores=PROBABILITIES, labels=GIVEN)
    columns = {"id": [f"s{row}" for row in range(N)]} | dict(zip(ANIMALS, PROBABILITIES.T, strict=True))
    pq.write_table(pa.table(columns), tmp_path / "probs.parquet")
    for suffix, mark in ((".csv", ","), (".tsv", "\t")):
        rows = [mark.join(columns), *(mark.join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        (tmp_path / f"probs{suffix}").write_text("\n".join(rows))
        named = [f"s{row}{mark}{name}{mark}x" for row, name in enumerate(NAMES)]
        (tmp_path / f"labels{suffix}").write_text("\n".join([mark.join(("id", "label", "other")), *named]))
    pq.write_table(pa.table({"id": columns["id"], "label": NAMES.tolist()}), tmp_path / "labels.parquet")
    np.save(tmp_path / "labels.npy", GIVEN)
    (tmp_path / "labels.txt").write_text("\n".join(NAMES) + "\n")
    (tmp_path / "numbers.txt").write_text("\n".join(map(str, GIVEN)) + "\n")
    (tmp_path / "animals.txt").write_text("\n".join(ANIMALS) + "\n")
    return tmp_path


def flagged(run):
    table = pq.read_table(run / "labels.parquet").to_pydict()
    return [row for row, verdict in enumerate(table["verdict"]) if verdict != "keep"]


@pytest.mark.parametrize(
    ("probabilities", "labels"),
    [
        ("probs.npy", "labels.npy"),
        ("probs.npy", "labels.txt"),
        ("probs.npy", "numbers.txt"),
        ("probs.npy", "labels.csv"),
        ("all.npz", "all.npz"),
        ("all.npz:pred_probs", "all.npz:labels"),
        ("odd.npz", "labels.csv:label"),
        ("probs.csv", "labels.csv"),
        ("probs.tsv", "labels.tsv"),
        ("probs.parquet", "labels.parquet"),
        ("probs.parquet", "labels.parquet:label"),
        ("probs.csv", "labels.npy"),
    ],
)
def test_every_format_gives_the_same_wrong_labels(files, labelmend, no_report, probabilities, labels):
    ended = labelmend("judge", files / probabilities, "--labels", files / labels, "--out", files / "run")
    assert ended.returncode == 0, ended.stderr
    assert flagged(files / "run") == WRONG
    assert "labels look wrong" in ended.stdout
    assert "labelmend apply" not in ended.stdout


def test_a_judged_run_has_the_files_that_other_commands_read(files, labelmend, no_report):
    words = ("judge", files / "all.npz", "--labels", files / "all.npz", "--truth", files / "all.npz:true_label")
    run = files / "run"
    ended = labelmend(*words, "--class-names", "cat,dog,owl", "--out", run)
    assert ended.returncode == 0, ended.stderr
    assert {path.name for path in run.iterdir()} >= {"run.json", "labels.csv", "noise.json", "preflight.json"}
    described = json.loads((run / "run.json").read_bytes())
    assert described["status"] == "finished"
    assert described["kind"] == "judged"
    assert described["data"]["classes"] == list(ANIMALS)
    assert described["summary"]["auc"] == described["summary"]["f1"] == 1
    assert described["summary"]["calibration_error"] < 0.1
    assert described["noise"]["real"] == 0.1
    loaded = lm.load(run)
    assert list(loaded.labels["suggested"]) == [ANIMALS[label] for label in TRUTH]
    assert len(loaded.suspects(None)) == len(WRONG)
    assert loaded.summary().startswith("About 10")
    assert labelmend("labels", run, "--top", "2").returncode == 0
    assert "has no model" in labelmend("predict", run, files / "labels.csv").stderr
    refused = labelmend("apply", run, "--out", files / "fixed")
    assert refused.returncode == 2
    assert "judged without --source" in refused.stderr


def test_a_judged_run_has_a_report(files, labelmend):
    ended = labelmend("judge", files / "probs.npy", "--labels", files / "labels.csv", "--out", files / "run")
    assert ended.returncode == 0
    assert (files / "run" / "report.html").is_file()


def test_files_with_ids_are_paired_by_them(files, labelmend, no_report):
    rows = (files / "labels.csv").read_text().split("\n")
    (files / "labels.csv").write_text("\n".join([rows[0], *reversed(rows[1:])]))
    run = files / "run"
    assert labelmend("judge", files / "probs.csv", "--labels", files / "labels.csv", "--out", run).returncode == 0
    assert flagged(run) == WRONG
    assert lm.load(run).labels["id"][1] == "s1"
    (files / "labels.csv").write_text("\n".join(rows[:-1]))
    ended = labelmend("judge", files / "probs.csv", "--labels", files / "labels.csv", "--out", files / "other")
    assert ended.returncode == 2
    assert "different ids: 1 are missing, the first 's119'" in ended.stderr


def test_passes_of_a_training_run_are_judged(files, labelmend, no_report):
    np.save(files / "passes.npy", np.stack([PROBABILITIES] * 4))
    run = files / "run"
    assert labelmend("judge", files / "passes.npy", "--labels", files / "labels.npy", "--out", run).returncode == 0
    assert len(lm.load(run).labels) == N


def test_what_predict_writes_can_be_judged(tmp_path):
    from labelmend.run.labels import predictions_csv

    (tmp_path / "p.csv").write_bytes(predictions_csv([f"{i}" for i in range(N)], ANIMALS, PROBABILITIES))
    found = read_probabilities(str(tmp_path / "p.csv"))
    assert found.class_names == list(ANIMALS)
    assert found.ids == [str(i) for i in range(N)]
    np.testing.assert_allclose(found.values, PROBABILITIES, rtol=1e-5)


@pytest.fixture
def photos(tmp_path):
    """A folder of pictures, whose subfolders are the given labels."""
    root = tmp_path / "photos"
    for row, name in enumerate(NAMES):
        (root / name).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (row, 0, 0)).save(root / name / f"{row:03}.png")
    return root


def in_order_of_source(root):
    rows = [int(path.stem) for path in sorted(root.rglob("*.png"), key=lambda path: (path.parent.name, path.name))]
    return PROBABILITIES[rows]


@pytest.mark.parametrize("with_labels", [False, True])
def test_a_judged_source_is_shown_corrected_and_restored(photos, tmp_path, labelmend, no_report, with_labels):
    probabilities = in_order_of_source(photos)
    np.save(tmp_path / "p.npy", probabilities)
    (tmp_path / "l.txt").write_text("\n".join(sorted(NAMES)))
    run, fixed = tmp_path / "run", tmp_path / "fixed"
    labels = ("--labels", tmp_path / "l.txt") if with_labels else ()
    ended = labelmend("judge", tmp_path / "p.npy", *labels, "--source", photos, "--out", run)
    assert ended.returncode == 0, ended.stderr
    assert "labelmend apply" in ended.stdout
    assert json.loads((run / "run.json").read_bytes())["config"]["labels"] is None
    shown = pq.read_table(run / "evidence" / "suspects.parquet").to_pydict()
    assert len(shown["id"]) == len(WRONG)
    assert all(picture.startswith(b"\x89PNG") for picture in shown["picture"])
    assert labelmend("apply", run, "--out", fixed, "--write").returncode == 0
    for row, label in enumerate(TRUTH):
        assert (fixed / ANIMALS[label] / f"{row:03}.png").is_file()
    assert labelmend("undo", fixed).returncode == 0
    assert sorted(p.relative_to(fixed) for p in fixed.rglob("*.png")) == sorted(
        p.relative_to(photos) for p in photos.rglob("*.png")
    )


def test_some_samples_of_a_source_are_judged_by_their_ids(photos, tmp_path, labelmend, no_report):
    rows = list(reversed(range(60)))
    np.save(tmp_path / "p.npy", PROBABILITIES[rows])
    (tmp_path / "ids.txt").write_text("\n".join(f"{NAMES[row]}/{row:03}.png" for row in rows))
    run = tmp_path / "run"
    words = ("--ids", tmp_path / "ids.txt", "--source", photos, "--out", run)
    ended = labelmend("judge", tmp_path / "p.npy", *words)
    assert ended.returncode == 0, ended.stderr
    assert [rows[row] for row in flagged(run)] == [row for row in rows if row in WRONG]
    ended = labelmend("judge", tmp_path / "p.npy", "--source", photos, "--out", tmp_path / "other")
    assert ended.returncode == 2
    assert "name the samples with --ids" in ended.stderr


ONE_SENTENCE = [
    (("probs.npy",), "the labels are missing"),
    (("missing.npy", "--labels", "labels.npy"), "there is no file"),
    (("probs.npy", "--labels", "labels.json"), "labels cannot be read from"),
    (("probs.json", "--labels", "labels.npy"), "probabilities cannot be read from"),
    (("labels.npy", "--labels", "labels.npy"), "of shape (120,)"),
    (("all.npz:nothing", "--labels", "labels.npy"), "has no 'nothing'; name one of pred_probs"),
    (("probs.csv:cat", "--labels", "labels.npy"), "every class has one"),
    (("labels.csv", "--labels", "labels.npy"), "not probabilities"),
    (("probs.npy", "--labels", "labels.csv:nothing"), "has no 'nothing'; name one of id, label, other"),
    (("probs.npy", "--labels", "labels.npy", "--truth", "all.npz:is_wrong"), "not which of them are wrong"),
    (("probs.npy", "--labels", "labels.txt", "--class-names", "cat,dog"), "2 class names for 3 columns"),
    (("probs.npy", "--labels", "labels.txt", "--class-names", "cat,dog,dog"), "occurs more than once"),
    (("probs.npy", "--labels", "labels.txt", "--class-names", "cat,dog,emu"), "'owl', which is none of the 3"),
    (("probs.npy", "--labels", "labels.npy", "--ids", "animals.txt"), "there are 3 ids"),
    (("probs.npy", "--labels", "labels.npy", "--ids", "labels.txt"), "the id 'dog' occurs more than once"),
    (("probs.npy", "--labels", "animals.txt"), "probabilities of 120 samples"),
    (("pickle.npy", "--labels", "labels.npy"), "plain values"),
    (("short.npy", "--labels", "labels.npy"), "plain values"),
    (("headless.csv", "--labels", "labels.npy"), "has no header"),
    (("nan.npy", "--labels", "labels.npy"), "not finite"),
    (("probs.npy", "--labels", "binary.txt"), "is not a text file"),
    (("probs.npy", "--labels", "gap.txt"), "an empty label in row 2"),
]


@pytest.mark.parametrize(("words", "sentence"), ONE_SENTENCE, ids=lambda value: " ".join(value)[:60])
def test_what_cannot_be_judged_is_refused_by_one_sentence(files, labelmend, monkeypatch, words, sentence):
    monkeypatch.chdir(files)
    np.save("pickle.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    Path("short.npy").write_bytes(Path("probs.npy").read_bytes()[:-7])
    Path("headless.csv").write_text("0.1,0.2,0.7\n0.3,0.3,0.4\n")
    np.save("nan.npy", np.where(np.arange(N)[:, None] == 7, np.nan, PROBABILITIES))
    Path("binary.txt").write_bytes(b"\xff\xfe\x00")
    Path("gap.txt").write_text("cat\n\ndog\n")
    ended = labelmend("judge", *words, "--out", "run")
    assert ended.returncode == 2, ended.stderr
    assert sentence in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert not Path("run").exists()


def test_a_place_that_is_used_is_refused(files, labelmend, no_report):
    words = ("judge", files / "probs.npy", "--labels", files / "labels.npy", "--out")
    assert labelmend(*words, files / "run").returncode == 0
    again = labelmend(*words, files / "run")
    assert again.returncode == 2
    assert "holds a run that is finished; choose another --out" in again.stderr
    assert "is not empty" in labelmend(*words, files).stderr


def test_a_target_that_is_no_class_is_refused(files, labelmend, tmp_path):
    prices = np.round(np.random.default_rng(0).random(60) * 1e6)
    np.save(tmp_path / "p.npy", np.full((60, 60), 1 / 60))
    np.save(tmp_path / "prices.npy", np.arange(60))
    judged = labelmend("judge", tmp_path / "p.npy", "--labels", tmp_path / "prices.npy", "--out", tmp_path / "run")
    (tmp_path / "houses.csv").write_text("size,label\n" + "\n".join(f"{i % 7},{p}" for i, p in enumerate(prices)))
    trained = labelmend("train", tmp_path / "houses.csv", "--out", tmp_path / "run")
    for ended in (judged, trained):
        assert ended.returncode == 2
        assert "60 of 60 labels" in ended.stderr
        assert "measurements or ids?" in ended.stderr
        assert not (tmp_path / "run").exists()


def test_a_label_file_keeps_numbers_and_names_apart(tmp_path):
    (tmp_path / "a.txt").write_text("01\n1\n2\n")
    assert read_labels(str(tmp_path / "a.txt")).values.tolist() == ["01", "1", "2"]
    (tmp_path / "b.txt").write_text("3\n1\n2\n")
    assert read_labels(str(tmp_path / "b.txt")).values.tolist() == [3, 1, 2]


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"there are no predictions in {SHARED}")
def test_real_predictions_are_judged(labelmend, no_report, tmp_path):
    file = SHARED / "synthetic20-swin.npz"
    words = ("--labels", file, "--truth", f"{file}:true_label", "--out", tmp_path / "run")
    ended = labelmend("judge", file, *words)
    assert ended.returncode == 0, ended.stderr
    summary = json.loads((tmp_path / "run" / "run.json").read_bytes())["summary"]
    assert summary["f1"] > 0.98
    assert summary["calibration_error"] < 0.03
