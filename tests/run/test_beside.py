"""What stands beside a suspect: the nearest samples of two classes, and values that one class does not explain."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from labelmend.data.readers.arrays import from_arrays
from labelmend.data.sources import open_source
from labelmend.run.beside import NEAREST, Reference, beside
from labelmend.run.unusual import FEWEST, Usual, unusual_values

ROWS = np.array([[0, 0], [0, 1], [1, 0], [0, 2], [9, 9], [9, 8], [8, 9], [9, 7], [9, 9.5], [0.5, 0.5]], np.float32)
GIVEN = np.array([0, 0, 0, 0, 1, 1, 1, 1, 0, 1])
FLAGGED = np.arange(10) >= 8


@pytest.fixture
def table():
    return SimpleNamespace(given=GIVEN, rival=1 - GIVEN, flagged=FLAGGED, class_names=["low", "high"])


@pytest.fixture
def data():
    return from_arrays("rows", ROWS, GIVEN)


def reference(data, table):
    return Reference.of(data, table, np.arange(10), torch.from_numpy(ROWS))


def test_nearest_samples_are_of_the_class_nearest_first_and_never_suspects(data, table):
    found = reference(data, table)
    assert found.nearest(torch.tensor([9.0, 9.4]), 8, 1) == [4, 6, 5]
    assert found.nearest(torch.tensor([9.0, 9.4]), 8, 0)[0] == 3
    assert 9 not in found.nearest(torch.tensor([0.5, 0.5]), 9, 1)
    assert 0 not in found.nearest(torch.tensor([0.0, 0.0]), 0, 0)
    assert found.nearest(torch.tensor([0.0, 0.0]), 0, 7) == []


def test_wide_rows_are_compared_by_their_direction(data, table):
    wide = torch.zeros(10, 64)
    wide[:, 0], wide[0, 1], wide[1, 0] = 1.0, 5.0, 100.0
    found = Reference.of(data, table, np.arange(10), wide)
    assert found.nearest(wide[8], 8, 0)[-1] == 0 or 0 not in found.nearest(wide[8], 8, 0)
    assert 1 in found.nearest(wide[8], 8, 0)


def test_each_suspect_has_both_classes_beside_it_and_samples_are_named_once(data, table):
    model = SimpleNamespace(features=lambda inputs: inputs)
    found, named = beside(data, table, model, [8, 9], reference(data, table))
    assert [entry["rival"] for entry in found] == ["high", "low"]
    assert len(set(named)) == len(named)
    for entry, given in zip(found, (0, 1), strict=True):
        assert [GIVEN[named[place]] for place in entry["like_given"]] == [given] * NEAREST
        assert [GIVEN[named[place]] for place in entry["like_rival"]] == [1 - given] * NEAREST


def test_further_suspects_know_the_rows_that_are_near_them(data, table, monkeypatch):
    monkeypatch.setattr("labelmend.run.beside.MOST_COMPARED", 1)
    monkeypatch.setattr("labelmend.run.beside.AT_ONCE", 1)
    model = SimpleNamespace(features=lambda inputs: inputs)
    (first, second), named = beside(data, table, model, [8, 9], reference(data, table))
    assert [named[place] for place in first["like_given"]] == first["near_given"]
    assert "like_given" not in second
    assert [GIVEN[row] for row in second["near_given"]] == [1] * NEAREST
    assert [GIVEN[row] for row in second["near_rival"]] == [0] * NEAREST


def test_without_kept_labels_all_are_compared(data, table):
    table.flagged = np.ones(10, dtype=bool)
    assert len(reference(data, table).rows) == 10


def test_a_class_of_few_samples_does_not_tell_what_is_usual(data, table):
    found = reference(data, table)
    assert (found.given == 0).sum() < FEWEST
    assert found.usual(0) is None
    assert unusual_values(ROWS[8], None, found.usual(1)) == []


def usual(middle, spread):
    """Classes with this median and these quartiles."""
    middle, spread = np.asarray(middle, float), np.asarray(spread, float)
    quantiles = np.stack([middle - 2 * spread, middle - spread, middle, middle + spread, middle + 2 * spread])
    return Usual(10, quantiles, [])


def test_values_that_the_rival_explains_come_first_and_usual_ones_are_left_out():
    given, rival = usual([0, 0, 0, 0], [1, 1, 1, 1]), usual([5, 50, 0, -50], [1, 1, 1, 1])
    found = unusual_values(np.array([5, 50, 0.5, 9], np.float32), given, rival)
    assert [entry["column"] for entry in found] == [1, 0]
    assert found[0] == {"column": 1, "value": 50.0, "given": [-2.0, 2.0], "rival": [48.0, 52.0]}


def test_constant_and_missing_values_do_not_break_the_comparison():
    given, rival = usual([0, 1, np.nan], [0, 0, 0]), usual([7, 1, np.nan], [1, 0, 0])
    found = unusual_values(np.array([7, np.nan, 3], np.float32), given, rival)
    assert [entry["column"] for entry in found] == [0]


def test_pictures_have_no_values(data):
    assert data.shown_numbers([3, 1]).tolist() == [[0, 2], [0, 1]]
    assert from_arrays("pictures", np.zeros((4, 8, 8), np.uint8), np.arange(4) % 2).shown_numbers([0]) is None


def test_columns_with_gaps_are_compared_by_the_values_that_are_there():
    values = np.tile(np.arange(6, dtype=np.float32)[:, None], (1, 3))
    values[0, 0], values[:, 1] = np.nan, np.nan
    found = Reference(np.arange(6), np.zeros(6, np.int64), torch.zeros(6, 1), values).usual(0)
    assert found.quantiles[2].tolist() == pytest.approx([3, np.nan, 2.5], nan_ok=True)


def test_words_that_the_rival_has_more_often_are_unusual_and_common_ones_are_not():
    numbers = np.full((20, 3), np.nan, np.float32)
    numbers[:, 2] = np.arange(20)
    given = Usual.of(numbers, [["red", "yes", None]] * 19 + [["blue", "yes", None]])
    rival = Usual.of(numbers, [["blue", "yes", None]] * 10 + [["green", "no", None]] * 10)
    values = np.array([np.nan, np.nan, 10], np.float32)
    (found,) = unusual_values(values, given, rival, ["blue", "yes", None])
    assert found == {"column": 0, "word": "blue", "given": [0.05], "rival": [0.5]}
    assert unusual_values(values, given, rival, ["red", "no", None])[0]["word"] == "no"
    assert unusual_values(values, given, rival, ["violet", None, None]) == []


def test_cells_of_categories_are_words_and_empty_ones_too(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{['red', 'blue', ''][i % 3]},{i % 7 + 0.5},{'yes' if i % 2 else 'no'},{'ab'[i % 2]}" for i in range(60)]
    path.write_text("\n".join(["colour,size,sold,label", *rows]))
    data, _ = open_source(str(path))
    assert data.shown_words([0, 2]) == [["red", None, "no"], ["(empty)", None, "no"]]
