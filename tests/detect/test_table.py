import csv
import io

import numpy as np
import pyarrow.parquet as pq
import pytest

from labelmend.detect.summary import class_rates, transition
from labelmend.detect.table import LabelTable
from labelmend.run.labels import cleanlab_columns, csv_bytes, parquet_bytes, to_arrow


def table(names=("cat", "dog", "=1+1"), ids=("a", "@b", "c", "d")):
    return LabelTable(
        ids=ids,
        class_names=names,
        given=np.array([0, 1, 2, 0]),
        noisy_probability=np.array([0.1, 0.9, 0.9, 0.6]),
        rival=np.array([1, 0, 1, 2]),
        agreement=np.array([0.9, 0.9, 0.95, 0.7]),
        loss=np.array([0.01, 2.0, 3.0, 1.0]),
        margin=np.array([-4.0, 2.0, 3.0, 0.5]),
        steadiness=np.array([0.0, 1.0, 1.0, 0.5]),
        score=np.array([-2.0, 2.0, 3.0, 0.4]),
    )


def random_table(rng, samples=300, classes=4):
    given = rng.integers(classes, size=samples)
    rival = (given + rng.integers(1, classes, size=samples)) % classes
    share = rng.random((3, samples))
    names = [f"class {i}" for i in range(classes)]
    return LabelTable(
        list(map(str, range(samples))), names, given, share[0], rival, share[1] / 2 + 0.5, *share[[1, 1, 2, 2]]
    )  # fmt: skip


def test_what_is_likely_wrong_is_relabelled_if_one_rival_is_likelier_than_all_else_and_looked_at_otherwise():
    found = table()
    assert found.verdict.tolist() == ["keep", "relabel", "relabel", "look"]
    assert found.suggested.tolist() == [0, 0, 1, 0]
    assert found.confidence == pytest.approx([0.9, 0.81, 0.855, 0.4])


def test_a_relabelled_sample_gets_a_label_more_likely_than_the_given_one():
    found = random_table(np.random.default_rng(0))
    relabelled = found.verdict == "relabel"
    assert relabelled.any()
    assert (found.confidence > 1 - found.noisy_probability)[relabelled].all()
    assert (found.suggested != found.given)[relabelled].all()
    assert (found.suggested == found.given)[~relabelled].all()


def test_suspects_are_ordered_by_rank_and_the_highest_score_ranks_first():
    assert table().rank.tolist() == [4, 2, 1, 3]
    assert table().suspects().tolist() == [2, 1, 3]


def test_csv_disarms_formulas_and_parquet_is_exact():
    rows = list(csv.DictReader(io.StringIO(csv_bytes(to_arrow(table())).decode())))
    assert [row["given"] for row in rows] == ["cat", "dog", "'=1+1", "cat"]
    assert rows[1]["id"] == "'@b"
    exact = pq.read_table(io.BytesIO(parquet_bytes(to_arrow(table()))))
    assert exact["given"].to_pylist() == ["cat", "dog", "=1+1", "cat"]
    assert exact["noisy_probability"].to_pylist() == [0.1, 0.9, 0.9, 0.6]


def test_cleanlab_names_are_given_on_request():
    known = cleanlab_columns(to_arrow(table()))
    assert known["is_label_issue"].to_pylist() == [False, True, True, True]
    assert known["label_score"].to_pylist() == pytest.approx([0.9, 0.1, 0.1, 0.4])
    assert known["given_label"].to_pylist() == ["cat", "dog", "=1+1", "cat"]
    assert known["predicted_label"].to_pylist() == ["cat", "cat", "dog", "cat"]
    assert known.column_names[4:] == to_arrow(table()).column_names


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_transition_rows_are_the_shares_of_belief_that_a_loop_over_samples_gives(classes):
    found = random_table(np.random.default_rng(1), classes=classes)
    counts = np.zeros((classes, classes))
    for given, wrong, rival, sure in zip(
        found.given, found.noisy_probability, found.rival, found.agreement, strict=True
    ):
        for should in range(classes):
            if should == given:
                belief = 1 - wrong
            elif should == rival:
                belief = wrong * (1.0 if classes == 2 else sure)
            else:
                belief = wrong * (1 - sure) / (classes - 2)
            counts[should, given] += belief
    expected = counts / counts.sum(axis=1, keepdims=True)
    assert transition(found) == pytest.approx(expected)


def test_class_rates_are_mean_probabilities_and_an_empty_class_has_none():
    rates = {row["name"]: row for row in class_rates(table(names=("cat", "dog", "=1+1", "owl")))}
    assert rates["cat"] == {"name": "cat", "samples": 2, "rate": pytest.approx(0.35), "flagged": 1}
    assert rates["owl"] == {"name": "owl", "samples": 0, "rate": 0.0, "flagged": 0}
