"""What the documentation shows is what the committed data says."""

import ast
import csv
import dataclasses
import json
import re
import sys
from pathlib import Path

import pytest

from labelmend.reproduce.catalogue import TABLES, Asked
from labelmend.reproduce.claims import judge_claims, tally, verdict_lines
from labelmend.reproduce.protocol import MEDIUM, SMALL
from labelmend.reproduce.reproduce import EXPERIMENTS
from labelmend.reproduce.runs import Result
from labelmend.reproduce.tables import grids, markdown, markdown_table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/reproduction.md"
JUDGING = ROOT / "docs/judging.md"
ARCHITECTURE = ROOT / "docs/architecture.md"
RESULTS = ROOT / "docs/results/small"
MEDIUM_PAGE, MEDIUM_RESULTS = ROOT / "docs/reproduction-medium.md", ROOT / "docs/results/medium"
NUMBERS = {"best", "last", "auc", "judged", "noise_rate", "largest", "seconds"}


@pytest.fixture
def benchmark(monkeypatch):
    """Import a script of the benchmarks by name."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    before = set(sys.modules)
    yield __import__
    for name in {
        "fill_results",
        "judging_page",
        "photographs",
        "proofs",
        "rows",
        "rows_scale",
        "side_by_side",
        "speed",
        "reference",
        "faces",
        "faces_pytorch",
        "faces_trainers",
        "common",
    } - before:
        sys.modules.pop(name, None)


def committed(name, folder=RESULTS):
    """Results of runs by their keys, and how many seeds there are, from a committed table."""
    with (folder / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = [field.name for field in dataclasses.fields(Result)]
    results = {}
    for row in rows:
        known = {name: row[name] or None for name in names}
        known |= {name: float(row[name]) if row[name] else None for name in NUMBERS}
        results[row["key"]] = Result(**known)
    return results, 1 + max(int(row["seed"]) for row in rows)


def test_the_page_shows_the_committed_results(benchmark):
    page = PAGE.read_text()
    assert benchmark("fill_results").filled(page, RESULTS, seen_from=PAGE.parent) == page
    assert page.count("<!-- /") >= 15


def test_the_page_on_judging_shows_every_table_of_the_committed_results(benchmark):
    script, page = benchmark("judging_page"), JUDGING.read_text()
    results = json.loads((ROOT / "benchmarks/results/judging.json").read_text())
    assert script.filled(page, results) == page
    assert all(f"<!-- /{name} -->" in page for name in script.TABLES)
    results["sets"]["roman-resnet18"]["systems"][-1]["f1"] += 0.1
    assert script.filled(page, results) != page


def results_of(name):
    """What a benchmark measured, one entry for each row, system and seed."""
    return json.loads((ROOT / f"benchmarks/results/{name}.json").read_text())["rows"]


@pytest.mark.parametrize(
    ("name", "page"), [("photographs", "photographs"), ("rows", "rows"), ("faces", "faces/scikit-learn")]
)
def test_a_page_shows_the_committed_results_of_its_benchmark(name, page, benchmark):
    script, page = benchmark(name), (ROOT / f"docs/{page}.md").read_text()
    rows = results_of(name)
    assert script.filled(page, rows) == page
    rows[0]["auc"] += 0.1
    assert script.filled(page, rows) != page


@pytest.mark.parametrize("row", ["wine", "breast_cancer", "digits"])
@pytest.mark.parametrize("figure", ["auc", "f1"])
def test_the_classifier_finds_as_much_as_clean_learning_in_the_committed_results(row, figure):
    def mean(system):
        found = [entry[figure] for entry in results_of("faces") if (entry["row"], entry["system"]) == (row, system)]
        assert len(found) == 3
        return sum(found) / 3

    assert mean("labelmend, default") >= mean("cleanlab, default")
    for name in ("logistic", "forest"):
        assert mean(f"labelmend, {name}") >= mean(f"cleanlab, {name}")


def test_the_page_on_decisions_shows_the_committed_simulations(benchmark):
    script, page = benchmark("reviewing"), (ROOT / "docs/review.md").read_text()
    rows = results_of("reviewing")
    assert script.summary(rows) in page
    rows[0]["high"] += 1
    assert script.summary(rows) not in page


def test_the_page_on_speed_shows_every_epoch_that_was_measured(benchmark):
    page = (ROOT / "docs/speed.md").read_text()
    section = json.loads((ROOT / "benchmarks/results/speed.json").read_text())["epochs"]
    lines = benchmark("speed").epochs_table(section).splitlines()[2:]
    assert len(lines) >= 28
    assert [line for line in lines if line not in page] == []
    assert section["fast-32"]["systems"]["m-dyr-h fast"]["to_ce"] <= 1.1


def test_the_page_on_tables_says_what_a_million_rows_took(benchmark):
    script, page = benchmark("rows_scale"), (ROOT / "docs/rows.md").read_text()
    (row,) = results_of("rows-scale")
    assert script.summary(row) in page
    assert row["seconds"] <= 15 * 60
    assert row["memory"] <= 6e9


def test_the_table_of_readme_shows_the_committed_results(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from readme_table import filled

    page = (ROOT / "README.md").read_text()
    assert filled(page) == page
    assert filled(page.replace("| **0.", "| **1.")) == page


def test_the_page_of_the_tracker_shows_the_committed_results_and_they_are_as_good_as_it_says(benchmark):
    script, page = benchmark("faces_pytorch"), (ROOT / "docs/faces/pytorch.md").read_text()
    rows = json.loads((ROOT / "benchmarks/results/faces_pytorch.json").read_text())["rows"]
    assert script.filled(page, rows) == page
    digits = {system: [m for m in rows if (m["row"], m["system"]) == ("digits", system)] for system in script.SYSTEMS}
    assert all(len(found) == 3 for found in digits.values())
    assert all(m["accuracy"] >= 0.95 and m["auc"] >= 0.995 for m in digits["corrected"])
    assert all(m["accuracy"] < 0.8 for m in digits["plain"])
    assert all(m["time"] <= 1.03 and m["bytes"] == 50 + 4 * 10 for m in digits["watched"])
    rows[1]["auc"] += 0.1
    assert script.filled(page, rows) != page


@pytest.mark.parametrize("name", ["hugging-face", "lightning"])
def test_the_pages_of_the_trainers_show_the_committed_results(benchmark, name):
    script, page = benchmark("faces_trainers"), (ROOT / f"docs/faces/{name}.md").read_text()
    rows = results_of("faces_trainers")
    assert script.filled(page, rows) == page
    for row in rows:
        row["accuracy"] += 0.1
    assert script.filled(page, rows) != page


@pytest.mark.parametrize(("row", "system"), [("docstrings", "corrected"), ("digits", "corrected")])
def test_trainers_of_others_learn_more_with_us_in_the_committed_results(row, system):
    found = {(m["row"], m["system"], m["seed"]): m for m in results_of("faces_trainers")}
    for seed in (0, 1, 2):
        ours, plain = found[row, system, seed], found[row, "plain", seed]
        assert ours["accuracy"] >= plain["accuracy"] + 0.05
        assert ours["auc"] >= 0.85


def test_the_program_of_the_tracker_adds_five_lines_to_a_plain_loop(benchmark):
    script, page = benchmark("faces_pytorch"), (ROOT / "docs/faces/pytorch.md").read_text()
    ours, plain, watched = (script.program(page, system, 3) for system in ("corrected", "plain", "watched"))
    assert len(ours.splitlines()) == len(plain.splitlines()) + 5
    assert "seed, epochs = 3," in plain
    assert not re.search("tracker|lm|labelmend", plain)
    assert "tracker.observe" in watched
    for code in (ours, plain, watched):
        compile(code, "program", "exec")


def test_pictures_of_the_page_on_judging_are_there():
    pictures = re.findall(r"\]\((images/judging-[\w-]+\.svg)\)", JUDGING.read_text())
    assert len(pictures) == 2
    assert all((JUDGING.parent / name).is_file() for name in pictures)


@pytest.mark.parametrize("name", [name for name in TABLES if (RESULTS / f"{name}.md").is_file()])
def test_tables_follow_from_the_runs_beside_them(name):
    results, seeds = committed(name)
    runs = EXPERIMENTS[name].runs(SMALL, Asked(seeds))
    assert {run.key for run in runs} == results.keys()
    assert markdown(grids(name, SMALL, runs, results)) in (RESULTS / f"{name}.md").read_text()


def test_verdicts_follow_from_the_runs_beside_them():
    results, seeds = committed("claims-runs")
    found = judge_claims(SMALL, Asked(seeds), results)
    text = (RESULTS / "claims.md").read_text()
    assert markdown_table(verdict_lines(found), right_from=3) in text
    assert tally(found) in text


def test_the_page_on_the_medium_scale_shows_the_committed_results(benchmark):
    page = MEDIUM_PAGE.read_text()
    assert benchmark("fill_results").filled(page, MEDIUM_RESULTS, seen_from=MEDIUM_PAGE.parent) == page
    side_by_side = benchmark("side_by_side")
    assert side_by_side.table(MEDIUM_RESULTS.parent) in page
    assert side_by_side.claims(MEDIUM_RESULTS.parent) in page
    shown = {path.stem for path in MEDIUM_RESULTS.glob("*.md")} - {"claims"}
    assert all(f"<!-- /{name} -->" in page for name in shown)


@pytest.mark.parametrize("name", [name for name in TABLES if (MEDIUM_RESULTS / f"{name}.md").is_file()])
def test_tables_of_the_medium_scale_follow_from_the_runs_beside_them(name):
    results, _ = committed(name, MEDIUM_RESULTS)
    runs = EXPERIMENTS[name].runs(MEDIUM, Asked(1))
    assert results.keys() <= {run.key for run in runs}
    made = [run for run in runs if run.key in results]
    assert markdown(grids(name, MEDIUM, made, results)) in (MEDIUM_RESULTS / f"{name}.md").read_text()
    assert all(result.seconds > 0 and result.commit for result in results.values())


def test_verdicts_at_the_medium_scale_follow_from_the_runs_beside_them():
    results, _ = committed("claims-runs", MEDIUM_RESULTS)
    found = judge_claims(MEDIUM, Asked(1), results)
    text = (MEDIUM_RESULTS / "claims.md").read_text()
    assert found
    assert markdown_table(verdict_lines(found), right_from=3) in text


def test_proofs_are_counted_by_file_unless_they_say_what_they_saw(benchmark, tmp_path):
    (tmp_path / "test_made.py").write_text('"""Files that are odd."""')
    said = '<properties><property name="what" value="9 kills"/><property name="seen" value="9 of 9"/></properties>'
    report = tmp_path / "proofs.xml"
    report.write_text(
        '<testsuites><testsuite time="90.2">'
        f'<testcase classname="test_made" name="a" time="60">{said}</testcase>'
        '<testcase classname="test_made" name="b" time="2"/>'
        '<testcase classname="test_made" name="c" time="1"><failure/></testcase>'
        '<testcase classname="test_made" name="d" time="0"><skipped/></testcase>'
        "</testsuite></testsuites>"
    )
    proofs = benchmark("proofs")
    found = proofs.read_reports([report], tmp_path)
    assert (found["tests"], found["failed"], found["skipped"], found["seconds"]) == (4, 1, 1, 90)
    shown = proofs.summary(found | {"commit": "abc", "machine": {"cores": 2}})
    assert "| 9 kills | 9 of 9 | 60 |\n| Files that are odd | 1 of 3 pass | 3 |" in shown
    assert "abc on 2 cores, 2 minutes: 4 proofs, 1 failed, 1 skipped." in shown


def test_plain_training_memorises_at_the_small_scale():
    results, seeds = committed("table2")
    for run in EXPERIMENTS["table2"].runs(SMALL, Asked(seeds, only=frozenset({"ce"}), noise=frozenset({50}))):
        assert results[run.key].best - results[run.key].last >= 0.1
        assert results[run.key].seconds <= 180


def hops():
    """File and function of each step of the walks."""
    rows = re.findall(r"^\|.*\| `([\w/]+\.py)` \| `([\w.]+)` \|$", ARCHITECTURE.read_text(), re.MULTILINE)
    named = re.findall(r"`([\w/]+\.py)`, `(\w+)`", ARCHITECTURE.read_text())
    return [*rows, *named]


@pytest.mark.parametrize(("file", "name"), hops())
def test_every_step_of_a_walk_is_a_function_that_exists(file, name):
    path = ROOT / "src/labelmend" / file
    assert path.is_file()
    scope = ast.parse(path.read_text())
    for part in name.split("."):
        found = [node for node in scope.body if getattr(node, "name", None) == part]
        assert found, f"{file} has no {name}"
        scope = found[0]
