"""Columns are taken for what is in them, and encoded so that nothing that they say is lost."""

import json

import numpy as np
import pyarrow as pa
import pytest
import torch

from labelmend.data.cells import Cells, parsed_numbers
from labelmend.data.columns import ColumnWishes, typed_column
from labelmend.data.dates import FORMS, read_moments
from labelmend.data.table_encoding import TableEncoding, TableRows
from labelmend.errors import InputError

RNG = np.random.default_rng(0)
N = 200
DAYS = np.datetime64("2021-01-01") + RNG.integers(0, 900, N)
SENTENCES = [" ".join(RNG.choice(["the", "quick", "brown", "fox", "jumps", "over"], 7)) + f" {i}" for i in range(N)]
TYPED = {
    "numbers": ([f"{x:.3f}" for x in RNG.normal(size=N)], "number"),
    "whole numbers that repeat": ([str(x) for x in RNG.integers(0, 40, N)], "number"),
    "numbers with gaps": (["NA" if i % 9 == 0 else f"{i % 7 / 4}" for i in range(N)], "number"),
    "numbers among a few words": (["broken" if i == 5 else f"{i % 31 / 3:.2f}" for i in range(N)], "number"),
    "amounts of money": ([f"${x:,.2f}" for x in RNG.uniform(1, 9000, N)], "number"),
    "percentages": ([f"{x} %" for x in RNG.integers(0, 100, N)], "number"),
    "measurements that never repeat": ([str(x) for x in RNG.choice(10**6, N, replace=False)], "number"),
    "yes and no": (["yes", "no"] * (N // 2), "boolean"),
    "true and false with gaps": (["TRUE", "False", ""] * 66 + ["true"] * 2, "boolean"),
    "zero and one": (["0", "1"] * (N // 2), "boolean"),
    "few words": (["red", "green", "blue", "red"] * (N // 4), "category"),
    "codes with a zero in front": (["01234", "10115", "20095", "50667"] * (N // 4), "category"),
    "long names that repeat": (["a very long name of a group", "another long name of it"] * (N // 2), "category"),
    "many words that repeat": ([f"w{i % 80}" for i in range(N)], "category"),
    "one word and gaps": (["x", ""] * (N // 2), "category"),
    "sentences": (SENTENCES, "text"),
    "sentences without spaces": ([f"東京都の天気は今日{chr(0x4E00 + i)}です" for i in range(N)], "text"),
    "row numbers": ([str(i) for i in range(N)], "id"),
    "row numbers from 1000, shuffled": ([str(1000 + i) for i in RNG.permutation(N)], "id"),
    "names that never repeat": ([f"K{i:05d}" for i in range(N)], "id"),
    "one value": (["same"] * N, "constant"),
    "one number": (["7"] * N, "constant"),
    "nothing": (["", "NA", "?", "null"] * (N // 4), "empty"),
}
WRITTEN = {
    "2024-03-31": "%Y-%m-%d",
    "2024/03/31": "%Y/%m/%d",
    "20240331": "%Y%m%d",
    "03/31/2024": "%m/%d/%Y",
    "31/03/2024": "%d/%m/%Y",
    "31.03.2024": "%d.%m.%Y",
    "03-31-2024": "%m-%d-%Y",
    "31.03.24": "%d.%m.%y",
    "31 Mar 2024": "%d %b %Y",
    "Mar 31, 2024": "%b %d, %Y",
}


def typed(values, name="c", **wishes):
    return typed_column(name, Cells(pa.array(values)), ColumnWishes(**wishes))


def encoded(columns, decimal=".", **wishes):
    rows = TableRows(pa.table(columns), decimal, ColumnWishes(**wishes))
    encoding = TableEncoding.fit(rows, "t.csv")
    return encoding, encoding.encode(rows, "t.csv")[0].numpy()


@pytest.mark.parametrize("case", TYPED)
def test_a_column_is_taken_for_what_is_in_it(case):
    values, role = TYPED[case]
    assert typed(values).role == role


@pytest.mark.parametrize("form", [*WRITTEN, "with a time"])
def test_dates_are_read_in_the_forms_that_people_write(form):
    days = DAYS.astype(object)
    texts = [day.strftime(WRITTEN.get(form, "%Y-%m-%dT07:30:00Z")) for day in days]
    column = typed(texts)
    assert column.role == "date"
    assert column.details["form"] == (form if form in FORMS else "2024-03-31")
    encoding, matrix = encoded({"c": texts})
    read = Cells(pa.array(texts)).moments(column.details["form"]).parts
    assert read["year"].tolist() == [day.year for day in days]
    assert read["month"].tolist() == [day.month for day in days]
    assert read["weekday"].tolist() == [day.weekday() for day in days]
    assert encoding.names == ["c: year", "c: month", "c: weekday", "c: days"]
    assert np.corrcoef(matrix[:, 3], DAYS.astype("int64"))[0, 1] > 0.999


def test_a_day_that_no_month_has_is_no_date():
    assert read_moments(pa.array(["2023-02-30", "2023-13-01", "31.04.2023"])) is None


def test_every_missing_value_is_marked_and_filled_with_the_middle():
    encoding, matrix = encoded({"x": ["1", "NA", "3", "2", "?", "NaN", "2", "1"]})
    assert encoding.names == ["x", "x is missing"]
    assert matrix[:, 1].tolist() == [0, 1, 0, 0, 1, 1, 0, 0]
    assert matrix[1, 0] == matrix[3, 0] == 0


def test_a_far_number_is_drawn_in_and_the_order_is_kept():
    values = [*np.linspace(-1, 1, 99), 1e30, -1e12, np.inf]
    _, matrix = encoded({"x": values})
    assert np.isfinite(matrix).all()
    assert np.abs(matrix).max() < 100
    assert (np.argsort(values[:-1]) == np.argsort(matrix[:-1, 0])).all()


def test_categories_have_a_column_each_rare_ones_share_one_and_gaps_have_theirs():
    values = ["a"] * 10 + ["b"] * 6 + ["c", "d", None, None]
    encoding, matrix = encoded({"x": values})
    assert encoding.names == ["x = a", "x = b", "x is another value", "x is missing"]
    assert matrix.sum(axis=0).tolist() == [10, 6, 2, 2]
    assert (matrix.sum(axis=1) == 1).all()


def test_ten_thousand_categories_make_few_columns_and_their_frequency():
    values = [f"v{i % 10_000}" for i in range(30_000)] + ["often"] * 5_000
    encoding, matrix = encoded({"x": values}, category=["x"])
    assert encoding.width <= 53
    assert encoding.names[-1] == "x (how frequent)"
    assert matrix[-1, -1] == pytest.approx(np.log(5_000 / 35_000), abs=1e-5)


def test_many_categories_of_many_rows_keep_the_matrix_within_bounds():
    rows = TableRows(pa.table({f"c{j}": [f"v{i % 60}" for i in range(600)] for j in range(3)}))
    import labelmend.data.table_encoding as module

    least = TableEncoding.fit(rows, "t").width
    before, module.LARGEST_MATRIX = module.LARGEST_MATRIX, 600 * 40
    try:
        assert TableEncoding.fit(rows, "t").width < 50 < least
    finally:
        module.LARGEST_MATRIX = before


def test_wishes_overrule_the_content():
    values = [str(i % 5) for i in range(N)]
    assert typed(values).role == "number"
    assert typed(values, category=["c"]).role == "category"
    assert typed(values, text=["c"]).role == "text"
    assert typed(values, drop=["c"]).role == "dropped"
    assert typed(values, only=["other"]).role == "dropped"
    assert typed([str(i) for i in range(N)], only=["c"]).role == "number"
    with pytest.raises(InputError, match="did you mean 'c'"):
        TableEncoding.fit(TableRows(pa.table({"c": values}), wishes=ColumnWishes(drop=["cc"])), "t.csv")


def test_arrow_types_say_what_they_are():
    assert typed(pa.array(DAYS)).role == "date"
    assert typed(pa.array(["a", "b"] * 9).dictionary_encode()).role == "category"
    assert typed(pa.array([True, False, None])).role == "boolean"
    assert typed(pa.array([[1.0], [2.0]])).role == "unusable"
    assert typed(pa.nulls(5)).role == "empty"


def test_an_encoding_survives_json_and_does_the_same_to_rows_in_another_order():
    table = pa.table({name: values for name, (values, _) in TYPED.items()} | {"day": [str(day) for day in DAYS]})
    rows = TableRows(table)
    encoding = TableEncoding.fit(rows, "t.csv")
    again = TableEncoding.restored(json.loads(json.dumps(encoding.described())), encoding.tensors())
    other = TableRows(table.select(table.column_names[::-1]))
    assert again.names == encoding.names
    assert torch.equal(again.encode(other, "o.csv")[0], encoding.encode(rows, "t.csv")[0])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"x": ["a", "b", "c"]}, "column 'x' of new.csv holds 'a' where numbers are expected"),
        ({"day": ["1", "2", "3"]}, "column 'day' of new.csv holds '1' where dates written like 2024-03-31"),
        ({"flag": ["7", "8", "9"]}, "column 'flag' of new.csv holds '7' where yes or no are expected"),
        ({"x": None}, "new.csv has no column 'x', which the model was trained on"),
    ],
)
def test_new_rows_of_another_type_are_refused_in_one_sentence(change, expected):
    trained = {"x": ["1.5", "2", "2"], "day": ["2024-01-01", "2024-02-01", "2023-05-05"], "flag": ["yes", "no", "no"]}
    encoding, _ = encoded(trained)
    new = {name: values for name, values in (trained | change).items() if values is not None}
    with pytest.raises(InputError, match=expected) as refused:
        encoding.encode(TableRows(pa.table(new)), "new.csv")
    assert "\n" not in str(refused.value)


def test_new_categories_count_as_unknown_and_are_noted():
    encoding, matrix = encoded({"x": ["a", "b"] * 20})
    found, notes = encoding.encode(TableRows(pa.table({"x": ["a", "z"]})), "new.csv")
    assert found[0].tolist() == matrix[0].tolist()
    assert found[1].tolist() == [0, 0]
    assert notes == ["column 'x' has 1 new value that counts as unknown: 'z'"]


@pytest.mark.parametrize(
    ("text", "decimal", "value"),
    [
        ("1,234,567.5", ".", 1234567.5),
        ("1.234.567,5", ",", 1234567.5),
        ("1 234,5", ",", 1234.5),
        ("1\u00a0234.5", ".", 1234.5),
        ("1'234.5", ".", 1234.5),
        ("-12 %", ".", -12),
        ("€ 3.50", ".", 3.5),
        ("3,50 €", ",", 3.5),
        ("1e-3", ".", 0.001),
        ("1,5", ".", None),
        ("12-13", ".", None),
    ],
)
def test_numbers_are_read_as_people_write_them(text, decimal, value):
    found = parsed_numbers(pa.array([text]), decimal)[0]
    assert (None if np.isnan(found) else found) == value
