"""Fifty thousand samples: the page is there at once, answers take no time, and memory does not grow."""

import threading
import time

import numpy as np
import pytest
from processes import Client, Command
from review_runs import ids_run, pictures_run

from labelmend.run.decisions import read_decisions

SAMPLES = 50_000
CLASSES = [f"class {number}" for number in range(10)]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return ids_run(tmp_path_factory.mktemp("large") / "run", SAMPLES, CLASSES)


class Reviewer(threading.Thread):
    """Asks for samples and answers them, as a page does; every tenth one is a sample that others answer too."""

    def __init__(self, command, number, answers):
        super().__init__()
        self.client = Client(command, f"reviewer {number}")
        self.number, self.answers = number, answers
        self.seconds, self.said = [], {}

    def decide(self, row):
        word = ("keep", "bad", "other", "skip")[self.number]
        started = time.perf_counter()
        self.client.decide(row, word)
        self.seconds.append(time.perf_counter() - started)
        self.said[f"s{row}"] = word

    def run(self):
        asked = {"wish": {}, "count": 6, "reviewer": self.client.reviewer, "page": str(self.number)}
        disputed = iter(range(1, SAMPLES, 2))  # labels that look right, which the queue does not give
        while len(self.said) < self.answers:
            found = self.client.post("/api/queue", asked | {"without": []})
            for sample in found["samples"][:4]:
                self.decide(sample["row"])
            self.decide(next(disputed))
        self.client.connection.close()


def reviewed(run, answers: int) -> tuple[np.ndarray, int, int, list[Reviewer]]:
    """Seconds of each answer of four clients at once, and memory in kB after a tenth and at the end."""
    command = Command(run.path)
    try:
        warm = [Reviewer(command, number, answers // 10) for number in range(4)]
        for each in warm:
            each.start()
        for each in warm:
            each.join()
        before = command.memory()
        crowd = [Reviewer(command, number, answers) for number in range(4)]
        for each in crowd:
            each.start()
        for each in crowd:
            each.join()
        after = command.memory()
    finally:
        command.kill()
    return np.concatenate([each.seconds for each in crowd]), before, after, crowd


@pytest.mark.slow
def test_four_clients_answer_two_thousand_times_at_once(large, shown):
    seconds, before, after, crowd = reviewed(large, 500)
    p50, p99 = (1000 * np.quantile(seconds, share) for share in (0.5, 0.99))
    decisions = read_decisions(large.decisions)
    written = {(each.id, each.reviewer): each.decision for each in decisions}
    seen = f"median {p50:.1f} ms, p99 {p99:.1f} ms; memory {before >> 10} MB, then {after >> 10} MB"
    shown(f"four reviewers at once, {len(seconds):,} answers, 50,000 samples", seen)
    for each in crowd:
        own = {id: word for (id, name), word in written.items() if name == each.client.reviewer}
        assert each.said.items() <= own.items()
    assert len(decisions) == len(written)  # nothing was written twice
    assert len(seconds) >= 2000
    assert p99 <= 50
    assert after - before < 10_000
    command = Command(large.path)
    client = Client(command)
    state = client.get("/api/state?reviewer=ann")
    client.connection.close()
    command.kill()
    assert state["conflicts"] >= 100  # the samples that all four were asked about


@pytest.mark.slow
def test_the_page_is_usable_within_three_seconds(large, browser, shown):
    page = browser.new_page()
    taken = []
    for _ in range(3):
        large.decisions.unlink(missing_ok=True)
        started = time.monotonic()
        command = Command(large.path)
        page.goto(command.address)
        page.wait_for_selector("[data-ready]")
        page.keyboard.press("g")
        page.wait_for_selector("body:not(.unsaved)")
        page.wait_for_selector("#counts >> text=1 answers in all")
        taken.append(time.monotonic() - started)
        command.kill()
    page.close()
    seen = f"{', '.join(f'{each:.1f}' for each in taken)} s"
    shown("from the command `review` to the first saved answer, 50,000 samples", seen)
    assert min(taken) <= 3


@pytest.mark.slow
def test_pictures_do_not_stay_in_memory(tmp_path, shown):
    run = pictures_run(tmp_path)
    command = Command(run.path)
    client = Client(command)
    client.get("/api/start")
    while client.get("/api/state?reviewer=ann")["source"] == "opening":
        time.sleep(0.1)

    def look(times):
        for number in range(times):
            client.connection.request("GET", f"/picture/{number % 90}/large", headers=client.headers)
            assert len(client.connection.getresponse().read()) > 100

    look(200)
    before = command.memory()
    look(2000)
    after = command.memory()
    client.connection.close()
    command.kill()
    shown("2,000 pictures of the review page", f"memory {before >> 10} MB before, {after >> 10} MB after")
    assert after - before < 10_000
