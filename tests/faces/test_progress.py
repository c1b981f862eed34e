"""A run in progress, on a terminal and in a log file."""

import io
import re

import pytest
from rich.console import Console

from labelmend.faces.progress import LineObserver, ProgressObserver, observed
from labelmend.faces.words import duration

TINY = ("--limit", "100", "--threads", "1", "--set", "track_every=2")


def test_without_a_terminal_every_epoch_is_one_line_with_the_time_left(tmp_path, labelmend):
    shown = labelmend("train", "digits", "--out", tmp_path / "run", "--epochs", 3, *TINY).stdout
    lines = [line for line in shown.splitlines() if "epoch " in line]
    assert len(lines) == 3
    for number, line in enumerate(lines, start=1):
        assert re.fullmatch(rf"m-dyr-h: epoch {number}/3, accuracy 0\.\d+(, noise \d+%)?, \d+ s left", line), line
    assert "noise" in lines[1]


def test_a_resumed_run_counts_time_from_where_it_began(monkeypatch):
    clock = iter([100.0, 100.0, 110.0, 120.0])
    monkeypatch.setattr("labelmend.faces.progress.time.monotonic", lambda: next(clock))
    file = io.StringIO()
    lines = LineObserver(Console(file=file), "ce", 20)
    record = {"test_accuracy": None, "noise_rate": None, "tracked": False}
    lines.stage(9, "training", 5)
    lines.epoch(record | {"epoch": 9})
    lines.epoch(record | {"epoch": 10})
    assert file.getvalue().splitlines() == ["ce: epoch 9/20, 1 min 50 s left", "ce: epoch 10/20, 1 min 40 s left"]


@pytest.mark.parametrize(("terminal", "kind"), [(True, ProgressObserver), (False, LineObserver)])
def test_a_bar_is_for_terminals(terminal, kind):
    with observed(Console(file=io.StringIO(), force_terminal=terminal), "ce", 3) as observer:
        assert isinstance(observer.observers[0], kind)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")]
)
def test_durations_have_their_two_largest_units(seconds, words):
    assert duration(seconds) == words
