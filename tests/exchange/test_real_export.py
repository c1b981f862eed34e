"""What a real Label Studio 1.23.2 exported after answers were given in it; label_studio_export.py made it."""

import json
from pathlib import Path

import pytest
from exchanged import STRANGE

from labelmend.exchange.formats import import_file

EXPECTED = {
    "${x}": ("keep", ""),
    "ü/β 漢.png": ("relabel", "cat & dog"),
    "=1+1": ("bad", ""),
    "<b>&amp;": ("keep", ""),
    "tab\there": ("keep", ""),
    "a,b;c": ("relabel", "cat & dog"),
    "@y": ("bad", ""),
    "'=1+1": ("keep", ""),
}
"""Cancelled: `-x` and `'quoted'`. Not answered: `two\\nlines` and `say "hi"`."""


@pytest.mark.parametrize("name", ["export", "min"])
def test_a_real_export_gives_the_decisions_that_were_made_in_label_studio(name, run_of, said):
    run, file = run_of("ids"), Path(__file__).parent / f"label-studio-{name}.json"
    found = import_file(run, file, "label-studio")
    assert said(run) == [(id, *words, "label-studio-1") for id, words in EXPECTED.items()]
    assert len(found.new) == 8
    assert len({each.time for each in found.new}) == 8
    again = import_file(run, file, "label-studio")
    assert (len(again.new), again.standing) == (0, 8)


def test_both_exports_give_the_same_decisions(run_of, tmp_path, said):
    run, folder = run_of("ids"), Path(__file__).parent
    import_file(run, folder / "label-studio-export.json", "label-studio")
    assert not import_file(run, folder / "label-studio-min.json", "label-studio").new


def test_label_studio_kept_ids_and_suggestions_as_they_were():
    tasks = json.loads((Path(__file__).parent / "label-studio-export.json").read_text())
    assert {task["data"]["sample_id"] for task in tasks} == set(STRANGE)
    assert [bool(task["predictions"]) for task in tasks] == [bool(task["data"]["suggested"]) for task in tasks]
