"""Odd tables follow a documented rule, or are refused by one sentence that names what to do."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelmend.data.readers.table import Columns
from labelmend.data.sources import SourceOptions, open_source
from labelmend.errors import InputError
from labelmend.training.config import TrainConfig
from labelmend.training.prepare import source_options

ROWS = 24
LABELS = ["ant", "bee"] * (ROWS // 2)
NUMBERS = [f"{(7 * i) % 11 / 4}" for i in range(ROWS)]


def table(header="f,label", cells=None, *, delimiter=",", end="\n", encoding="utf-8"):
    """A table with a column of these cells, or of numbers, and labels."""
    rows = [f"{cell}{delimiter}{label}" for cell, label in zip(cells or NUMBERS, LABELS, strict=True)]
    return (header + end + end.join(rows) + end).encode(encoding)


def beside(cells, name="c"):
    """A table with another column beside the numbers."""
    return table(f"{name},f,label", [f"{cell},{number}" for cell, number in zip(cells, NUMBERS, strict=True)])


TAKEN = {
    "comma": (table(), {"f": "number"}),
    "semicolon": (table("f;label", delimiter=";"), {"f": "number"}),
    "tab": (table("f\tlabel", delimiter="\t"), {"f": "number"}),
    "vertical bar": (table("f|label", delimiter="|"), {"f": "number"}),
    "line ends of Windows": (table(end="\r\n"), {"f": "number"}),
    "line ends of old Macintosh": (table(end="\r"), {"f": "number"}),
    "no line end at the end": (table().rstrip(b"\n"), {"f": "number"}),
    "blank lines": (table(end="\n\n"), {"f": "number"}),
    "UTF-8 with its mark": (b"\xef\xbb\xbf" + table(), {"f": "number"}),
    "UTF-16": (table(encoding="utf-16"), {"f": "number"}),
    "Latin-1": (table("größe,label", encoding="latin-1"), {"größe": "number"}),
    "bytes that Windows-1252 lacks": (table("f\x81,label", encoding="latin-1"), {"f\x81": "number"}),
    "decimal commas": (table("f;label", [n.replace(".", ",") for n in NUMBERS], delimiter=";"), {"f": "number"}),
    "thousands": (beside([f'"{1000 + 250 * (i % 9):,}"' for i in range(ROWS)]), {"c": "number", "f": "number"}),
    "quoted numbers": (table(cells=[f'"{n}"' for n in NUMBERS]), {"f": "number"}),
    "line ends in cells": (beside([f'"a\nb{i % 2}"' for i in range(ROWS)]), {"c": "category", "f": "number"}),
    "quotes in quotes": (beside([f'"say ""{i % 2}"""' for i in range(ROWS)]), {"c": "category", "f": "number"}),
    "spaces around everything": (table(" f , label ", [f"  {n} " for n in NUMBERS]), {"f": "number"}),
    "ISO dates": (beside([f"2024-01-{i % 9 + 1:02d}" for i in range(ROWS)]), {"c": "date", "f": "number"}),
    "dates with points": (beside([f"{i % 9 + 1}.11.2023" for i in range(ROWS)]), {"c": "date", "f": "number"}),
    "American dates": (beside([f"1/{i % 20 + 1}/2023" for i in range(ROWS)]), {"c": "date", "f": "number"}),
    "British dates": (beside([f"{i % 20 + 1}/1/2023" for i in range(ROWS)]), {"c": "date", "f": "number"}),
    "dates with words": (beside([f"{i % 20 + 1} March 2023" for i in range(ROWS)]), {"c": "date", "f": "number"}),
    "dates of digits": (beside([f"202301{i % 20 + 1:02d}" for i in range(ROWS)]), {"c": "date", "f": "number"}),
    "mixed types": (beside(["3", "x", "2024-01-01"] * (ROWS // 3)), {"c": "category", "f": "number"}),
    "a few words among numbers": (beside(["oops"] + ["2.5", "3"] * 11 + ["4"]), {"c": "number", "f": "number"}),
    "nothing in a column": (beside([""] * ROWS), {"c": "empty", "f": "number"}),
    "nothing but NA": (beside(["NA"] * ROWS), {"c": "empty", "f": "number"}),
    "one value": (beside(["x"] * ROWS), {"c": "constant", "f": "number"}),
    "a name twice": (beside(NUMBERS, "f"), {"f": "number", "f (2)": "number"}),
    "no name": (beside(range(ROWS), ""), {"column 1": "id", "f": "number"}),
    "a delimiter behind every row": (
        table("f,label,", end=",\n").replace(b"label,,", b"label,"),
        {"f": "number", "column 3": "empty"},
    ),
    "infinities": (beside(["inf", "-inf", "1", "2"] * (ROWS // 4)), {"c": "number", "f": "number"}),
    "a huge field": (beside(["x" * 200_000, "y"] * (ROWS // 2)), {"c": "category", "f": "number"}),
    "sentences named image": (
        beside([f"a sentence that is not the path of number {i}" for i in range(ROWS)], "image"),
        {"image": "text", "f": "number"},
    ),
    "long sentences named path": (
        beside([f"{'very ' * 90}long {i}" for i in range(ROWS)], "path"),
        {"path": "text", "f": "number"},
    ),
    "markup and formulas": (beside(["<b>", "=1+1", "{{x}}"] * (ROWS // 3)), {"c": "category", "f": "number"}),
    "emoji": (beside(["🐱", "🐶"] * (ROWS // 2)), {"c": "category", "f": "number"}),
    "one long word a row": (beside([f"{i:040x}" for i in range(ROWS)]), {"c": "id", "f": "number"}),
}
REFUSED = {
    "an empty file": (b"", "cannot be read as a table"),
    "a header alone": (b"f,label\n", "has no samples"),
    "one row": (b"f,label\n1,a\n", "a single class"),
    "only ids": (table("c,label", [f"K{i}" for i in range(ROWS)]), r"no column to learn from: .*'c' \(id\).*--columns"),
    "only labels": (b"label\n" + "\n".join(LABELS).encode(), "neither an image column nor feature columns"),
    "no labels": (table("f,g"), "no label column; name it with --label-column"),
    "two columns of labels": (beside(LABELS, "label"), "two columns named 'label'"),
    "ragged rows": (table() + b"1,a,3\n", "a row has 3 cells where the header names 2"),
    "short rows": (table() + b"1\n", "a row has 1 cell where the header names 2"),
    "an open quote": (table() + b'"1,a\n', "cannot be read as a table"),
    "NUL bytes": (table() + b"\0,a\n", "NUL bytes.*save it as UTF-8"),
    "UTF-16 without its mark": (table(encoding="utf-16-le"), "NUL bytes"),
    "UTF-16 that is cut": (table(encoding="utf-16")[:-1], "begins as UTF-16 but is not"),
    "a compressed file": (gzip.compress(table() * 50), "NUL bytes|cannot be read as a table|no label column"),
    "measurements as labels": (
        ("f,label\n" + "\n".join(f"{i % 5 / 2},{i / 7:.3f}" for i in range(60))).encode(),
        "are measurements, not classes; cut them",
    ),
    "too many columns": (",".join(["c"] * 40_000).encode() + b"\n", "has 40,000 columns, and at most 32,768 are taken"),
}


@pytest.mark.parametrize("case", TAKEN)
def test_an_odd_table_is_taken_by_the_documented_rule(case, tmp_path):
    content, roles = TAKEN[case]
    (tmp_path / "t.csv").write_bytes(content)
    samples, _ = open_source(str(tmp_path / "t.csv"))
    made = {column["name"]: column["role"] for column in samples.kind.described()["columns"]}
    made.pop("label", None)
    assert made == roles
    assert samples.label_names == LABELS
    assert samples.inputs.isfinite().all()
    assert samples.inputs.std(dim=0).max() > 0


@pytest.mark.parametrize("case", REFUSED)
def test_an_odd_table_is_refused_by_one_sentence(case, tmp_path):
    content, expected = REFUSED[case]
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(InputError, match=expected) as refused:
        open_source(str(tmp_path / "t.csv"))
    assert "\n" not in str(refused.value)


def test_ten_thousand_categories_are_taken(tmp_path):
    rows = [f"v{i % 10_000},{i % 13},{'ab'[i % 2]}" for i in range(20_000)]
    (tmp_path / "t.csv").write_text("\n".join(["c,f,label", *rows]))
    samples, _ = open_source(str(tmp_path / "t.csv"))
    assert samples.shape[0] <= 60


def test_five_thousand_columns_are_taken(tmp_path):
    values = np.random.default_rng(0).normal(size=(20, 5_000)).round(3)
    rows = [",".join(map(str, row)) + "," + "ab"[i % 2] for i, row in enumerate(values)]
    (tmp_path / "t.csv").write_text("\n".join([",".join(f"x{j}" for j in range(5_000)) + ",label", *rows]))
    samples, _ = open_source(str(tmp_path / "t.csv"))
    assert samples.shape == (5_000,)


def test_columns_that_hold_lists_are_left_out_and_said(tmp_path):
    rows = pa.table({"f": range(9, 33), "v": [[1.0, 2.0]] * ROWS, "g": [i % 5 for i in range(ROWS)], "label": LABELS})
    pq.write_table(rows, tmp_path / "t.parquet")
    samples, _ = open_source(str(tmp_path / "t.parquet"))
    made = {column["name"]: column for column in samples.kind.described()["columns"]}
    assert made["v"]["role"] == "unusable"
    assert "list" in made["v"]["reason"]
    assert made["f"]["role"] == "id"


def test_labels_that_differ_by_case_get_a_note(tmp_path):
    (tmp_path / "t.csv").write_text(
        "f,label\n" + "".join(f"{i % 5},{['Cat', 'cat', 'dog'][i % 3]}\n" for i in range(30))
    )
    _, preflight = open_source(str(tmp_path / "t.csv"))
    assert [str(note) for note in preflight.notes] == [
        "classes 'Cat' and 'cat': differ only by case or spaces; are they one class?"
    ]


def test_labels_that_differ_by_spaces_around_them_are_one_class_and_get_a_note(tmp_path):
    (tmp_path / "t.csv").write_text(
        "f,label\n" + "".join(f"{i % 5},{['cat', 'cat ', 'dog'][i % 3]}\n" for i in range(30))
    )
    samples, preflight = open_source(str(tmp_path / "t.csv"))
    assert list(samples.class_names) == ["cat", "dog"]
    assert [note.what for note in preflight.notes] == [
        "labels that differ only by spaces around them are one class, as 'cat '"
    ]


def test_options_overrule_what_columns_are_taken_as(tmp_path):
    rows = [f"K{i},{i % 7},{i % 3},{i},{'ab'[i % 2]}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(['id,f,"g, cm",n,label', *rows]))
    options = source_options(TrainConfig("t.csv", "run", drop_columns="id", category=["g, cm"], columns='f,"g, cm",n'))
    samples, _ = open_source(str(tmp_path / "t.csv"), options)
    made = {column["name"]: column["role"] for column in samples.kind.described()["columns"]}
    assert made == {"id": "id", "label": "label", "f": "number", "g, cm": "category", "n": "number"}


def test_an_id_column_names_the_samples_and_is_not_learned_from(tmp_path):
    rows = [f"P{i:03d},{i % 7},{'ab'[i % 2]}" for i in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["patient_id,f,label", *rows]))
    samples, _ = open_source(str(tmp_path / "t.csv"))
    assert samples.ids[3] == "P003"
    assert list(samples.kind.columns) == ["f"]


def test_a_test_table_is_encoded_like_the_training_table(tmp_path):
    (tmp_path / "a.csv").write_text(
        "c,f,label\n" + "".join(f"{'xy'[i % 2]},{i % 7},{'ab'[i % 2]}\n" for i in range(30))
    )
    (tmp_path / "b.csv").write_text("label,f,c\na,3,x\nb,4,new\n")
    samples, preflight = open_source(str(tmp_path / "a.csv"), SourceOptions(test=str(tmp_path / "b.csv")))
    assert samples.test.shape == samples.shape
    assert samples.test.inputs[1].tolist()[:2] == [0, 0]
    assert "1 new value" in str(preflight.notes[-1])


def test_original_cells_are_shown(tmp_path):
    (tmp_path / "t.csv").write_text(
        "c;f;label\n" + "".join(f"{'xy'[i % 2]};1,{i % 7};{'ab'[i % 2]}\n" for i in range(30))
    )
    samples, _ = open_source(str(tmp_path / "t.csv"), SourceOptions(columns=Columns(label="label")))
    assert samples.shown([1, 4]) == {"cells": [["y", "1,1"], ["x", "1,4"]]}
    assert list(samples.shown_columns) == ["c", "f"]
