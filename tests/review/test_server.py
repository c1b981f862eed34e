"""What the review server says about samples, and what it keeps of answers."""

import io
import shutil
import threading
import time

import numpy as np
import pytest
from PIL import Image
from review_runs import SHAPES, N, ids_run, judged_run

from labelmend.errors import InputError
from labelmend.review.server import Review
from labelmend.run.decisions import Decision, DecisionLog, now, read_decisions

IDS = [str(number) for number in range(60)]


@pytest.fixture(scope="module")
def refusing(serve_long, tmp_path_factory):
    """A server at which nothing is ever decided."""
    return serve_long(ids_run(tmp_path_factory.mktemp("refusing") / "run"))


def lines(run):
    return [(each.id, each.decision, each.label, each.reviewer) for each in read_decisions(run.decisions)]


def test_suspects_come_one_by_one_with_what_the_run_found(serve, ids_only):
    served = serve(ids_only)
    labels = served.review.labels
    found = served.next(5, order="suspicious")
    assert found["left"] == N // 2
    rows = [sample["row"] for sample in found["samples"]]
    assert labels.rank[rows].tolist() == [1, 2, 3, 4, 5]
    first = found["samples"][0]
    assert first["id"] == labels.ids[rows[0]]
    assert (first["given"], first["suggested"]) == (labels.given[rows[0]], labels.suggested[rows[0]])
    assert first["probability"] == pytest.approx(labels.probability[rows[0]], abs=1e-4)
    assert first["likely"] == [0, 1, 2]


def test_filters_select_pair_probability_and_verdict(serve, ids_only):
    served, labels = serve(ids_only), None
    labels = served.review.labels
    pair = {"given": 1, "suggested": 0}
    rows = [sample["row"] for sample in served.next(60, **pair, verdict="relabel")["samples"]]
    assert sorted(rows) == np.flatnonzero((labels.given == 1) & (labels.suggested == 0) & labels.flagged).tolist()
    rows = [sample["row"] for sample in served.next(60, least=0.8, most=0.9)["samples"]]
    assert sorted(rows) == np.flatnonzero((labels.probability >= 0.8) & (labels.probability <= 0.9)).tolist()
    assert {sample["verdict"] for sample in served.next(60, verdict="look")["samples"]} == {2}
    assert served.next(60, verdict="any")["left"] == N
    unsure = [sample["confidence"] for sample in served.next(10, order="unsure")["samples"]]
    assert unsure == sorted(unsure)


@pytest.mark.parametrize(
    "wish",
    [
        {"order": "random"},
        {"shown": "nothing"},
        {"verdict": "maybe"},
        {"given": 3},
        {"given": -1},
        {"given": "0"},
        {"given": True},
        {"least": "a"},
        {"most": float("inf")},
    ],
)
def test_wishes_that_are_none_are_refused(refusing, wish):
    asked = {"wish": wish, "count": 1, "reviewer": "ann", "page": "one"}
    assert refusing.post("/api/queue", asked).status == 400


def test_an_answer_is_in_the_file_when_it_is_acknowledged(serve, ids_only):
    served = serve(ids_only)
    for row, word, label in [
        (0, "keep", None),
        (1, "relabel", 2),
        (2, "other", None),
        (3, "bad", None),
        (4, "skip", None),
    ]:
        assert served.decide(row, word, label).status == 200
        assert lines(ids_only)[-1] == (f"s{row}", word, SHAPES[label] if label is not None else "", "ann")
    state = served.get("/api/state?reviewer=ann").json
    assert (state["decided"], state["skipped"], state["mine"]) == (5, 1, 5)


def test_undo_is_another_line_and_brings_the_answer_before_back(serve, ids_only):
    served = serve(ids_only)
    served.decide(0, "keep")
    served.decide(0, "bad")
    reply = served.post("/api/undo", {"reviewer": "ann"}).json
    assert reply["rows"] == [0]
    assert reply["samples"][0]["decided"]["decision"] == "keep"
    assert [word for _, word, *_ in lines(ids_only)] == ["keep", "bad", "undo"]
    assert served.post("/api/undo", {"reviewer": "ann"}).json["samples"][0]["decided"] is None
    assert served.post("/api/undo", {"reviewer": "ann"}).json["rows"] == []
    assert served.post("/api/undo", {"reviewer": "bob"}).json["rows"] == []


def test_answers_that_were_given_together_are_undone_together(serve, ids_only):
    served = serve(ids_only)
    served.decide(9, "keep")
    together = [[row, "relabel", row % 3] for row in range(8)]
    assert served.post("/api/decide", {"answers": together, "reviewer": "ann"}).status == 200
    assert len(lines(ids_only)) == 9
    assert sorted(served.post("/api/undo", {"reviewer": "ann"}).json["rows"]) == list(range(8))
    assert served.get("/api/state?reviewer=ann").json["decided"] == 1


def test_an_answer_that_is_sent_again_is_not_written_again(serve, ids_only):
    served = serve(ids_only)
    for _ in range(3):
        served.decide(0, "relabel", 1)
    assert len(lines(ids_only)) == 1
    served.decide(0, "relabel", 2)
    served.decide(0, "relabel", 1)
    assert len(lines(ids_only)) == 3


def test_an_undo_that_is_sent_again_is_done_once(serve, ids_only):
    served = serve(ids_only)
    for row in range(3):
        served.decide(row, "keep")
    for _ in range(3):
        assert served.post("/api/undo", {"reviewer": "ann", "order": "one"}).json["rows"] == [2]
    assert served.post("/api/undo", {"reviewer": "ann", "order": "two"}).json["rows"] == [1]
    assert [word for _, word, *_ in lines(ids_only)] == ["keep", "keep", "keep", "undo", "undo"]


def test_reviewers_who_disagree_are_shown(serve, ids_only):
    served = serve(ids_only)
    served.decide(0, "keep", reviewer="ann")
    said = served.decide(0, "bad", reviewer="bob").json["decided"]["0"]
    assert said["conflict"]
    assert [(name, word) for name, word, *_ in said["opinions"]] == [("ann", "keep"), ("bob", "bad")]
    assert served.get("/api/state?reviewer=ann").json["conflicts"] == 1
    assert [sample["row"] for sample in served.next(9, shown="conflicts", verdict="any")["samples"]] == [0]
    served.decide(0, "bad", reviewer="ann")
    assert served.get("/api/state?reviewer=ann").json["conflicts"] == 0


def test_what_another_program_appends_is_heard(serve, ids_only):
    served = serve(ids_only)
    served.decide(0, "keep")
    other = DecisionLog.of(ids_only)
    other.append(Decision("s0", "bad", "", "bob", now()))
    other.append(Decision("s1", "keep", "", "bob", now()))
    state = served.get("/api/state?reviewer=ann").json
    assert (state["decided"], state["conflicts"], state["reviewers"]) == (2, 1, {"ann": 1, "bob": 2})


def test_a_file_that_was_edited_meanwhile_is_read_anew_or_named(serve, ids_only):
    served = serve(ids_only)
    served.decide(0, "keep")
    ids_only.decisions.write_text("id;decision;label\ns1;bad;\ns2;relabel;circle\n")
    assert served.get("/api/state?reviewer=ann").json["decided"] == 2
    ids_only.decisions.write_text("id,decision,label,reviewer,time\nnobody,keep,,,\n")
    assert "cannot be read" in served.get("/api/state?reviewer=ann").json["notes"][-1]
    ids_only.decisions.unlink()
    state = served.get("/api/state?reviewer=ann").json
    assert (state["decided"], [note for note in state["notes"] if "cannot be read" in note]) == (0, [])


def test_two_pages_do_not_get_the_same_samples(serve, ids_only):
    served = serve(ids_only)
    first = {sample["row"] for sample in served.next(6, page="a", order="suspicious")["samples"]}
    second = {sample["row"] for sample in served.next(6, page="b", reviewer="bob", order="suspicious")["samples"]}
    assert not first & second
    assert {sample["row"] for sample in served.next(6, page="a", order="suspicious")["samples"]} == first
    last = served.next(60, page="b", reviewer="bob", order="suspicious")["samples"]
    assert len(last) == N // 2  # the last ones are for everybody


def test_a_second_opinion_is_asked_of_everybody_else(serve, ids_only):
    served = serve(ids_only)
    served.decide(0, "keep", reviewer="ann")
    asked = {"order": "suspicious", "verdict": "suspects"}

    def rows(reviewer, shown):
        return [sample["row"] for sample in served.next(60, reviewer, reviewer, shown=shown, **asked)["samples"]]

    assert 0 in rows("bob", "mine")
    assert 0 not in rows("ann", "mine")
    assert 0 not in rows("bob", "undecided")


def test_a_new_server_knows_what_was_decided(serve, ids_only):
    serve(ids_only).decide(0, "relabel", 2)
    state = serve(ids_only).get("/api/state?reviewer=ann").json
    assert (state["decided"], state["mine"]) == (1, 1)


def test_a_picture_is_that_of_the_original_in_its_proportions(serve, pictures):
    served = serve(pictures)
    served.opened()
    row = served.next(1)["samples"][0]["row"]
    reply = served.get(f"/picture/{row}/large")
    original = Image.open(pictures.path.parent / "pictures" / served.review.labels.ids[row])
    assert reply.headers["content-type"] == "image/png"
    shown = Image.open(io.BytesIO(reply.content))
    assert np.array_equal(np.asarray(shown.convert("RGB")), np.asarray(original.convert("RGB")))
    assert served.get(f"/picture/{row}/small").status == 200


def test_neighbours_are_of_both_classes_and_look_alike(serve, pictures):
    served = serve(pictures)
    served.opened()
    sample = next(each for each in served.next(60)["samples"] if each["suggested"] != each["given"])
    labels = served.review.labels
    assert [labels.given[near["row"]] for near in sample["like_given"]] == [sample["given"]] * 3
    assert [labels.given[near["row"]] for near in sample["like_rival"]] == [sample["suggested"]] * 3
    assert not labels.flagged[[near["row"] for near in sample["like_rival"]]].any()


def test_a_row_of_a_table_is_shown_with_what_is_unusual_in_it(serve, table):
    served = serve(table)
    served.opened()
    sample = next(each for each in served.next(60)["samples"] if each["suggested"] != each["given"])
    assert sample["kind"] == "cells"
    assert [name for name, *_ in sample["cells"]] == ["length", "width", "colour"]
    bars = {bar["name"]: bar for bar in sample["bars"]}
    assert "length" in bars
    low, high = bars["length"]["rival_range"]
    assert low - 2 < bars["length"]["value"] < high + 2
    assert not bars["length"]["given_range"][0] <= bars["length"]["value"] <= bars["length"]["given_range"][1]


def test_a_run_of_predictions_alone_shows_ids(serve, ids_only):
    served = serve(ids_only)
    served.opened()
    state = served.get("/api/state?reviewer=ann").json
    assert state["source"] == "missing"
    assert "--source" in state["notes"][0]
    sample = served.next(1)["samples"][0]
    assert (sample["kind"], served.get(f"/picture/{sample['row']}/large").status) == ("none", 404)


def test_a_source_that_moved_is_said_and_found_again(serve, pictures, tmp_path):
    shutil.move(tmp_path / "pictures", tmp_path / "elsewhere")
    served = serve(pictures)
    served.opened()
    state = served.get("/api/state?reviewer=ann").json
    assert "is not there; give its place with --source" in state["notes"][0]
    row = served.next(1, order="suspicious")["samples"][0]["row"]
    small = Image.open(io.BytesIO(served.get(f"/picture/{row}/large").content))  # what the run kept
    assert max(small.size) <= 160
    again = serve(pictures, source=str(tmp_path / "elsewhere"))
    again.opened()
    assert again.get("/api/state?reviewer=ann").json["notes"] == []
    assert Image.open(io.BytesIO(again.get(f"/picture/{row}/large").content)).size == (96, 72)


def test_samples_that_are_gone_or_damaged_are_said_and_do_not_matter(serve, pictures, tmp_path):
    ids = sorted(path.relative_to(tmp_path / "pictures") for path in (tmp_path / "pictures").rglob("*.png"))
    (tmp_path / "pictures" / ids[0]).unlink()
    (tmp_path / "pictures" / ids[1]).write_bytes(b"no picture")
    served = serve(pictures)
    served.opened()
    assert served.get("/api/state?reviewer=ann").json["notes"] == [
        f"1 of {N} samples are not in {tmp_path / 'pictures'} any more"
    ]
    rows = served.review.labels.row_of
    assert not served.get(f"/api/sample/{rows[str(ids[0])]}").json["here"]
    for id in ids[:2]:
        assert served.get(f"/picture/{rows[str(id)]}/large").status in (200, 404)
        assert served.decide(rows[str(id)], "bad").status == 200


def test_labels_that_were_changed_since_are_said(serve, pictures, tmp_path):
    moved = next((tmp_path / "pictures" / "circle").iterdir())
    served = serve(pictures, source=str(tmp_path / "pictures"))
    table = tmp_path / "labels.csv"
    table.write_text("image,label,id\n" + f"pictures/circle/{moved.name},square,circle/{moved.name}\n" * 1)
    other = serve(pictures, source=str(table))
    other.opened()
    notes = other.get("/api/state?reviewer=ann").json["notes"]
    assert any("1 labels in" in note for note in notes) or any("not shown" in note for note in notes)
    assert served.next(1)["samples"]


def test_evidence_that_is_damaged_does_not_stop_a_review(serve, pictures):
    pictures.suspects.write_bytes(b"no parquet")
    pictures.features.write_bytes(b"nothing")
    pictures.noise_json.write_text("{}")
    served = serve(pictures)
    served.opened()
    assert "evidence" in served.get("/api/state?reviewer=ann").json["notes"][0]
    assert served.next(1)["samples"][0]["kind"] == "picture"


def test_many_classes_get_numbers_for_the_likeliest(serve, tmp_path):
    classes = [f"class {number:02}" for number in range(40)]
    run = ids_run(tmp_path / "run", 400, classes)
    sample = serve(run).next(1, verdict="relabel", order="suspicious")["samples"][0]
    assert len(sample["likely"]) == 10
    assert sample["likely"][0] == sample["rival"]
    assert sample["given"] not in sample["likely"]


def test_answers_recalibrate_the_judge_and_the_order(serve, tmp_path, monkeypatch):
    monkeypatch.setattr("labelmend.review.estimate.LONGEST_PAUSE", 0.0)
    run = ids_run(tmp_path / "run", 1000)
    served = serve(run)
    wrong = served.review.labels.flagged
    before = served.get("/api/state?reviewer=ann").json["estimate"]
    assert before["answers"] == 0
    asked = served.next(50)["samples"]
    assert 0 < sum(not wrong[sample["row"]] for sample in asked) < 50  # some that look right are asked for as well
    for sample in asked:
        served.decide(sample["row"], "other" if wrong[sample["row"]] else "keep")
    after = until(lambda: served.get("/api/state?reviewer=ann").json["estimate"], lambda told: told["answers"] > 40)
    width = [told["interval"][1] - told["interval"][0] for told in (before, after)]
    assert width[1] < width[0]
    assert after["interval"][0] <= wrong.mean() <= after["interval"][1]
    assert after["rest"] <= before["rest"]
    assert served.get("/api/state?reviewer=ann&wish=1").json["estimate"]["until"] == 0
    assert served.get("/api/state?reviewer=ann&wish=0").json["estimate"]["until"] >= after["until"] > 0
    decided = {sample["row"] for sample in asked}
    assert not decided & {sample["row"] for sample in served.next(50, page="other")["samples"]}


def until(find, holds, seconds=10.0):
    """What is found once it is as wanted."""
    end = time.monotonic() + seconds
    while not holds(found := find()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def test_labels_that_look_clean_can_be_reviewed(serve, tmp_path):
    run = judged_run(tmp_path / "run", given=[0, 1] * 30, truth=[0, 1] * 30, classes="ab", ids=IDS, flagged=False)
    served = serve(run)
    assert served.next(3)["left"] == 60
    assert not served.get("/api/start").json["flagged"]


def test_a_run_that_is_not_finished_is_refused(ids_only):
    ids_only.update(status="training")
    with pytest.raises(InputError, match="finish it"):
        Review(ids_only, reviewer="ann")


def test_a_damaged_table_is_named(ids_only):
    described = ids_only.read()
    ids_only.update(data=described["data"] | {"classes": ["circle", "square"]})
    with pytest.raises(InputError, match="damaged"):
        Review(ids_only, reviewer="ann")


@pytest.mark.parametrize(
    "answers",
    [
        [],
        [[0, "keep", None]] * 201,
        [[N, "keep", None]],
        [[-1, "keep", None]],
        [["0", "keep", None]],
        [[True, "keep", None]],
        [[0, "undo", None]],
        [[0, "relabel", None]],
        [[0, "relabel", 3]],
        [[0, "relabel", -1]],
        [[0, "relabel", "circle"]],
        [[0, "keep"]],
        ["keep"],
        "keep",
    ],
)
def test_answers_that_are_none_are_refused_and_nothing_is_written(refusing, answers):
    assert refusing.post("/api/decide", {"answers": answers, "reviewer": "ann"}).status == 400
    assert not refusing.review.run.decisions.exists()


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 101, None, 3, "\x1b[2J"])
def test_reviewers_without_a_proper_name_are_refused(refusing, name):
    assert refusing.decide(0, "keep", reviewer=name).status == 400


def test_a_full_disk_is_said_and_the_answer_is_not_acknowledged(serve, ids_only, monkeypatch):
    served = serve(ids_only)

    def full(file, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("labelmend.run.decisions.os.write", full)
    reply = served.decide(0, "keep")
    assert (reply.status, reply.json["error"]) == (507, "not saved: No space left on device")
    monkeypatch.undo()
    assert served.decide(0, "keep").status == 200
    assert len(lines(ids_only)) == 1


def test_four_clients_at_once_lose_nothing(serve, ids_only):
    served = serve(ids_only)

    def review(number):
        for row in range(N):
            if served.decide(row, "keep" if (row + number) % 2 else "bad", reviewer=f"r{number}").status != 200:
                served.trouble.append(row)

    threads = [threading.Thread(target=review, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not served.trouble
    assert len(lines(ids_only)) == len(set(lines(ids_only))) == 4 * N
    assert served.get("/api/state?reviewer=ann").json["conflicts"] == N
