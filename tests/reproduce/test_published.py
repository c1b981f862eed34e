"""The published numbers are the paper's."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from labelmend.reproduce.catalogue import TABLES, Asked
from labelmend.reproduce.protocol import PAPER
from labelmend.reproduce.tables import published

PAPER_TEXT = Path(__file__).parents[3] / "shared/paper/arazo2019.tex"
LABELS = {
    "table1": "NmixDbootCIFAR",
    "table2": "JointPerformance",
    "table3": "ExtremeNoise",
    "table4": "ComparisonSoA1",
    "table5": "ComparisonSoA2",
    "tinyimagenet": "TinyImageNet",
}
CITED = {
    "Bootstrapping": "2015_ICLR_Bootstrapping",
    "Forward": "2017_CVPR_ForwardLoss",
    "MentorNet": "2018_ICML_MentorNet",
    "D2L": "2018_ICML_DimDriven",
    "L2RW": "2018_ICML_L2ReweightNoise",
    "Iterative": "2018_CVPR_IterativeNoise",
}


def test_some_numbers_by_heart():
    known = published()
    assert known["table2", "cifar10", "M-DYR-H", "80"][:2] == (86.8, 86.6)
    assert known["table2", "cifar100", "M-DYR-H", "80"][:2] == (48.2, 47.6)
    assert known["table3", "cifar10", "M-DYR-H", "90"][:2] == (40.8, 9.9)
    assert known["table4", "cifar10", "Forward", "50"][:2] == (79.8, 59.4)
    assert known["table5", "cifar10", "MentorNet", "80"] == (49.0, None, "Jiang et al. 2018", "WRN-101")
    assert known["frequency", "cifar10", "every 0.5 epochs", "80"][:2] == (88.0, 87.5)
    assert known["fixed-weights", "cifar10", "fixed 0.8 / 0.2", "80"][:2] == (None, 74.6)


def numbers_in(table, row):
    """Best and last accuracies of one system in the LaTeX source, one data set after the other."""
    tables = re.findall(r"\\begin{table}.*?\\end{table}", PAPER_TEXT.read_text(), re.DOTALL)
    lines = next(block for block in tables if f"tab:{table}" in block).splitlines()
    mark = re.compile(rf"(?<![-\w]){re.escape(CITED.get(row, row))}(?![-\w])")
    found = []
    for best, following in pairwise(lines):
        name, *cells = best.split("&")
        if mark.search(name) and cells and cells[0].strip() == "Best":
            found += re.findall(r"\d+\.\d", "&".join(cells) + following)
    return [float(value) for value in found]


@pytest.mark.skipif(not PAPER_TEXT.is_file(), reason="the paper's source is not beside the project")
@pytest.mark.parametrize(
    ("table", "row"),
    [("table1", row) for row in ("CE", "ST-S", "ST-H", "DY-S", "DY-H")]
    + [("table2", row) for row in ("CE", "M", "M-DYR-S", "M-DYR-H")]
    + [("table3", row) for row in ("M-DYR-H", "MD-DYR-H", "MD-DYR-SH")]
    + [("table4", row) for row in ("Bootstrapping", "Forward", "M-DYR-H", "MD-DYR-SH")]
    + [("tinyimagenet", row) for row in ("M-DYR-H", "MD-DYR-SH")],
)
def test_numbers_are_those_of_the_papers_source(table, row):
    lines = [(key, value) for key, value in published().items() if key[0] == table and key[2] == row]
    kept = []
    for data in dict.fromkeys(key[1] for key, _ in lines):
        for which in ("best", "last"):
            kept += [getattr(value, which) for key, value in lines if key[1] == data]
    assert numbers_in(LABELS[table], row) == kept
    assert kept


def test_every_row_that_the_paper_has_is_run_and_has_its_number():
    missing, unused = [], {key for key in published() if key[0] in TABLES}
    for name, experiment in TABLES.items():
        for run in experiment.runs(PAPER, Asked(seeds=1)):
            place = (name, run.data, run.row, "" if run.noise is None else str(run.noise))
            unused.discard(place)
            if place not in published() and name != "details":
                missing.append(place)
    assert {(name, row) for name, _, row, _ in missing} == {
        ("table5", "MentorNet"),
        ("table5", "D2L"),
        ("table5", "L2RW"),
        ("table5", "Iterative"),
    }
    assert unused == {("clothing1m", "clothing1m", "Joint", "")}
