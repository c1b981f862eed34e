"""Labels that people decided are learned as they decided, trusted, and not judged any more."""

import csv

import numpy as np
import pytest

import labelmend as lm
from labelmend.errors import InputError
from labelmend.training.config import TrainConfig
from labelmend.training.decided import take_decisions
from labelmend.training.prepare import prepare
from labelmend.training.session import train


@pytest.fixture
def rows(tmp_path):
    """A table of two well-separated classes, whose first six labels are wrong."""
    rng = np.random.default_rng(0)
    truth = np.arange(80) % 2
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "f", "g", "label"])
        for row, label in enumerate(truth):
            f, g = rng.normal(4 * label, 1, 2).round(3)
            writer.writerow([f"s{row}", f, g, "ab"[1 - label if row < 6 else label]])
    return tmp_path / "rows.csv"


def decisions(path, *lines):
    path.write_text("\n".join(["id,decision,label", *lines]) + "\n")
    return str(path)


def decided(rows, file, **options):
    return prepare(TrainConfig(str(rows), str(rows.parent / "run"), id_column="id", decisions=file, **options)).data


def test_decided_labels_are_taken_and_trusted_and_samples_without_a_right_label_are_left_out(rows, tmp_path):
    file = decisions(tmp_path / "d.csv", "s0,relabel,a", "s7,keep,", "s1,bad,", "s2,other,", "s9,skip,")
    data = decided(rows, file)
    assert len(data) == 78
    assert not {"s1", "s2"} & set(data.ids)
    assert [data.ids[row] for row in data.trusted.tolist()] == ["s0", "s7"]
    assert data.class_names[data.labels.observed[0]] == "a"


def test_samples_that_are_trusted_already_stay_so(rows, tmp_path):
    (tmp_path / "trusted.txt").write_text("s30\n")
    data = decided(
        rows, decisions(tmp_path / "d.csv", "s0,relabel,a", "s1,bad,"), trusted=str(tmp_path / "trusted.txt")
    )
    assert [data.ids[row] for row in data.trusted.tolist()] == ["s0", "s30"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("s0,relabel,c", "'c'"),
        ("nobody,keep,", "no sample 'nobody'"),
        ("s0,perhaps,", "perhaps"),
        ("s0,skip,", "nothing"),
    ],
)
def test_decisions_that_do_not_fit_are_refused_in_one_sentence(line, said, rows, tmp_path):
    with pytest.raises(InputError, match=said):
        decided(rows, decisions(tmp_path / "d.csv", line))


def test_a_run_that_nobody_reviewed_is_refused_with_the_remedy(rows, tmp_path):
    run, _ = train(prepare(TrainConfig(str(rows), str(tmp_path / "first"), id_column="id", net="linear", epochs=2)))
    with pytest.raises(InputError, match="labelmend review"):
        decided(rows, str(run.path))


def test_a_second_run_goes_on_from_the_decisions_of_the_first(rows, tmp_path):
    first = lm.train(rows, out=tmp_path / "first", id_column="id", net="linear", epochs=4, progress=False, report=False)
    decisions(first.path / "decisions.csv", *(f"s{row},relabel,{'ab'[row % 2]}" for row in range(6)))
    options = {"id_column": "id", "net": "linear", "epochs": 4, "progress": False, "report": False}
    second = lm.train(rows, decisions=str(first.path), **options)
    table = second.labels.set_index("id")
    assert (table.loc[[f"s{row}" for row in range(6)], "noisy_probability"] == 0).all()
    assert table.loc["s0", "given"] == "a"


def test_decisions_of_python_objects_are_taken_by_their_ids(rows):
    data = decided(rows, None)
    file = decisions(rows.parent / "d.csv", "s5,keep,")
    assert take_decisions(file, data).trusted.tolist() == [5]
