import pytest

from labelmend.errors import InputError
from labelmend.report.compare import agreement, build_comparison, distinct_names, same_data
from labelmend.report.read import read_findings
from labelmend.run.directory import RunDirectory


def test_runs_on_the_same_labels_are_compared_sample_by_sample(make_run, tmp_path):
    first, second = make_run("a"), make_run("b", epochs=8, method="ce")
    build_comparison([first, second], tmp_path / "comparison.html")
    page = (tmp_path / "comparison.html").read_text()
    assert "2 runs side by side" in page
    assert "Both flag" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")


def test_runs_made_from_predictions_are_compared_like_others(make_run, make_judged, tmp_path):
    build_comparison([make_run("a"), make_judged("b"), make_judged("c")], tmp_path / "comparison.html")
    page = (tmp_path / "comparison.html").read_text()
    assert page.count("<td>judged</td>") == 2
    assert page.count('<td class="wraps">wrong labels found</td>') == 3
    assert page.split('<section id="accuracy">')[1].split("</section>")[0].count("<li>") == 1
    assert "None" not in page
    build_comparison([make_judged("d"), make_judged("e")], tmp_path / "comparison.html")
    assert '<section id="accuracy">' not in (tmp_path / "comparison.html").read_text()


def test_runs_on_other_labels_are_not(make_run, tmp_path):
    first, second = make_run("a"), make_run("b", seed=1)
    build_comparison([first, second], tmp_path / "comparison.html")
    assert "No two of these runs judged the same labels" in (tmp_path / "comparison.html").read_text()
    assert not same_data(read_findings(first), read_findings(second))


def test_agreement_counts_what_both_flag_and_lists_what_they_dispute(make_run):
    import pyarrow as pa
    import pyarrow.parquet as pq

    first, second = make_run("a"), make_run("b")
    table = pq.read_table(second.labels_parquet)
    verdicts, probability = table["verdict"].to_pylist(), table["noisy_probability"].to_pylist()
    row = verdicts.index("relabel")
    verdicts[row], probability[row] = "keep", 0.01
    for name, values in (("verdict", verdicts), ("noisy_probability", probability)):
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    pq.write_table(table, second.labels_parquet)
    found = agreement("a", read_findings(first), "b", read_findings(second))
    flagged = found["flagged"][0]
    assert (found["both"], found["flagged"][1]) == (flagged - 1, flagged - 1)
    assert found["overlap"] == pytest.approx((flagged - 1) / flagged)
    assert [one["id"] for one, _ in found["rows"]] == [f"train/{row:05}"]


def test_runs_named_alike_are_told_apart_by_their_paths(make_run):
    found = [read_findings(make_run(name)) for name in ("p/run", "q/run")]
    names = distinct_names(found)
    assert len(set(names)) == 2


def test_the_command_reports_one_run_and_compares_several(make_run, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from labelmend.faces.cli import app

    monkeypatch.chdir(tmp_path)
    make_run("a"), make_run("b")
    assert CliRunner().invoke(app, ["report", "a", "--suspects", "3"]).exit_code == 0
    assert (tmp_path / "a" / "report.html").read_text().count('class="suspect card"') == 3
    assert CliRunner().invoke(app, ["report", "a", "b"]).exit_code == 0
    assert "2 runs side by side" in (tmp_path / "comparison.html").read_text()


def test_other_files_and_unfinished_runs_are_refused(make_run, tmp_path):
    runs = [make_run("a"), make_run("b")]
    (tmp_path / "notes.html").write_text("<!doctype html>mine")
    with pytest.raises(InputError, match="not a report"):
        build_comparison(runs, tmp_path / "notes.html")
    runs[1].update(status="running")
    with pytest.raises(InputError, match="finish it"):
        build_comparison([RunDirectory(run.path) for run in runs], tmp_path / "comparison.html")
