"""The review page in a real browser: whole sessions by keyboard alone, and what it must never do."""

import csv
import time
from pathlib import Path

import pytest
from axe import needs_axe, violations
from payloads import PAYLOADS
from review_runs import ids_run, judged_run

from labelmend.data.sources import read_source
from labelmend.run.decisions import Decision, DecisionLog, now, read_decisions, standing

ID = "#facts > .text"
pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def visit(browser, serve):
    """Open the page of a server; afterwards nothing may have been logged, popped up, or fetched from elsewhere."""
    contexts, pages, trouble, requests = [], [], [], []

    def opened(served, *, fails=False, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        page = context.new_page()
        page.on("console", lambda message: fails or trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: (trouble.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(served.gate.address())
        page.wait_for_selector("[data-ready]")
        contexts.append(context)
        pages.append((page, served.origin))
        return page

    yield opened
    pwned = {page.evaluate("typeof window.__pwned") for page, _ in pages}
    origins = {origin for _, origin in pages}
    for context in contexts:
        context.close()
    assert trouble == []
    assert pwned <= {"undefined"}
    assert {"/".join(url.split("/")[:3]) for url in requests} <= origins


def until(holds, seconds=10.0):
    """Wait until something holds; gives what it is."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)
    return found


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def saved(page):
    """Wait until nothing is unsaved any more."""
    until(lambda: page.locator("body:not(.unsaved)").count())


class Session:
    """A reviewer at the keyboard, who notes what was decided."""

    def __init__(self, page, served):
        self.page, self.labels = page, served.review.labels
        self.classes = list(self.labels.class_names)
        self.expected = {}

    @property
    def id(self):
        return self.page.text_content(ID)

    @property
    def row(self):
        return self.labels.row_of[self.id]

    def answer(self, *keys, word, label=None):
        """Press keys and wait for another sample; notes the decision."""
        before = self.id
        press(self.page, *keys)
        until(lambda: self.page.locator("#one").is_hidden() or self.id != before)
        self.expected[before] = (word, "" if label is None else self.classes[label])
        return before

    def given(self):
        self.answer("g", word="keep")

    def suggestion(self):
        suggested = int(self.labels.suggested[self.row])
        if suggested == self.labels.given[self.row]:
            self.answer("n", word="skip")
        else:
            self.answer("s", word="relabel", label=suggested)

    def numbered(self):
        label = (int(self.labels.given[self.row]) + 1) % len(self.classes)
        self.answer(str(label + 1), word="relabel", label=label)

    def searched(self):
        label = (int(self.labels.given[self.row]) + 2) % len(self.classes)
        self.answer("/", *self.classes[label][:3].upper(), "Enter", word="relabel", label=label)

    def none(self):
        self.answer("x", word="other")

    def bad(self):
        self.answer("b", word="bad")

    def skip(self):
        self.answer("n", word="skip")


def decided(run):
    return {id: (holds.decision, holds.label) for id, holds in standing(read_decisions(run.decisions)).items()}


def whole_session(visit, served, run):
    """Thirty decisions and more by keyboard alone: all answers, undo, reload, filter and grid."""
    page = visit(served)
    session = Session(page, served)
    kinds = [
        session.given,
        session.suggestion,
        session.numbered,
        session.searched,
        session.none,
        session.bad,
        session.skip,
    ]
    for turn in range(12):
        kinds[turn % 7]()
    last = session.answer("b", word="bad")
    press(page, "u")
    until(lambda: session.id == last)
    del session.expected[last]
    saved(page)
    page.reload()
    page.wait_for_selector("[data-ready]")
    assert page.input_value("#order") == "teaches"
    assert decided(run) == session.expected
    assert not {"null", "undefined", "NaN"} & set(page.inner_text("body").replace(".", " ").split())
    press(page, "f", "Tab", "Tab", "Tab", "ArrowDown", "Escape")
    until(lambda: page.input_value("#pair"))
    pair = [int(place) for place in page.input_value("#pair").split(" ")]
    until(lambda: [session.labels.given[session.row], session.labels.suggested[session.row]] == pair)
    for _ in range(3):
        assert [session.labels.given[session.row], session.labels.suggested[session.row]] == pair
        session.suggestion()
    press(page, "f", "ArrowDown", "Tab", "Tab", "Tab", "ArrowUp", "Escape", "m")
    until(lambda: page.input_value("#order") == "suspicious")
    until(lambda: page.locator(".card").count() == 30)
    ids = page.locator(".card .id").all_text_contents()
    press(page, " ", "ArrowRight", "ArrowRight", " ", "Shift+ArrowRight", "s")
    chosen = [id for place, id in enumerate(ids) if place in (0, 2, 3)]
    for id in chosen:
        row = session.labels.row_of[id]
        if session.labels.suggested[row] != session.labels.given[row]:
            session.expected[id] = ("relabel", session.classes[session.labels.suggested[row]])
    until(lambda: page.locator(".card.done").count() >= 1)
    saved(page)
    press(page, "a", "g")
    until(lambda: decided(run).get(ids[1]) == ("keep", ""))
    for id in ids:
        session.expected.setdefault(id, ("keep", ""))
    saved(page)
    assert len(session.expected) >= 30
    return page, session


def check_agreement(page, session, run, labelmend, tmp_path):
    """The page, decisions.csv and the commands `labels` and `apply` say the same."""
    assert decided(run) == session.expected
    assert "null" not in page.inner_text("body")
    assert "undefined" not in page.inner_text("body")
    assert f"{len(session.expected)} answers in all" in page.text_content("#counts")
    table = tmp_path / "all.csv"
    ended = labelmend("labels", run.path, "--verdict", "keep,relabel,look", "--out", table)
    assert ended.returncode == 0, ended.stderr
    with table.open() as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    for id, (word, label) in session.expected.items():
        assert rows[id]["decided"] == word
        if word in ("keep", "relabel"):
            assert rows[id]["suggested"] == (label or rows[id]["given"])
    dest = tmp_path / "corrected"
    ended = labelmend("apply", run.path, "--out", dest, "--write")
    assert ended.returncode == 0, ended.stderr
    source = Path(run.read()["config"]["source"])
    corrected = read_source(str(dest if source.is_dir() else dest / source.name))
    named = {Path(id).name: name for id, name in zip(corrected.ids, corrected.label_names, strict=True)}
    for id, (word, label) in session.expected.items():
        if word in ("keep", "relabel"):
            assert named[Path(id).name] == (label or rows[id]["given"])
        elif word in ("other", "bad"):
            assert Path(id).name not in named


def test_a_session_on_pictures_by_keyboard_alone(visit, serve, pictures, labelmend, tmp_path):
    served = serve(pictures)
    served.opened()
    check_agreement(*whole_session(visit, served, pictures), pictures, labelmend, tmp_path)


def test_a_session_on_a_table_by_keyboard_alone(visit, serve, table, labelmend, tmp_path):
    served = serve(table)
    served.opened()
    check_agreement(*whole_session(visit, served, table), table, labelmend, tmp_path)


def test_arrows_go_on_and_back_without_an_answer(visit, serve, ids_only):
    page = visit(serve(ids_only))
    first = page.text_content(ID)
    press(page, "ArrowRight")
    until(lambda: page.text_content(ID) != first)
    second = page.text_content(ID)
    press(page, "ArrowRight")
    until(lambda: page.text_content(ID) not in (first, second))
    press(page, "ArrowLeft")
    until(lambda: page.text_content(ID) == second)
    press(page, "ArrowLeft")
    until(lambda: page.text_content(ID) == first)
    assert not ids_only.decisions.exists()


def test_what_was_passed_over_can_be_gone_through_again(visit, serve, tmp_path):
    run = ids_run(tmp_path / "run", 6)
    page = visit(serve(run))
    page.select_option("#verdict", "relabel")
    until(lambda: page.text_content("#left").startswith("3 samples"))
    for key in ("ArrowRight", "g", "ArrowRight"):
        before = page.text_content(ID)
        press(page, key)
        until(lambda before=before: not page.is_visible("#one") or page.text_content(ID) != before)
    assert "2 were passed over" in page.text_content("#end-text")
    press(page, "Tab")
    page.locator("#again").focus()
    press(page, "Enter")
    until(lambda: page.is_visible("#one"))


def test_a_key_that_is_held_down_is_one_answer(visit, serve, ids_only):
    page = visit(serve(ids_only))
    for _ in range(5):
        page.keyboard.down("b")
    page.keyboard.up("b")
    saved(page)
    time.sleep(0.2)
    assert len(read_decisions(ids_only.decisions)) == 1


def test_letters_can_be_switched_off(visit, serve, ids_only):
    page = visit(serve(ids_only))
    press(page, "?")
    assert page.is_visible("#keys")
    page.locator("#letters").focus()
    press(page, " ", "Escape", "g")
    time.sleep(0.2)
    assert not ids_only.decisions.exists()
    page.reload()
    page.wait_for_selector("[data-ready]")
    assert not page.is_checked("#letters")


def test_answers_wait_for_a_server_that_is_gone(visit, serve, ids_only):
    served = serve(ids_only)
    page = visit(served, fails=True)
    page.context.set_offline(True)
    press(page, "g")
    until(lambda: "Trying again" in page.text_content("#alarm"))
    press(page, "b", "x")
    assert page.locator("body.unsaved").count()
    page.context.set_offline(False)
    saved(page)
    assert [each.decision for each in read_decisions(ids_only.decisions)] == ["keep", "bad", "other"]
    assert page.text_content("#alarm") == ""


def test_another_reviewer_is_seen_and_a_conflict_is_said(visit, serve, ids_only):
    served = serve(ids_only)
    page = visit(served)
    id = page.text_content(ID)
    DecisionLog.of(ids_only).append(Decision(id, "bad", "", "bob", now()))
    press(page, "g")
    until(lambda: "bob said otherwise" in page.text_content("#alarm"))
    until(lambda: "1 conflict" in page.text_content("#counts"))
    page.locator("#counts button").focus()
    press(page, "Enter")
    until(lambda: page.text_content(ID) == id)
    assert "Reviewers disagree" in page.text_content("#opinions")
    assert page.locator("#opinions li").all_text_contents() == ["bob: bad sample", "ann: right as given"]


def test_the_screen_reader_hears_samples_and_answers(visit, serve, ids_only):
    page = visit(serve(ids_only))
    assert page.text_content(ID) in page.text_content("#said")
    press(page, "g")
    until(lambda: "Answered: right as given." in page.text_content("#said"))
    assert page.text_content(ID) in page.text_content("#said")
    press(page, "u")
    until(lambda: "Undone." in page.text_content("#said"))


def test_the_token_does_not_stay_in_the_address(visit, serve, ids_only):
    served = serve(ids_only)
    page = visit(served)
    assert page.url == f"{served.origin}/"
    assert served.gate.token not in page.content()
    assert page.evaluate("document.cookie") == ""


def test_a_password_opens_the_closed_page(browser, serve, ids_only):
    served = serve(ids_only, password="correct horse")
    context = browser.new_context()
    page = context.new_page()
    page.goto(served.origin)
    page.fill("#password", "correct horse")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-ready]")
    assert page.text_content(ID).startswith("s")
    context.close()


def payload_run(tmp_path, kind):
    ids = [f"{PAYLOADS[number % 25]} {number}" for number in range(100)]
    given = [number % 25 for number in range(100)]
    truth = [(number + (number % 2)) % 25 for number in range(100)]
    if kind == "ids":
        return judged_run(tmp_path / "<b>run", given=given, truth=truth, classes=PAYLOADS, ids=ids)
    columns = ["text"] if kind == "texts" else PAYLOADS[:5]
    with (tmp_path / "source.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, "label", "id"])
        for number, id in enumerate(ids):
            cells = [f"{PAYLOADS[number % 25]} and some more words {number}"] * len(columns)
            writer.writerow([*cells, PAYLOADS[given[number]], id])
    samples = read_source(str(tmp_path / "source.csv"))
    observed = samples.labels.observed.tolist()
    names = list(samples.class_names)
    truth = [(label + number % 2) % len(names) for number, label in enumerate(observed)]
    options = {"given": observed, "truth": truth, "classes": names, "ids": samples.ids, "samples": samples}
    return judged_run(tmp_path / "<b>run", source=str(tmp_path / "source.csv"), **options)


@pytest.mark.parametrize("kind", ["ids", "table", "texts"])
def test_markup_in_every_name_is_text(visit, serve, tmp_path, kind):
    run = payload_run(tmp_path, kind)
    served = serve(run)
    served.opened()
    labels = served.review.labels
    log = DecisionLog.of(run)
    for payload in PAYLOADS[:24]:
        log.append(Decision(labels.ids[0], "relabel", labels.class_names[1], payload, now()))
    page = visit(served)
    assert page.text_content("#run") == "<b>run"
    for _ in range(25 if kind == "ids" else 5):
        id = page.text_content(ID)
        row = labels.row_of[id]
        shown = page.locator("#question .text").all_text_contents()
        assert shown[0] == labels.class_names[labels.given[row]]
        assert page.locator("#likely .text").count() == 10
        if kind == "texts":
            assert "and some more words" in page.text_content(".writing")
        if kind == "table":
            assert sorted(page.locator("#sample tbody th").all_text_contents()) == sorted(PAYLOADS[:5])
        press(page, "ArrowRight")
        until(lambda id=id: page.text_content(ID) != id)
    page.select_option("#shown", "decided")
    until(lambda: page.text_content(ID) == labels.ids[0])
    assert page.locator("#opinions li b").all_text_contents() == PAYLOADS[:24]
    press(page, "/")
    assert sorted(page.locator("#found li").all_text_contents()) == sorted(labels.class_names)
    press(page, "Escape", "m")
    until(lambda: page.locator(".card").count() > 0)
    assert page.locator(".card .id").first.text_content() in labels.row_of
    everything = page.evaluate("document.querySelectorAll('script, iframe, base, video, svg').length")
    assert everything == 1  # the page's own script
    assert set(page.locator("#pair option").all_text_contents()[1:])


@pytest.mark.parametrize(("kind", "width"), [("pictures", 390), ("table", 390), ("pictures", 1280)])
def test_nothing_is_wider_than_the_screen(visit, serve, request, width, kind):
    served = serve(request.getfixturevalue(kind))
    served.opened()
    page = visit(served, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width == 390:
        page.locator("#tools summary").click()
        assert page.is_visible("#order")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("#mode").click()
    until(lambda: page.locator(".card").count() == 30)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    heights = page.eval_on_selector_all(".answers button", "all => all.map(b => b.getBoundingClientRect().height)")
    assert min(heights) >= 40


def states(page, served):
    """Take the page through what it can show, one after the other."""
    yield "one sample"
    press(page, "/", "c")
    yield "search for a class"
    press(page, "Escape", "?")
    yield "list of keys"
    press(page, "Escape", "g", "m")
    until(lambda: page.locator(".card").count() == 30)
    press(page, "a")
    until(lambda: page.locator(".card[aria-selected=true]").count() == 30)
    yield "grid with a selection"
    press(page, "s")
    page.select_option("#shown", "conflicts", force=True)
    until(lambda: page.is_visible("#end"))
    yield "nothing left"
    page.context.clear_cookies()
    page.goto(served.origin)
    yield "closed"


@needs_axe
@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 1280),
        pytest.param("dark", 1280, marks=pytest.mark.slow),
        pytest.param("dark", 390, marks=pytest.mark.slow),
    ],
)
def test_axe_finds_no_violation(visit, serve, pictures, scheme, width):
    served = serve(pictures)
    served.opened()
    page = visit(served, fails=True, color_scheme=scheme, viewport={"width": width, "height": 844})
    for state in states(page, served):
        assert violations(page) == [], state


@needs_axe
def test_axe_finds_no_violation_in_a_row_of_a_table(visit, serve, table):
    served = serve(table)
    served.opened()
    page = visit(served, viewport={"width": 390, "height": 844})
    assert violations(page) == []
