"""The report says what people decided."""

from labelmend.report.build import build_report


def decide(path, *lines):
    path.write_text("\n".join(["id,decision,label,reviewer,time", *lines]) + "\n")


def test_the_report_says_what_was_decided_by_whom_and_where_reviewers_disagree(write_run, tmp_path):
    run = write_run(tmp_path / "run", samples=120)
    first = "train/00000"
    decide(run.decisions, f"{first},keep,,<b>ann</b>,", f"{first},relabel,dog,bob,", "train/00001,bad,,bob,")
    build_report(run)
    page = run.report.read_text()
    assert "What people decided" in page
    assert "2 samples were decided" in page
    assert "&lt;b&gt;ann&lt;/b&gt;: keep; bob: dog" in page
    assert "<b>ann</b>" not in page


def test_a_report_without_decisions_does_not_speak_of_them(write_run, tmp_path):
    run = write_run(tmp_path / "run", samples=60)
    build_report(run)
    assert "What people decided" not in run.report.read_text()
