"""Tables say what the runs came to: mean, spread, the best in bold, the paper's number beside ours."""

import csv
import io

from labelmend.reproduce.catalogue import TABLES, Asked
from labelmend.reproduce.protocol import PAPER, SMALL
from labelmend.reproduce.runs import Result
from labelmend.reproduce.tables import Cell, by_run, grids, markdown


def result(run, best, last, **changes):
    measured = {"auc": 0.9, "judged": 0.95, "noise_rate": 0.5, "largest": 0.2, "seconds": 4.0}
    return Result(key=run.key, best=best, last=last, version="0", commit="abc", **(measured | changes))


def chosen(scale, seeds=2):
    asked = Asked(seeds=seeds, only=frozenset({"ce", "m"}), noise=frozenset({80}), data=frozenset({"cifar10"}))
    runs = TABLES["table2"].runs(scale, asked)
    return runs, {
        run.key: result(run, 0.6 + 0.1 * run.config.seed, 0.5 if run.row == "CE" else 0.55 + 0.02 * run.config.seed)
        for run in runs
    }


def test_mean_and_spread_over_seeds():
    assert str(Cell((60.0, 70.0))) == "65.0 ± 7.1"
    assert str(Cell((60.04,))) == "60.0"
    assert str(Cell((60.0,), paper=63.3)) == "60.0 (63.3)"
    assert str(Cell((None,))) == "diverged"
    assert str(Cell((60.0, None, 70.0))) == "65.0 ± 7.1, 1 diverged"


def test_the_best_of_a_column_is_bold_and_ties_share_it():
    runs, results = chosen(SMALL)
    text = markdown(grids("table2", SMALL, runs, results))
    assert "| CE | best | **65.0 ± 7.1** |" in text
    assert "| M | best | **65.0 ± 7.1** |" in text
    assert "|  | last | 50.0 ± 0.0 |" in text
    assert "|  | last | **56.0 ± 1.4** |" in text
    assert "63.3" not in text


def test_the_papers_numbers_stand_beside_ours_at_its_scale():
    runs, results = chosen(PAPER)
    text = markdown(grids("table2", PAPER, runs, results))
    assert "65.0 ± 7.1 (63.3)" in text
    assert "50.0 ± 0.0 (26.3)" in text
    assert "56.0 ± 1.4 (46.7)" in text


def test_a_run_that_diverged_does_not_hide():
    runs, results = chosen(SMALL, seeds=1)
    gone = runs[0]
    results[gone.key] = result(gone, None, None, auc=None, error="diverged")
    text = markdown(grids("table2", SMALL, runs, results))
    assert "| CE | best | diverged |" in text
    assert "| M | best | **60.0** |" in text


def test_every_run_has_a_line_with_what_made_it():
    runs, results = chosen(SMALL)
    lines = list(csv.DictReader(io.StringIO(by_run(SMALL, runs, results))))
    assert len(lines) == len(runs)
    assert (
        lines[0] | {"source": "digits", "noise": "symmetric:0.8", "seed": "0", "best": "0.6", "commit": "abc"}
        == lines[0]
    )
    assert [line["key"] for line in lines] == [run.key for run in runs]
