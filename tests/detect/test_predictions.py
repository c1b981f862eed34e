import numpy as np
import pytest

from labelmend.detect import predictions as reading
from labelmend.detect.predictions import KEPT, LEAST, MOST_WHOLE, calibration_factor, read_predictions, softmax
from labelmend.errors import InputError


def random_rows(samples=200, classes=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(classes, size=samples), rng.dirichlet(np.full(classes, 0.3), samples)


@pytest.mark.parametrize("classes", [3, 50])
def test_reading_in_blocks_is_reading_at_once(monkeypatch, tmp_path, classes):
    labels, rows = random_rows(classes=classes)
    whole = read_predictions(labels, rows)
    np.save(tmp_path / "rows.npy", rows)
    monkeypatch.setattr(reading, "BLOCK", 7 * classes)
    for source in (rows, np.load(tmp_path / "rows.npy", mmap_mode="r")):
        blocks = read_predictions(labels, source)
        for name in ("labels", "classes", "log_probs", "given"):
            assert np.array_equal(getattr(blocks, name), getattr(whole, name))


def test_reading_leaves_the_callers_array_as_it_was():
    labels, rows = random_rows(classes=50)
    rows = rows.astype(np.float32)
    before = rows.copy()
    read_predictions(labels, rows)
    assert np.array_equal(rows, before)


def test_of_few_classes_all_are_kept():
    labels, rows = random_rows(classes=MOST_WHOLE)
    found = read_predictions(labels, rows)
    assert np.array_equal(found.classes, np.broadcast_to(np.arange(MOST_WHOLE), rows.shape))
    assert np.array_equal(found.given, labels)
    assert found.log_probs == pytest.approx(np.log(rows.clip(LEAST)), abs=1e-4)


def test_of_many_classes_the_given_one_and_the_likeliest_are_kept():
    labels, rows = random_rows(classes=MOST_WHOLE + 20)
    found = read_predictions(labels, rows)
    assert found.classes.shape == (len(labels), KEPT)
    for row, (label, own) in enumerate(zip(labels, rows, strict=True)):
        others = [c for c in np.argsort(-own.astype(np.float32)) if c != label][: KEPT - 1]
        assert set(found.classes[row]) == {label, *others}
        assert found.classes[row, found.given[row]] == label
        kept = own[found.classes[row]].clip(LEAST)
        assert found.log_probs[row] == pytest.approx(np.log(kept), abs=1e-4)


def test_the_predicted_class_and_the_given_column_are_those_of_a_loop():
    labels, rows = random_rows(classes=40)
    found = read_predictions(labels, rows)
    assert found.predicted().tolist() == rows.argmax(axis=1).tolist()
    expected = [np.log(max(row[label], LEAST)) for row, label in zip(rows, labels, strict=True)]
    assert found.of_given(found.log_probs) == pytest.approx(expected, abs=1e-4)


def test_rows_that_do_not_sum_to_one_are_normalised():
    labels, rows = random_rows()
    scaled = rows * np.linspace(0.01, 30, len(rows))[:, None]
    assert read_predictions(labels, scaled).log_probs == pytest.approx(
        read_predictions(labels, rows).log_probs, abs=1e-4
    )


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_calibration_factor_undoes_a_temperature(temperature):
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 1.5, (20_000, 5))
    probabilities = softmax(logits)
    labels = (probabilities.cumsum(axis=1) > rng.random(len(logits))[:, None]).argmax(axis=1)
    found = calibration_factor(read_predictions(labels, softmax(logits / temperature)))
    assert found == pytest.approx(temperature, rel=0.05)


def test_labels_that_contradict_every_prediction_leave_a_finite_factor():
    rows = np.eye(2)[np.zeros(50, int)]
    assert 0 < calibration_factor(read_predictions(np.ones(50, int), rows)) < 0.1
    assert np.isfinite(calibration_factor(read_predictions(np.zeros(50, int), rows)))


ROWS = np.full((4, 3), 1 / 3)


def with_cell(value):
    changed = ROWS.copy()
    changed[2, 1] = value
    return changed


@pytest.mark.parametrize(
    ("labels", "rows", "sentence"),
    [
        ([0, 1, 2, 0], with_cell(np.nan), "sample 2 are negative, not finite or all zero"),
        ([0, 1, 2, 0], with_cell(np.inf), "sample 2 are negative"),
        ([0, 1, 2, 0], with_cell(-0.1), "sample 2 are negative"),
        ([0, 1, 2, 0], ROWS * [[1], [0], [1], [1]], "sample 1 are negative"),
        ([0, 1, 2], ROWS, "for 3 labels, not of shape (4, 3)"),
        ([0, 1, 2, 0], ROWS[0], "not of shape (3,)"),
        ([0, 1, 2, 0], ROWS[None], "not of shape (1, 4, 3)"),
        ([[0, 1, 2, 0]], ROWS, "must be [samples, classes]"),
        (0, ROWS, "must be [samples, classes]"),
        ([], np.empty((0, 3)), "at least one sample"),
        ([0, 0], np.ones((2, 1)), "two classes are needed"),
        ([0, 1, 3, 0], ROWS, "from 0 to 2"),
        ([0, 1, -1, 0], ROWS, "from 0 to 2"),
        ([0.0, 1.0, 2.0, 0.0], ROWS, "whole numbers"),
        (list("abca"), ROWS, "whole numbers"),
        ([0, 1, 2, 0], ROWS.astype(str), "must be numbers"),
        ([0, 1, 2, 0], ROWS + 0j, "must be numbers"),
        ([0, 1, 2, 0], ROWS.astype(object), "must be numbers"),
        ([0, 1, 2, 0], [[0.5, 0.5], [1.0]] * 2, "probabilities"),
        ([[0], [1, 2], [0], [1]], ROWS, "labels"),
    ],
)
def test_what_cannot_be_read_is_refused_by_one_sentence(labels, rows, sentence):
    with pytest.raises(InputError) as refused:
        read_predictions(labels, rows)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
