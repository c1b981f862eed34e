"""Runs to exchange: those of the tests of the review, and ids and classes that every format must carry unharmed."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_SPEC = spec_from_file_location("runs_of_the_review", Path(__file__).parents[1] / "review" / "review_runs.py")
_runs = module_from_spec(_SPEC)  # by its path: the folders of tests are no packages
_SPEC.loader.exec_module(_runs)
SHAPES, shape = _runs.SHAPES, _runs.shape
ids_run, judged_run, pictures_run, table_run = _runs.ids_run, _runs.judged_run, _runs.pictures_run, _runs.table_run

STRANGE = [
    "=1+1",
    'say "hi"',
    "two\nlines",
    "'quoted'",
    "ü/β 漢.png",
    "a,b;c",
    "-x",
    "@y",
    "<b>&amp;",
    "'=1+1",
    "${x}",
    "tab\there",
]
CLASSES = ["cat & dog", 'a "quoted" <class>', "Käse"]
