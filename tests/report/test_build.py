import re
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelmend.detect.judge import CLEAN, FOUND, UNKNOWN
from labelmend.detect.summary import ADVICE
from labelmend.errors import InputError
from labelmend.report.build import build_report, percent
from labelmend.report.made import command_line
from labelmend.training.config import TrainConfig
from labelmend.training.prepare import prepare
from labelmend.training.session import train

PAYLOAD = "<script>alert('x')</script>&\"'"
SECTIONS = ["result", "suspects", "saw", "check", "confusion", "training", "features", "made"]


def page_of(run, **options):
    build_report(run, **options)
    return run.report.read_text()


def test_sections_come_in_the_order_of_a_persons_questions(make_run):
    assert re.findall(r'<section id="(\w+)"', page_of(make_run())) == SECTIONS


def result_of(page):
    return page[page.index('<section id="result"') : page.index("</section>")]


def test_the_headline_says_rate_interval_flags_and_precision_in_one_sentence(make_run):
    sentence = re.search(r"<h1>(.*?)</h1>", page_of(make_run(samples=1000))).group(1)
    shape = r"About [\d.]+% of 1,000 labels look wrong \(between [\d.]+% and [\d.]+%\): \d+ are flagged, \d+ to relabel"
    assert re.match(shape + r" and \d+ to look at; about 97% of the flagged labels should really be wrong\.$", sentence)


@pytest.mark.parametrize("finding", [FOUND, CLEAN, UNKNOWN])
def test_the_finding_stands_under_the_headline_with_its_reason_or_advice(make_run, finding):
    result = result_of(page_of(make_run(finding=finding)))
    assert re.search(rf'</h1>\s*<p class="finding"><span class="badge [a-z-]+">{finding}</span>', result)
    assert (ADVICE in result) == (finding == UNKNOWN)
    assert ("Why: the network said so." in result) == (finding != UNKNOWN)


def test_labels_that_cannot_be_judged_are_shown_by_rank_although_none_is_flagged(make_run):
    run = make_run(finding=UNKNOWN)
    page = page_of(run, suspects=50)
    assert "The most doubtful labels. The network cannot tell whether they are wrong</h2>" in page
    table = pq.read_table(run.labels_parquet).sort_by("rank")
    assert re.findall(r'class="suspect card" data-id="([^"]+)"', page) == table["id"].to_pylist()[:50]
    assert page.count('<img class="small"') == 50
    assert "<del" not in page
    assert '<section id="confusion"' not in page


def test_of_clean_labels_a_short_list_is_folded_away(make_run):
    page = page_of(make_run(finding=CLEAN))
    folded = page[page.index("<details>") : page.index("</details>")]
    assert "The labels that the network doubts most, all kept</h2>" in page
    assert folded.count('class="suspect card"') == page.count('class="suspect card"') == 24


def test_labels_known_to_be_right_are_not_doubtful(make_run):
    run = make_run(finding=UNKNOWN)
    table = pq.read_table(run.labels_parquet)
    probability = table["noisy_probability"].to_numpy().copy()
    probability[::2] = 0.0
    at = table.column_names.index("noisy_probability")
    pq.write_table(table.set_column(at, "noisy_probability", pa.array(probability)), run.labels_parquet)
    assert page_of(run).count('class="suspect card"') == 60


def test_where_the_truth_is_known_the_promise_is_checked(make_run):
    check = page_of(make_run(samples=1000)).split('<section id="check">')[1].split("</section>")[0]
    assert "promised 97.0" in check
    for tile in ("precision of the flags", "recall of the flags", "F1", "calibration error"):
        assert f"<dt>{tile}</dt>" in check
    assert check.count('<svg role="img" aria-label="') == 2


def test_a_mixture_is_drawn_only_if_one_was_fitted(make_run):
    run = make_run(epochs=1)
    assert "clean component" in page_of(run)
    run.update(summary=run.read()["summary"] | {"mixture": None})
    page = page_of(run)
    assert "clean component" not in page
    assert "flagged from 0.41" in page


@pytest.mark.parametrize("truth_known", [True, False])
def test_a_run_made_from_predictions_has_the_sections_for_which_it_has_data(make_judged, truth_known):
    run = make_judged(truth_known=truth_known)
    page = page_of(run)
    expected = [name for name in SECTIONS if name not in ("training", "features") and (truth_known or name != "check")]
    assert re.findall(r'<section id="(\w+)"', page) == expected
    assert re.findall(r'<a href="#(\w+)"', page) == expected[1:]
    assert f"labelmend judge probs.npy --out {run.path} --labels labels.csv:label<" in page
    assert "None" not in page


def test_a_run_on_a_table_shows_rows_with_at_most_twelve_features(make_run):
    page = page_of(make_run(columns=[f"feature {i}" for i in range(20)]))
    assert "feature 11<" in page
    assert "feature 12<" not in page
    assert '<details class="suspect entry"' in page
    assert '<button type="button" class="suspect' not in page


def test_as_many_suspects_are_shown_as_asked_for(make_run):
    run = make_run(samples=800)
    assert page_of(run, suspects=7).count('class="suspect card"') == 7
    assert page_of(run).count('class="suspect card"') == 200


@pytest.mark.parametrize("missing", ["suspects", "losses", "features"])
def test_a_report_does_without_a_piece_of_evidence(make_run, missing):
    run = make_run()
    getattr(run, missing).unlink()
    sections = re.findall(r'<section id="(\w+)"', page_of(run))
    assert sections == [name for name in SECTIONS if missing != "features" or name != "features"]


def test_of_many_classes_the_thirty_noisiest_are_in_the_heat_map(make_run):
    page = page_of(make_run(samples=900, classes=[f"class {i}" for i in range(45)]))
    assert "the 30 noisiest of 45 classes" in page
    assert page.count('class="same"') == 30


def test_every_text_of_the_user_is_escaped(make_run):
    classes = [f"{PAYLOAD}{i}" for i in range(3)]
    ids = [f"{PAYLOAD}{i}" for i in range(120)]
    for name, columns in (("<b>images", ()), ("<b>table", (PAYLOAD, "b"))):
        page = page_of(make_run(name, classes=classes, ids=ids, columns=columns))
        assert page.count("<script") == 1
        assert "<b>images" not in page
        assert "<b>table" not in page


def test_nothing_is_fetched_and_only_the_own_script_may_run(make_run):
    page = page_of(make_run())
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert "default-src 'none'" in page
    assert "script-src 'sha256-" in page


def test_fifty_thousand_samples_stay_small_and_quick(make_run):
    rng = np.random.default_rng(0)
    different = rng.integers(0, 255, (50, 96, 96, 3), dtype=np.uint8)
    pictures = [different[i % 50] for i in range(50_000)]
    run = make_run(samples=50_000, pictures=pictures, epochs=60, classes=[f"class {i}" for i in range(10)])
    started = time.process_time()
    build_report(run)
    assert time.process_time() - started < 20
    assert run.report.stat().st_size < 5_000_000


def test_a_broken_picture_is_left_out(make_run):
    run = make_run()
    table = pq.read_table(run.suspects)
    broken = [b"\x89PNG broken", b"<svg onload='alert(1)'/>"] * table.num_rows
    pq.write_table(table.set_column(1, "picture", pa.array(broken[: table.num_rows], pa.binary())), run.suspects)
    assert 'class="suspect card"' in page_of(run)
    assert "data:image/svg" not in run.report.read_text()


def test_an_unknown_embedding_is_refused_and_a_missing_one_says_how_to_get_it(make_run, monkeypatch):
    run = make_run()
    with pytest.raises(InputError, match="pca, umap"):
        build_report(run, embedding_kind="tsne")
    monkeypatch.setitem(__import__("sys").modules, "umap", None)
    with pytest.raises(InputError, match=r'pip install "labelmend\[umap\]"'):
        build_report(run, embedding_kind="umap")


def test_only_a_report_is_written_over(make_run, tmp_path):
    run = make_run()
    other = tmp_path / "other.html"
    build_report(run, out=other)
    build_report(run, out=other)
    other.write_text("my notes")
    with pytest.raises(InputError, match="not a report"):
        build_report(run, out=other)
    with pytest.raises(InputError, match="not a folder"):
        build_report(run, out=tmp_path / "nowhere" / "other.html")


def test_a_report_of_an_unfinished_run_is_refused(make_run):
    run = make_run()
    run.update(status="interrupted")
    with pytest.raises(InputError, match="finish it"):
        build_report(run)


def test_rebuilding_a_report_gives_the_same_page(make_run):
    run = make_run()
    before = page_of(run)
    assert page_of(run) == before


def test_a_trained_run_has_a_report(tmp_path):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(60) % 2, PAYLOAD, "plain")
    np.savez(tmp_path / "rows.npz", x=rng.normal(size=(60, 3)), y=y)
    config = TrainConfig(source=str(tmp_path / "rows.npz"), out=str(tmp_path / "run"), epochs=2, noise="symmetric:0.4")
    assert train(prepare(config), afterwards=build_report)[0].report.read_text().count("<script") == 1


def test_the_command_line_repeats_what_was_asked_for():
    config = {
        "source": "a b.csv",
        "out": "run",
        "method": "m",
        "net": None,
        "seed": 0,
        "skip_bad": True,
        "resume": True,
    }
    shown = command_line(config | {"settings": {"eta": "2"}})
    assert shown == "labelmend train 'a b.csv' --out run --method m --seed 0 --skip-bad --set eta=2"


def test_percent_shows_a_dash_for_what_is_unknown():
    assert (percent(None), percent(0.1234), percent(0.1234, 0)) == ("–", "12.3\u00a0%", "12\u00a0%")
