"""The command: a table, figures and claims from runs that are made once, also by several processes."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from labelmend.__main__ import main
from labelmend.errors import InterruptedRunError
from labelmend.reproduce.catalogue import Asked
from labelmend.reproduce.protocol import SMALL
from labelmend.reproduce.reproduce import EXPERIMENTS, Reproduction, _helped

CHILD = Path(__file__).with_name("tiny_reproduce.py")
GRID = ("table1", "--only", "ce,dy-h", "--noise", "50,80")


@pytest.fixture
def reproduce(tiny, labelmend, tmp_path):
    def run(*words):
        return labelmend("reproduce", *words, "--out", tmp_path / "out", "--threads", "1")

    return run


def made_at(folder):
    return {path.parent.name: path.stat().st_mtime_ns for path in folder.glob("runs/*/result.json")}


def test_a_table_is_made_printed_written_and_not_made_again(reproduce, tmp_path):
    first = reproduce(*GRID)
    assert first.returncode == 0, first.stderr
    assert "DY-H" in first.stdout
    text = (tmp_path / "out/small/table1.md").read_text()
    assert text.startswith("## Table 1")
    assert "`labelmend reproduce table1 --scale small --seeds 1 --only ce,dy-h --noise 50,80`" in text
    assert len((tmp_path / "out/small/table1.csv").read_text().splitlines()) == 5
    times = made_at(tmp_path / "out")
    assert len(times) == 4
    assert reproduce(*GRID, "--seeds", "1").returncode == 0
    assert made_at(tmp_path / "out") == times


def test_what_is_made_so_far_is_shown_without_making_more(reproduce, tmp_path):
    assert reproduce("table1", "--only", "ce", "--noise", "50").returncode == 0
    times = made_at(tmp_path / "out")
    shown = reproduce("table1", "--only", "ce", "--noise", "50,80", "--so-far")
    assert shown.returncode == 0, shown.stderr
    assert "1 of 2 runs made" in shown.stdout
    assert made_at(tmp_path / "out") == times
    assert len((tmp_path / "out/small/table1.csv").read_text().splitlines()) == 2
    none = reproduce("table2", "--so-far", "--noise", "80")
    assert none.returncode == 0, none.stderr
    assert "0 of 8 runs made" in none.stdout
    assert not (tmp_path / "out/small/table2.md").exists()


@pytest.mark.slow
def test_figures_and_claims_come_from_the_same_runs(reproduce, tmp_path):
    figures = ("fig1", "fig2", "fig3", "appendix-a")
    shown = reproduce(*figures, "frequency", "--data", "cifar10")
    assert shown.returncode == 0, shown.stderr
    folder = tmp_path / "out/small"
    for name in figures:
        assert (folder / f"{name}.svg").read_text().lstrip().startswith("<?xml")
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert len((folder / f"{name}.csv").read_text().splitlines()) > 2
        assert f"({name}.svg)" in (folder / f"{name}.md").read_text()
    assert "every 0.5 epochs" in (folder / "frequency.md").read_text()
    assert reproduce("appendix-a", "--noise", "0", "--data", "cifar10").returncode == 0
    made = len(made_at(tmp_path / "out"))
    assert reproduce("claims", "--data", "cifar10", "--only", "ce,m", "--noise", "80").returncode == 0
    assert len(made_at(tmp_path / "out")) == made
    claims = (folder / "claims.md").read_text()
    assert "| mixup ends above CE at 80 % | Table 2 | above 0 | (" in claims
    assert "2 are too close to call (?), those in brackets having one seed" in claims


def test_a_dry_run_lists_the_runs_with_their_cost_and_makes_none(reproduce, tmp_path):
    shown = reproduce(*GRID, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "4 runs" in shown.stdout
    assert "learning_rate=0.1" in shown.stdout
    assert "4 runs, 0 of them made; about" in shown.stdout
    every = reproduce("--dry-run")
    assert every.returncode == 0, every.stderr
    own = [each for each in EXPERIMENTS.values() if each.runs(SMALL, Asked(1))]
    assert len(own) > 12
    assert all(each.title in every.stdout for each in own)
    some = reproduce("all", "--only", "dy-h", "--noise", "80", "--dry-run")
    assert "Table 1" in some.stdout
    assert "Table 2" not in some.stdout
    assert not (tmp_path / "out").exists()


def test_a_signal_stops_it_with_a_word_on_how_to_go_on(reproduce, monkeypatch):
    def stopped(*_, **__):
        raise InterruptedRunError(signal.SIGTERM)

    monkeypatch.setattr("labelmend.reproduce.reproduce.make_runs", stopped)
    shown = reproduce(*GRID)
    assert shown.returncode == 143
    assert "the same command continues" in shown.stderr
    assert "--resume" not in shown.stderr


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "name what to reproduce: table1, "),
        (("tabel1",), "did you mean 'table1'"),
        (("table1", "--scale", "large"), "unknown scale"),
        (("table1", "--only", "cee"), "unknown method"),
        (("table1", "--only", "elr"), "has no run"),
        (("all", "--only", "elr"), "has no run"),
        (("table1", "--noise", "half"), "whole percentages"),
        (("table1", "--data", "digit"), "unknown data set"),
        (("fig3", "--embedding", "tsne"), "--embedding must be one of"),
    ],
)
def test_bad_usage_gets_one_sentence(words, named, reproduce, tmp_path):
    shown = reproduce(*words)
    assert shown.returncode == 2
    assert named in " ".join(shown.stderr.split())
    assert not (tmp_path / "out").exists()


def test_data_that_is_not_there_is_named_before_anything_is_made(labelmend, tmp_path):
    shown = labelmend("reproduce", "table2", "--scale", "paper", "--root", tmp_path, "--out", tmp_path / "out")
    assert shown.returncode == 2
    assert "cifar10 is not in" in " ".join(shown.stderr.split())
    assert not made_at(tmp_path / "out")


def test_helpers_are_asked_for_the_same_runs_and_end_with_the_command(monkeypatch, tmp_path, tiny):
    started = []

    class Helper:
        def __init__(self, command, **_):
            self.command, self.ended = command, []
            started.append(self)

        def terminate(self):
            self.ended.append("terminate")

        def wait(self):
            self.ended.append("wait")

    monkeypatch.setattr(subprocess, "Popen", Helper)
    asked = Asked(2, "data", frozenset({"m", "ce"}), frozenset({80, 50}), frozenset({"digits"}))
    whole = Reproduction(("table2", "fig1"), tiny, asked, tmp_path, threads=1, device="cpu")
    with _helped(whole, 3):
        assert len(started) == 2
        assert not any(helper.ended for helper in started)
    assert [helper.ended for helper in started] == [["terminate", "wait"]] * 2
    seen = []
    monkeypatch.setattr("labelmend.reproduce.reproduce.make_runs", lambda *args, **kwargs: seen.append((args, kwargs)))
    monkeypatch.setattr(sys, "argv", ["labelmend", *started[0].command[3:]])
    with pytest.raises(SystemExit, match="0"):
        main()
    ((again, console), options) = seen[0]
    assert again == whole
    assert console.quiet
    assert options["jobs"] == 1


def child(out, *words):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, str(CHILD), *words, "--out", str(out), "--threads", "1"], env=environment)


@pytest.mark.slow
def test_killed_in_the_middle_of_a_grid_it_is_finished_without_repeating(tmp_path):
    process = child(tmp_path, *GRID)
    until = time.monotonic() + 120
    while len(made_at(tmp_path)) < 2:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = made_at(tmp_path)
    assert 2 <= len(before) < 4
    together = [child(tmp_path, *GRID) for _ in range(2)]
    assert [process.wait(timeout=120) for process in together] == [0, 0]
    after = made_at(tmp_path)
    assert len(after) == 4
    assert {name: after[name] for name in before} == before
    assert (tmp_path / "small/table1.md").is_file()


def clothing(place, samples=70):
    """Files in Clothing1M's form: fourteen classes, and more noisy labels than tested images."""
    names = [f"images/{number}.png" for number in range(samples)]
    (place / "images").mkdir()
    for number, name in enumerate(names):
        Image.new("RGB", (40, 40), (number % 14 * 18, 99, 7 * number % 256)).save(place / name)
    lists = {"noisy_train_key_list.txt": names[14:], "clean_test_key_list.txt": names[:14]}
    labels = [f"{name} {number % 14}" for number, name in enumerate(names)]
    lists |= {"noisy_label_kv.txt": labels, "clean_label_kv.txt": labels}
    lists["category_names_eng.txt"] = [f"garment {number}" for number in range(14)]
    for name, lines in lists.items():
        (place / name).write_text("\n".join(lines) + "\n")


def test_labels_that_are_wrong_as_they_came_have_a_table_too(tmp_path, labelmend, monkeypatch):
    stage = replace(SMALL.stages["clothing1m"], epochs={"plain": 1, "mixup": 2})
    monkeypatch.setattr("labelmend.reproduce.protocol.SCALES", {"small": replace(SMALL, stages={"clothing1m": stage})})
    clothing(tmp_path)
    shown = labelmend("reproduce", "clothing1m", "--root", tmp_path, "--out", tmp_path / "out", "--threads", "1")
    assert shown.returncode == 0, shown.stderr
    assert "labels as they are" in (tmp_path / "out/small/clothing1m.md").read_text()
