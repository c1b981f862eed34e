"""What stands beside a suspect in a report: marked words, bars of unusual values, and the samples most like it."""

import io

import numpy as np
import pytest
from PIL import Image

from labelmend.report.beside import compared_cells, neighbours_of, text_parts, unusual_bars
from labelmend.report.build import build_report
from labelmend.report.picture import as_picture

UNUSUAL = {"column": 1, "value": 10.0, "given": [0.0, 2.0], "rival": [8.0, 20.0]}


def test_marked_parts_put_together_are_the_text():
    parts = text_parts("not a good film", [6, 10, 11, 15])
    assert "".join(part for part, _ in parts) == "not a good film"
    assert [part for part, loud in parts if loud] == ["good", "film"]


@pytest.mark.parametrize("marks", [None, [], [3], [5, 2], [0, 99], [-3, 2], [2, 4, 1, 3]])
def test_marks_that_make_no_sense_are_passed_over(marks):
    parts = text_parts("a text", marks)
    assert "".join(part for part, _ in parts) == "a text"
    assert [part for part, loud in parts if loud] == (["te"] if marks == [2, 4, 1, 3] else [])


def test_a_bar_has_the_value_and_both_classes_on_one_line():
    (bar,) = unusual_bars([UNUSUAL], ["a", "b"])
    assert (bar.name, bar.value) == ("b", 10.0)
    assert bar.given == (4.0, pytest.approx(13.2))
    assert bar.at == pytest.approx(4 + 92 / 2)
    assert bar.rival[1] == 96.0


@pytest.mark.parametrize(
    "change", [{"column": 7}, {"column": None}, {"value": float("nan")}, {"given": []}, {"rival": [1.0, float("inf")]}]
)
def test_bars_that_make_no_sense_are_passed_over(change):
    assert unusual_bars([UNUSUAL | change], ["a", "b"]) == []


def test_a_word_has_the_shares_of_both_classes():
    entry = {"column": 0, "value": None, "word": "blue", "given": [0.05], "rival": [0.5]}
    (bar,) = unusual_bars([entry], ["colour"])
    assert (bar.name, bar.word, bar.given, bar.rival) == ("colour", "blue", 5.0, 50.0)
    assert (
        unusual_bars([entry | {"rival": [float("nan")]}, entry | {"given": []}, entry | {"column": 3}], ["colour"])
        == []
    )


def test_values_of_neighbours_stand_beside_those_of_the_suspect_the_unusual_first():
    known = [{"id": "n", "given": "cat", "features": [3.0, 4.0]}, {"id": "short", "features": [1.0]}]
    like = neighbours_of([0, 1, 9, -1], known, columns=2)
    assert [each.id for each in like] == ["n"]
    bars = unusual_bars([UNUSUAL], ["a", "b"])
    assert compared_cells(["1", "10"], like, ["a", "b"], bars) == [("b", True, ["10", "4"]), ("a", False, ["1", "3"])]


def test_a_picture_beside_another_is_small():
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (160, 120, 3), dtype=np.uint8)).save(buffer, "PNG")
    whole, beside = as_picture(buffer.getvalue()), as_picture(buffer.getvalue(), side=96)
    assert len(beside.url) < len(whole.url) / 2
    assert as_picture(b"<svg/>") is None


def test_a_report_of_texts_marks_words_and_shows_the_texts_most_like_it(make_run):
    run = make_run(texts=[f"a <b>text</b> number {i}" for i in range(120)], neighbours=True)
    build_report(run)
    page = run.report.read_text()
    assert "a<mark> &lt;</mark>b&gt;text&lt;/b&gt; number" in page
    assert "<b>text</b>" not in page
    assert page.count("Most like it, labelled") == 2 * page.count('<details class="suspect entry"')


def test_a_report_of_rows_names_the_ranges_of_both_classes(make_run):
    run = make_run(columns=["length", "width"], neighbours=True)
    build_report(run)
    page = run.report.read_text()
    assert '<span class="text">width</span> <b>9.5</b>' in page
    assert ": 8 to 12</span>" in page
