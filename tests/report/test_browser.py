"""The report in a real browser."""

import pytest
from payloads import PAYLOADS

from labelmend.detect.judge import CLEAN, UNKNOWN
from labelmend.report.build import build_report
from labelmend.report.compare import build_comparison

pytestmark = pytest.mark.xdist_group("browser")  # one browser, and one report to look at


@pytest.fixture(scope="module")
def report(tmp_path_factory, write_run):
    """A report that tests only look at."""
    run = write_run(tmp_path_factory.mktemp("report") / "run", samples=300)
    build_report(run)
    return run.report


def facts(page, name):
    return page.eval_on_selector_all(".suspect:not([hidden])", f"items => items.map(i => i.dataset.{name})")


def focused(page, name="id"):
    return page.evaluate(f"document.activeElement.closest('.suspect').dataset.{name}")


def test_filters_show_what_they_say_and_count_it(visit, report):
    page = visit(report)
    everything = len(facts(page, "id"))
    page.select_option("#kind", "look")
    assert set(facts(page, "verdict")) == {"look"}
    assert page.inner_text("#count") == f"{len(facts(page, 'id'))} of {everything} labels"
    page.select_option("#kind", "")
    page.select_option("#pair", "0")
    assert len(set(zip(facts(page, "given"), facts(page, "suggested"), strict=True))) == 1
    page.select_option("#pair", "")
    page.fill("#least", "0.98")
    assert 0 < len(facts(page, "id")) < everything
    assert all(float(p) >= 0.98 for p in facts(page, "probability"))
    page.select_option("#kind", "look")
    page.fill("#least", "1")
    assert page.is_visible("#nothing")


def test_sorting_reorders_and_comes_back(visit, report):
    page = visit(report)
    before = facts(page, "id")
    page.select_option("#sort", "id")
    assert facts(page, "id") == sorted(before)
    page.select_option("#sort", "confidence")
    values = [float(value) for value in facts(page, "confidence")]
    assert values == sorted(values, reverse=True)
    page.select_option("#sort", "given")
    assert facts(page, "given") == sorted(facts(page, "given"))
    page.select_option("#sort", "order")
    assert facts(page, "id") == before


def test_keys_move_open_and_close(visit, report):
    page = visit(report)
    ids = facts(page, "id")
    page.keyboard.press("j")
    assert focused(page) == ids[0]
    page.keyboard.press("j")
    page.keyboard.press("ArrowRight")
    assert focused(page) == ids[2]
    page.keyboard.press("k")
    assert focused(page) == ids[1]
    page.keyboard.press("ArrowDown")
    assert ids.index(focused(page)) > 2
    page.keyboard.press("ArrowUp")
    assert focused(page) == ids[1]
    page.keyboard.press("Enter")
    assert page.is_visible("#closer")
    assert page.text_content("#closer [data-slot=id]") == ids[1]
    page.keyboard.press("ArrowRight")
    assert page.text_content("#closer [data-slot=id]") == ids[2]
    page.keyboard.press("Escape")
    assert not page.is_visible("#closer")
    assert focused(page) == ids[2]
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "pair"


def test_only_some_suspects_are_unfolded_until_asked_for(visit, report):
    page = visit(report)
    total = len(facts(page, "id"))
    assert page.locator(".suspect:visible").count() == 48
    page.click("#more")
    assert page.locator(".suspect:visible").count() == total


def test_rows_of_a_table_open_too(visit, make_run):
    run = make_run(columns=["a", "b"])
    build_report(run)
    page = visit(run.report)
    page.keyboard.press("j")
    page.keyboard.press("ArrowDown")
    assert focused(page) == facts(page, "id")[1]
    assert page.locator(".opened:visible").count() == 0
    page.keyboard.press("Enter")
    assert page.locator(".suspect[open]").get_attribute("data-id") == facts(page, "id")[1]
    assert page.locator(".opened:visible").count() == 1
    page.keyboard.press("Enter")
    page.keyboard.press("j")
    assert page.locator(".opened:visible").count() == 0
    assert focused(page) == facts(page, "id")[2]


def test_rows_open_without_scripts_too(browser, make_run):
    run = make_run(columns=["a", "b"])
    build_report(run)
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(run.report.resolve().as_uri())
    page.locator(".suspect summary").first.click()
    assert page.locator(".opened:visible").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


def test_a_picture_opens_with_the_pictures_most_like_it(visit, make_run):
    run = make_run(neighbours=True)
    build_report(run)
    page = visit(run.report)
    page.locator(".suspect").first.click()
    assert page.locator("#closer .likes img").count() == 6
    page.keyboard.press("ArrowRight")
    assert page.locator("#closer .likes img").count() == 6
    assert page.locator("#closer h4 .text").all_text_contents()[1] == facts(page, "given")[1]


def test_labels_that_cannot_be_judged_open_without_a_suggestion(visit, make_run):
    run = make_run(finding=UNKNOWN)
    build_report(run)
    page = visit(run.report)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    assert page.text_content("#closer [data-slot=id]") == facts(page, "id")[0]
    assert page.inner_text("#closer-labels") == f"labelled {facts(page, 'given')[0]}"
    page.keyboard.press("Escape")
    page.select_option("#pair", "0")
    assert len(set(facts(page, "given"))) == 1
    assert not page.is_visible("#kind")


def test_clean_labels_unfold_and_open(visit, make_run):
    run = make_run(finding=CLEAN)
    build_report(run)
    page = visit(run.report)
    assert page.locator(".suspect:visible").count() == 0
    page.click("summary")
    assert page.locator(".suspect:visible").count() == 24
    page.locator(".suspect").first.click()
    assert page.is_visible("#closer")


@pytest.mark.parametrize("width", [390, 1280])
def test_pages_of_predictions_fit_the_screen(visit, make_judged, tmp_path, width):
    runs = [make_judged("a"), make_judged("b")]
    build_report(runs[0])
    build_comparison(runs, tmp_path / "comparison.html")
    for path in (runs[0].report, tmp_path / "comparison.html"):
        page = visit(path, viewport={"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("kind", ["pictures", "table", "texts"])
def test_payloads_render_as_text(visit, make_run, kind):
    ids = [f"{PAYLOADS[i % 25]} {i}" for i in range(400)]
    columns, texts = PAYLOADS[:12] if kind == "table" else (), ids if kind == "texts" else None
    run = make_run(PAYLOADS[2], classes=PAYLOADS, ids=ids, samples=400, columns=columns, texts=texts, neighbours=True)
    build_report(run)
    page = visit(run.report)
    assert page.text_content(".brand .text") == PAYLOADS[2]
    assert page.title() == f"labelmend: {PAYLOADS[2]}"
    shown = page.eval_on_selector_all(".suspect del, .suspect ins", "items => items.map(i => i.textContent)")
    assert set(shown) == set(PAYLOADS)
    heads = page.eval_on_selector_all(".heat tbody th", "items => items.map(i => i.textContent)")
    assert heads == PAYLOADS
    place = ".suspect > .id" if kind == "pictures" else "summary .id"
    texts = page.eval_on_selector_all(place, "items => items.map(i => i.textContent)")
    assert texts == facts(page, "id")
    assert set(texts) <= set(ids)
    if kind == "texts":
        shown = page.eval_on_selector_all(".sample", "items => items.map(i => i.textContent)")
        assert shown == texts
        assert page.locator(".sample").first.locator("mark").text_content() == texts[0][1:3]
    if kind == "table":
        assert set(page.eval_on_selector_all(".bars .name .text", "items => items.map(i => i.textContent)")) == {
            PAYLOADS[1]
        }
    for number in range(3 if kind == "pictures" else 0):
        page.locator(".suspect").nth(number).click()
        assert page.text_content("#closer [data-slot=id]") == texts[number]
        page.keyboard.press("Escape")


def test_run_names_render_as_text(visit, make_run, tmp_path):
    names = [payload for payload in PAYLOADS if "/" not in payload]
    runs = [make_run(name, classes=PAYLOADS[:3], samples=60, epochs=3) for name in names]
    build_comparison(runs, tmp_path / "comparison.html")
    page = visit(tmp_path / "comparison.html")
    assert page.eval_on_selector_all("#runs tbody th .text", "items => items.map(i => i.textContent)") == names
    assert page.eval_on_selector_all("#accuracy .text", "items => items.map(i => i.textContent)") == names


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_the_screen(visit, report, width):
    page = visit(report, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_scripts_all_suspects_are_there(visit, browser, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.resolve().as_uri())
    assert page.locator(".suspect:visible").count() > 48
    assert not page.is_visible(".controls")
    context.close()
