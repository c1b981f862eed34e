import csv
import io

import numpy as np
import pyarrow.parquet as pq

from labelmend.labels.table import LabelTable, suggest


def table(names=("cat", "dog", "=1+1"), ids=("a", "@b", "c")):
    return LabelTable(
        ids=ids,
        class_names=names,
        given=np.array([0, 1, 2]),
        noisy_probability=np.array([0.1, 0.9, 0.9]),
        suggested=np.array([0, 0, 1]),
        confidence=np.array([0.95, 0.8, 0.7]),
        loss=np.array([0.01, 2.0, 3.0]),
    )


def test_the_suggestion_is_the_largest_entry_of_the_corrected_target():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(4), size=200)
    given, share = rng.integers(4, size=200), rng.random(200)
    top = probabilities.argmax(axis=1)
    suggested, confidence = suggest(given, share, top, probabilities.max(axis=1))
    for i in range(200):
        target = np.zeros(4)
        target[top[i]] = share[i] * probabilities[i, top[i]]
        target[given[i]] += 1 - share[i]
        assert target[suggested[i]] == target.max()
        assert np.isclose(confidence[i], target.max())


def test_suspects_are_ordered_by_probability_and_then_by_loss():
    assert table().suspects().tolist() == [2, 1]


def test_csv_disarms_formulas_and_parquet_is_exact():
    rows = list(csv.DictReader(io.StringIO(table().to_csv().decode())))
    assert [row["given"] for row in rows] == ["cat", "dog", "'=1+1"]
    assert rows[1]["id"] == "'@b"
    exact = pq.read_table(io.BytesIO(table().to_parquet()))
    assert exact["given"].to_pylist() == ["cat", "dog", "=1+1"]
    assert exact["noisy_probability"].to_pylist() == [0.1, 0.9, 0.9]
