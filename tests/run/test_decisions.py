"""Decisions survive crashes, spreadsheets and each other; people hold over the machine."""

import os
import random
import signal
import subprocess
import sys
import threading
import time

import pyarrow as pa
import pytest

from labelmend.errors import InputError
from labelmend.run.decisions import HEADER, Decision, DecisionLog, now, overlay, read_decisions, standing

ODD = [
    "a,b",
    'say "x"',
    "two\nlines",
    "cr\rhere",
    "=1+1",
    "'=1",
    "''=1",
    "'plain",
    "+2",
    "-3",
    "@x",
    "\tt",
    "a;=cmd()",
    " s ",
    "é☃",
]
ODD += [b"caf\xe9.png".decode(errors="surrogateescape")]


def said(id, word="keep", label="", reviewer="ann"):
    return Decision(id, word, label, reviewer, now())


def test_odd_ids_come_back_exactly_and_none_begins_a_formula(tmp_path):
    log = DecisionLog(tmp_path / "decisions.csv", ids=set(ODD))
    for id in ODD:
        log.append(said(id))
    assert [each.id for each in log.read()] == ODD
    text = log.path.read_bytes().decode(errors="surrogateescape")
    for line in text.split("\n")[1:]:
        assert not line.lstrip('"').startswith(("=", "+", "-", "@", "\t"))


@pytest.mark.parametrize("torn", [b"b,keep,,ann,2026-01-0", b'"b\nc', b'"b\nc",keep', b"b", b'"two\n'])
def test_a_torn_last_line_is_no_decision_and_is_removed_before_the_next(torn, tmp_path):
    log = DecisionLog(tmp_path / "decisions.csv")
    log.append(said("a"))
    whole = log.path.read_bytes()
    log.path.write_bytes(whole + torn)
    assert [each.id for each in log.read()] == ["a"]
    DecisionLog(log.path).append(said("z"))
    assert log.path.read_bytes().startswith(whole)
    assert [each.id for each in log.read()] == ["a", "z"]


@pytest.mark.parametrize("cut", range(len(HEADER)))
def test_a_torn_header_is_written_again(cut, tmp_path):
    path = tmp_path / "decisions.csv"
    path.write_bytes(HEADER[:cut])
    assert read_decisions(path) == []
    DecisionLog(path).append(said("a"))
    assert [each.id for each in read_decisions(path)] == ["a"]


def test_a_whole_last_line_without_newline_is_kept(tmp_path):
    log = DecisionLog(tmp_path / "decisions.csv")
    log.append(said("a"))
    log.path.write_bytes(log.path.read_bytes()[:-1])
    DecisionLog(log.path).append(said("b"))
    assert [each.id for each in log.read()] == ["a", "b"]


def test_threads_and_logs_at_once_lose_nothing(tmp_path):
    path = tmp_path / "decisions.csv"

    def answer(worker):
        log = DecisionLog(path)
        for number in range(25):
            log.append(said(f"{worker}-{number}"))

    threads = [threading.Thread(target=answer, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(each.id for each in read_decisions(path)) == sorted(f"{w}-{n}" for w in range(4) for n in range(25))


WRITER = """
import sys, pathlib
from labelmend.run.decisions import Decision, DecisionLog, now
log = DecisionLog(pathlib.Path(sys.argv[1]))
print("ready", flush=True)
for number in range(100_000):
    log.append(Decision(f'{sys.argv[2]}-{number} "q",\\nline', "keep", "", "ann", now()))
    print(number, flush=True)
"""


def killed_writer(path, name, seconds):
    """How many answers a writer acknowledged before it was killed."""
    child = subprocess.Popen([sys.executable, "-c", WRITER, path, name], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(seconds)
    os.kill(child.pid, signal.SIGKILL)
    lines = child.stdout.read().splitlines()
    child.wait()
    child.stdout.close()
    return len(lines)


def check_kills(path, times):
    rng = random.Random(5)
    for round in range(times):
        acknowledged = killed_writer(path, str(round), rng.uniform(0.005, 0.06))
        ids = [each.id for each in read_decisions(path)] if path.exists() else []
        mine = [id for id in ids if id.startswith(f"{round}-")]
        assert len(ids) == len(set(ids))
        assert mine == [f'{round}-{number} "q",\nline' for number in range(len(mine))]
        assert acknowledged <= len(mine) <= acknowledged + 1


def test_a_killed_writer_loses_no_answer_that_it_acknowledged(tmp_path):
    check_kills(tmp_path / "decisions.csv", 2)


@pytest.mark.slow
def test_fifty_killed_writers_lose_no_answer_that_they_acknowledged(tmp_path):
    check_kills(tmp_path / "decisions.csv", 50)


def test_a_file_saved_by_a_spreadsheet_is_read_and_appended_to(tmp_path):
    path = tmp_path / "decisions.csv"
    path.write_bytes(
        "\ufeffid;decision;label;reviewer;time\r\nk\u00e4fer.png;RELABEL;dog;ann;\r\nb;;cat;;\r\n".encode()
    )
    log = DecisionLog(path, ids={"käfer.png", "b"}, classes=["cat", "dog"])
    assert [(each.id, each.decision, each.label) for each in log.read()] == [
        ("käfer.png", "relabel", "dog"),
        ("b", "relabel", "cat"),
    ]
    log.append(said("b"))
    assert path.read_bytes().startswith(HEADER)
    assert [each.id for each in log.read()] == ["käfer.png", "b", "b"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("id,decision\na,keep\n", "no column 'label'"),
        ("id,decision,label\na,keep,\nb,relabel,wolf\n", "line 3: unknown class 'wolf'"),
        ("id,decision,label\nx,keep,\n", "line 2: there is no sample 'x'"),
        ("id,decision,label\na,keeep,\n", "line 2: unknown decision 'keeep'; did you mean 'keep'"),
        ("id,decision,label\na,relabel,\n", "line 2: the decision relabel of 'a' names no label"),
        ("id,decision,label\na,keep\n", "line 2 has 2 cells"),
        ('id,decision,label\n"a\nb",keep,\nx,keep,\n', "line 4: there is no sample 'x'"),
    ],
)
def test_an_edited_file_is_refused_by_its_line(text, error, tmp_path):
    path = tmp_path / "edited.csv"
    path.write_text(text)
    with pytest.raises(InputError, match="edited") as caught:
        read_decisions(path, classes=["cat", "dog"], ids={"a", "b", "a\nb"})
    assert error in str(caught.value)


def test_what_the_run_does_not_know_is_not_appended(tmp_path):
    log = DecisionLog(tmp_path / "decisions.csv", ids={"a"}, classes=["cat"])
    for wrong in (said("b"), said("a", "relabel", "dog"), said("a", "maybe"), said("a", reviewer="x\ny")):
        with pytest.raises(InputError):
            log.append_all([said("a"), wrong])
    assert not log.path.exists()


def test_undo_takes_back_only_the_reviewers_own_and_the_one_before_holds_again():
    said_so = [said("a", "keep"), said("a", "relabel", "dog"), said("a", "undo"), said("a", "undo", reviewer="bob")]
    assert standing(said_so)["a"].decision == "keep"
    assert standing([*said_so, said("a", "undo")]) == {}


def test_of_reviewers_who_disagree_the_latest_holds_and_skip_is_no_opinion():
    holds = standing([said("a"), said("a", "bad", reviewer="bob"), said("a", "skip", reviewer="eve")])["a"]
    assert (holds.decision, holds.reviewer, holds.conflict, len(holds.opinions)) == ("bad", "bob", True, 3)
    assert not standing([said("a"), said("a", reviewer="bob")])["a"].conflict
    assert standing([said("b", "skip")])["b"].decision == "skip"


def table(**changes):
    columns = {
        "id": ["a", "b", "c", "d", "e"],
        "given": ["cat"] * 5,
        "noisy_probability": [0.9, 0.9, 0.1, 0.2, 0.3],
        "suggested": ["dog", "dog", "cat", "cat", "cat"],
        "confidence": [0.8, 0.8, 0.9, 0.8, 0.7],
        "verdict": ["relabel", "relabel", "keep", "keep", "keep"],
    }
    return pa.table(columns | changes)


def test_people_hold_over_the_machine():
    decided = [said("a"), said("b", "relabel", "owl"), said("c", "bad"), said("d", "skip"), said("e", "relabel", "cat")]
    rows = {row["id"]: row for row in overlay(table(), standing(decided)).to_pylist()}
    found = {
        id: (row["verdict"], row["suggested"], row["noisy_probability"], row["confidence"]) for id, row in rows.items()
    }
    assert found["a"] == ("keep", "cat", 0.0, 1.0)
    assert found["b"] == ("relabel", "owl", 1.0, 1.0)
    assert found["c"] == ("look", "cat", 1.0, 0.0)
    assert found["d"] == ("keep", "cat", 0.2, 0.8)
    assert found["e"] == ("keep", "cat", 0.0, 1.0)
    assert [row["decided"] for row in rows.values()] == ["keep", "relabel", "bad", "skip", "relabel"]
    with pytest.raises(InputError, match="another run"):
        overlay(table(), standing([said("zz")]))
