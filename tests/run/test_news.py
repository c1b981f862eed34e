"""What was added to decisions.csv since it was last read, whoever added it."""

import pytest

from labelmend.errors import InputError
from labelmend.run.decisions import Decision, DecisionLog, now


@pytest.fixture
def log(tmp_path):
    return DecisionLog(tmp_path / "decisions.csv", ids={f"s{n}" for n in range(9)}, classes=["cat", "dog"])


def said(id, word="keep", label="", reviewer="ann"):
    return Decision(id, word, label, reviewer, now())


def test_news_are_what_was_added_since(log):
    assert log.news() == ([], False)
    first, second = said("s0"), said("s1", "relabel", "dog", 'a "b", c')
    log.append(first)
    assert log.news() == ([first], True)
    assert log.news() == ([], False)
    log.append(second)
    DecisionLog(log.path).append(first)
    assert log.news() == ([second, first], False)


def test_a_torn_line_is_no_news_until_it_is_whole(log):
    log.append(said("s0"))
    log.news()
    line = f"s1,keep,,ann,{now()}\n"
    with log.path.open("a") as file:
        file.write(line[:12])
    assert log.news() == ([], False)
    with log.path.open("a") as file:
        file.write(line[12:])
    assert [each.id for each in log.news()[0]] == ["s1"]


def test_a_file_that_was_replaced_edited_or_removed_is_read_anew(log):
    log.append_all([said("s0"), said("s1")])
    log.news()
    log.path.write_text("id;decision;label\ns2;bad;\n")
    news, anew = log.news()
    assert ([each.id for each in news], anew) == (["s2"], True)
    log.append(said("s3"))
    news, anew = log.news()
    assert ([each.id for each in news], anew) == (["s2", "s3"], True)
    log.path.unlink()
    assert log.news() == ([], True)
    log.path.write_text("")
    assert log.news() == ([], True)
    log.append(said("s4"))
    assert [each.id for each in log.news()[0]] == ["s4"]


def test_what_cannot_be_read_is_named_and_read_anew_afterwards(log):
    log.append(said("s0"))
    log.news()
    kept = log.path.read_text()
    log.path.write_text(f"{kept}stranger,keep,,ann,{now()}\n")
    with pytest.raises(InputError, match="stranger"):
        log.news()
    log.path.write_text(kept)
    news, anew = log.news()
    assert ([each.id for each in news], anew) == (["s0"], True)
