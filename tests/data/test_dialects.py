"""How a file writes its cells is found out from its content, and said."""

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelmend.data.readers.delimited import read_table
from labelmend.data.readers.dialect import column_names, detect_dialect
from labelmend.data.sources import open_source
from labelmend.errors import InputError
from labelmend.fix.plan import plan
from labelmend.fix.undo import undo

CITIES = ["Köln", "Nice, Côte d'Azur", "Liège; B"]
ROWS = [(f"n{i}", f"{1 + 7 * i % 40 / 8}", CITIES[i % 3], "añb"[i % 3] if i % 7 else "ñ") for i in range(30)]
DIALECTS = {
    "plain": ({}, ""),
    "semicolons": ({"delimiter": ";"}, "semicolons between cells"),
    "tabs in a .csv": ({"delimiter": "\t"}, "tabs between cells"),
    "vertical bars": ({"delimiter": "|"}, "vertical bars between cells"),
    "decimal commas": ({"delimiter": ";", "decimal": ","}, "semicolons between cells, decimal commas"),
    "decimal commas in quotes": ({"decimal": ","}, "decimal commas"),
    "a byte order mark": ({"encoding": "utf-8-sig"}, "UTF-8 with a byte order mark"),
    "UTF-16": ({"encoding": "utf-16"}, "UTF-16 with a byte order mark"),
    "UTF-16, big end first": ({"encoding": "utf-16-be", "bom": "\ufeff"}, "UTF-16 with a byte order mark"),
    "Windows": ({"encoding": "cp1252", "end": "\r\n"}, "Windows-1252 (Latin-1)"),
    "old Macintosh": ({"end": "\r"}, ""),
    "everything in quotes": ({"quoting": csv.QUOTE_ALL}, ""),
    "single quotes": ({"quote": "'", "quoting": csv.QUOTE_ALL}, "single quotes around cells"),
    "Excel's first line": ({"delimiter": ";", "bom": "sep=;\r\n"}, "semicolons between cells"),
    "blank lines": ({"bom": "\n\n"}, ""),
    "all of it": (
        {"delimiter": ";", "decimal": ",", "encoding": "utf-16", "end": "\r\n", "quoting": csv.QUOTE_ALL},
        "semicolons between cells, UTF-16 with a byte order mark, decimal commas",
    ),
}


def written(folder, case):
    """The same rows in a dialect."""
    options = DIALECTS[case][0]
    text = io.StringIO(newline="")
    writer = csv.writer(
        text,
        delimiter=options.get("delimiter", ","),
        quotechar=options.get("quote", '"'),
        quoting=options.get("quoting", csv.QUOTE_MINIMAL),
        lineterminator=options.get("end", "\n"),
    )
    rows = [(id, size.replace(".", options.get("decimal", ".")), *rest) for id, size, *rest in ROWS]
    writer.writerows([("id", "größe", "ort", "label"), *rows])
    folder.mkdir(exist_ok=True)
    content = (options.get("bom", "") + text.getvalue()).encode(options.get("encoding", "utf-8"))
    (folder / "t.csv").write_bytes(content)
    return folder / "t.csv"


@pytest.mark.parametrize("case", DIALECTS)
def test_a_dialect_is_detected_and_the_same_cells_are_read(case, tmp_path):
    path = written(tmp_path, case)
    options, said = DIALECTS[case]
    dialect, header = detect_dialect(path)
    assert (dialect.delimiter, dialect.decimal) == (options.get("delimiter", ","), options.get("decimal", "."))
    assert header == ["id", "größe", "ort", "label"]
    read = read_table(path)
    assert read.said == said
    assert read.table["ort"].to_pylist() == [row[2] for row in ROWS]


@pytest.mark.parametrize("case", DIALECTS)
def test_the_numbers_of_every_dialect_are_the_same(case, tmp_path):
    samples, preflight = open_source(str(written(tmp_path, case)))
    plain, _ = open_source(str(written(tmp_path / "plain", "plain")))
    assert np.array_equal(samples.inputs, plain.inputs)
    assert list(samples.kind.columns) == list(plain.kind.columns)
    said = DIALECTS[case][1]
    assert any(said in note.what for note in preflight.notes) == bool(said)


@pytest.mark.parametrize("case", DIALECTS)
def test_apply_writes_the_dialect_that_it_read_and_undo_restores_every_byte(case, tmp_path):
    path = written(tmp_path, case)
    before = path.read_bytes()
    labels, changed = [row[3] for row in ROWS], {2: "ñ", 3: "b"}
    run = tmp_path / "run"
    run.mkdir()
    described = {"status": "finished", "config": {"source": str(path)}, "data": {"fingerprint": "f00d"}}
    (run / "run.json").write_text(json.dumps(described))
    table = {
        "id": [row[0] for row in ROWS],
        "given": labels,
        "noisy_probability": [0.9] * len(ROWS),
        "suggested": [changed.get(row, label) for row, label in enumerate(labels)],
        "confidence": [0.9] * len(ROWS),
        "verdict": ["relabel" if row in changed else "keep" for row in range(len(ROWS))],
    }
    pq.write_table(pa.table(table), run / "labels.parquet")
    plan(run).write(tmp_path / "fixed.csv")
    after = (tmp_path / "fixed.csv").read_bytes()
    encoding = DIALECTS[case][0].get("encoding", "utf-8")
    old, new = (content.decode(encoding).splitlines() for content in (before, after))
    assert len(old) == len(new)
    assert sum(a != b for a, b in zip(old, new, strict=True)) == sum(labels[row] != to for row, to in changed.items())
    assert open_source(str(tmp_path / "fixed.csv"))[0].label_names == table["suggested"]
    assert undo(tmp_path / "fixed.csv").read_bytes() == before


def test_text_in_cells_does_not_decide_what_stands_between_them(tmp_path):
    (tmp_path / "t.csv").write_text("text;label\na, b, c;x\nd, e, f;y\ng, h, i|j;x\n")
    assert detect_dialect(tmp_path / "t.csv")[0].delimiter == ";"
    (tmp_path / "t.csv").write_text('text,label\n"a; b; c",x\n"d; e; f",y\n')
    assert detect_dialect(tmp_path / "t.csv")[0].delimiter == ","


def test_a_single_column_keeps_the_delimiter_of_its_suffix(tmp_path):
    (tmp_path / "t.tsv").write_text("label\na,b\nc\n")
    assert detect_dialect(tmp_path / "t.tsv")[0].delimiter == "\t"
    assert read_table(tmp_path / "t.tsv").table["label"].to_pylist() == ["a,b", "c"]


@pytest.mark.parametrize(
    ("cells", "decimal"),
    [
        (["1,5", "2,25"], ","),
        (["1.5", "2.25"], "."),
        (["1.234,5", "2"], ","),
        (["1,234.5", "2"], "."),
        (["1,234", "5,678"], ","),  # semicolons between cells
        (["1.234", "5.678"], "."),
        (["a, b", "c"], "."),
    ],
)
def test_the_decimal_sign_is_that_of_most_numbers(cells, decimal, tmp_path):
    (tmp_path / "t.csv").write_text("f;label\n" + "".join(f"{cell};x\n" for cell in cells))
    assert detect_dialect(tmp_path / "t.csv")[0].decimal == decimal


def test_byte_order_marks_decide_and_text_that_breaks_their_promise_is_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbff,label\n1,\xe9\n")
    with pytest.raises(InputError, match=r"begins as UTF-8 but is not; save it as UTF-8"):
        detect_dialect(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_bytes("f,label\n1,é\n".encode("utf-16-le"))
    with pytest.raises(InputError, match="NUL bytes"):
        detect_dialect(tmp_path / "t.csv")


def test_names_of_columns_are_trimmed_and_never_twice():
    assert column_names(["a", "a", "", " b ", "a (2)", ""]) == ["a", "a (3)", "column 3", "b", "a (2)", "column 6"]


def test_the_dialect_stands_in_run_json_and_in_the_report(tmp_path, labelmend):
    rng = np.random.default_rng(0)
    lines = [f"{x:.2f};{'ab'[i % 2]}".replace(".", ",") for i, x in enumerate(rng.normal(size=60))]
    (tmp_path / "t.csv").write_text("höhe;label\n" + "\n".join(lines), encoding="cp1252")
    done = labelmend("train", tmp_path / "t.csv", "--epochs", 2, "--out", tmp_path / "run")
    said = "t.csv: read with semicolons between cells, Windows-1252 (Latin-1), decimal commas"
    assert " ".join(said.split()) in " ".join(done.stdout.split())
    data = json.loads((tmp_path / "run" / "run.json").read_bytes())["data"]
    assert data["notes"] == [said]
    assert [(column["name"], column["role"]) for column in data["columns"]] == [("label", "label"), ("höhe", "number")]
    page = (tmp_path / "run" / "report.html").read_text()
    assert 'id="columns"' in page
    assert "höhe" in page
    assert "decimal commas" in page


def test_excel_is_read_with_the_extra_and_named_without_it(tmp_path, monkeypatch):
    openpyxl = pytest.importorskip("openpyxl", reason="the extra excel is not installed")
    book = openpyxl.Workbook()
    for row in (["f", "when", "mixed", "label"], [1, None, "a", "x"], [2.5, None, 3, "y"], [None, None, None, None]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    table = read_table(tmp_path / "t.xlsx").table
    assert table.num_rows == 2
    assert table["f"].to_pylist() == [1.0, 2.5]
    assert table["mixed"].to_pylist() == ["a", "3"]
    assert pa.types.is_null(table["when"].type)
    (tmp_path / "no.xlsx").write_bytes(b"PK no workbook")
    with pytest.raises(InputError, match="cannot be read as an Excel workbook"):
        read_table(tmp_path / "no.xlsx")
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(InputError, match=r"pip install 'labelmend\[excel\]'"):
        read_table(tmp_path / "t.xlsx")
