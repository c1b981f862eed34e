"""What people decided stands over what the machine found: in the label table, in `labels` and in `apply`."""

import csv

import pytest

import labelmend as lm


def decide(path, *lines):
    path.write_text("\n".join(["id,decision,label,reviewer,time", *lines]) + "\n")
    return path


ANSWERS = ("s0,keep,,ann,", "s1,relabel,a,ann,", "s4,bad,,bob,", "s5,other,,bob,", "s6,skip,,bob,")


@pytest.fixture
def trained(tmp_path):
    """A run on a real table, whose labels are kept or not as the judge says."""
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        rows = [[f"s{i}", i % 2 + i / 100, "ab"[i % 2]] for i in range(40)]
        csv.writer(file).writerows([["id", "f", "label"], *rows])
    options = {"id_column": "id", "net": "linear", "epochs": 2, "progress": False, "report": False}
    return lm.train(tmp_path / "rows.csv", out=tmp_path / "run", **options)


def labels_in(path):
    with path.open(newline="") as file:
        return {row["id"]: row["label"] for row in csv.DictReader(file)}


def test_the_table_and_the_corrected_set_follow_the_decisions(trained, tmp_path):
    decide(trained.path / "decisions.csv", *ANSWERS)
    run = lm.load(trained.path)
    table = run.labels.set_index("id")
    assert table.loc["s0", "verdict"] == "keep"
    assert table.loc["s1", ["verdict", "suggested"]].tolist() == ["relabel", "a"]
    assert table.loc["s4", ["verdict", "decided", "reviewer"]].tolist() == ["look", "bad", "bob"]
    assert "s1" in run.suspects(None)["id"].tolist()
    corrections = run.corrections(min_confidence=0.999)
    assert corrections.labels[:7] == ["a", "a", "a", "b", None, None, "a"]
    corrections.write(tmp_path / "fixed.csv")
    fixed = labels_in(tmp_path / "fixed.csv")
    assert fixed["s0"] == "a"
    assert fixed["s1"] == "a"
    assert not {"s4", "s5"} & fixed.keys()
    assert "s6" in fixed


def test_dropping_takes_decided_labels_all_the_same(trained, tmp_path, labelmend):
    decide(trained.path / "decisions.csv", *ANSWERS)
    done = labelmend("apply", trained.path, "--out", tmp_path / "fixed.csv", "--drop", "--write")
    assert done.returncode == 0, done.stderr
    assert "4 samples by people" in done.stdout
    fixed = labels_in(tmp_path / "fixed.csv")
    assert (fixed["s0"], fixed["s1"]) == ("a", "a")
    assert not {"s4", "s5"} & fixed.keys()


def test_a_file_of_decisions_stands_in_place_of_those_of_the_run(trained, tmp_path, labelmend):
    decide(trained.path / "decisions.csv", "s1,relabel,a,ann,")
    other = decide(tmp_path / "edited.csv", "s3,relabel,a,cleo,")
    shown = labelmend("labels", trained.path, "--decisions", other).stdout
    assert "s3" in shown
    assert "cleo" in shown
    assert "ann" not in shown
    assert "ann" in labelmend("labels", trained.path).stdout


@pytest.mark.parametrize("command", ["labels", "report", "apply"])
def test_decisions_of_another_run_are_refused_in_one_sentence(command, trained, tmp_path, labelmend):
    other = decide(tmp_path / "other.csv", "stranger,keep,,,")
    words = ("--out", tmp_path / "fixed.csv") if command == "apply" else ()
    ended = labelmend(command, trained.path, "--decisions", other, *words)
    assert ended.returncode == 2
    assert "no sample 'stranger' in this run" in ended.stderr
