"""A run that is killed at any moment and resumed ends with the same bytes as one that was not."""

import os
import random
import signal
import time

import child
import pytest
import torch

from labelmend.detect.dynamics import RESAMPLED
from labelmend.training.checkpoint import Checkpoint, load_newest, save

SHORT = ("--epochs", 3, "--limit", 150, "--set", "details=paper")
LONG = ("--epochs", 30)
SOME = ("--epochs", 10)


def test_killed_in_a_step_a_save_and_a_fit_it_ends_the_same(run, labelmend, monkeypatch):
    monkeypatch.setattr("labelmend.faces.terminal.build_report", lambda run: None)
    monkeypatch.setattr("labelmend.detect.dynamics.RESAMPLED", RESAMPLED)  # as in the process that is killed
    whole, cut = run("whole", *SHORT), run("cut", *SHORT)
    assert labelmend(*whole.words).returncode == 0
    kills = [cut.kill_at(*where) for where in (("step", 7), ("save", 9), ("fit", 12))]
    assert any(kills)
    assert cut.finish()[0] == 0
    assert cut.digest() == whole.digest()


def wait_for_owner(run, process):
    """Until the process owns the run and has described it: what `start` goes by when it adds --resume."""
    lock, until = run.folder / ".lock", time.monotonic() + 120
    while not run.described() or f"process {process.pid} " not in lock.read_text():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)


def test_two_owners_are_refused_and_a_dead_owner_is_not_in_the_way(run):
    first = run("owned", "--epochs", 60)
    process = first.start()
    wait_for_owner(first, process)
    code, shown = first.finish()
    assert code == 2
    assert f"in use by process {process.pid}" in " ".join(shown.split())
    process.kill()
    process.communicate()
    process = first.start()
    wait_for_owner(first, process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 143


@pytest.mark.slow
def test_fifty_kills_at_random_moments_end_byte_identical(run, shown):
    """50 runs of some 20 s: 15 killed inside a save, 10 inside a fit, 25 by the clock; each resumed to its end."""
    rng, whole = random.Random(0), run("whole", *LONG)
    started = time.monotonic()
    assert whole.finish() == (0, "")
    seconds, expected, same = time.monotonic() - started, whole.digest(), 0
    for number in range(50):
        cut = run(f"cut{number}", *LONG)
        if number < 15:
            assert cut.kill_at("save", rng.randrange(1, 30 * 10))
        elif number < 25:
            assert cut.kill_at("fit", rng.randrange(1, 60))
        else:
            process = cut.start()
            time.sleep(rng.uniform(2, seconds))
            process.kill()
            process.communicate()
        code, said = cut.finish()
        assert code == 0, said
        same += cut.digest() == expected
    what = f"kill -9 at 50 moments of a run of {seconds:.0f} s (15 in a save, 10 in a fit, 25 by the clock), resumed"
    shown(what, f"{same} of 50 byte-identical")
    assert same == 50


def die_in_a_save(folder, countdown):
    """In a process of its own, save checkpoint after checkpoint until the countdown kills it."""
    pid = os.fork()
    if pid == 0:
        child.install(countdown)
        for epoch in range(2, 100):
            child.checkpoint.save(folder, state_of(epoch))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def state_of(epoch):
    tensors = {str(i): torch.full((1000,), float(epoch)) for i in range(5)}
    return Checkpoint(epoch, 0, {"position": {"epoch": epoch, "step": 0}, "tensors": tensors})


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("kills", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_inside_saves_leave_a_loadable_checkpoint(kills, tmp_path, shown):
    """Every write, fsync and rename in turn: ten of them make a save."""
    lost = 0
    for number in range(1, kills + 1):
        folder = tmp_path / str(number)
        save(folder, state_of(1))
        assert die_in_a_save(folder, child.Countdown("save", number)) == -signal.SIGKILL
        found, _ = load_newest(folder)
        whole = found is not None and torch.equal(found.state["tensors"]["4"], torch.full((1000,), float(found.epoch)))
        lost += not whole
    what = "kill -9 at each write, fsync and rename of saves"
    shown(what, f"{kills - lost} of {kills} leave a loadable checkpoint")
    assert lost == 0


@pytest.mark.slow
def test_thirty_terminations_save_and_resume_exactly(run, shown):
    """SIGTERM at 30 moments across all stages: exit 143 within 10 s, and the same bytes in the end."""
    rng, whole = random.Random(1), run("whole", *SOME)
    started = time.monotonic()
    assert whole.finish() == (0, "")
    seconds, expected, slowest, same = time.monotonic() - started, whole.digest(), 0.0, 0
    for number in range(30):
        cut = run(f"cut{number}", *SOME)
        process = cut.start()
        time.sleep(rng.uniform(0.8, seconds - 0.5))
        process.send_signal(signal.SIGTERM)
        asked = time.monotonic()
        process.communicate(timeout=60)
        slowest = max(slowest, time.monotonic() - asked)
        begun = (cut.folder / "run.json").exists()  # before, Python may still be importing
        assert process.returncode in ((0, 143) if begun else (143, -signal.SIGTERM))
        code, said = cut.finish() if process.returncode else (0, "")
        assert code == 0, said
        same += cut.digest() == expected
    seen = f"{same} of 30 byte-identical; the slowest stopped in {slowest:.1f} s"
    shown("SIGTERM at 30 moments, resumed", seen)
    assert same == 30
    assert slowest <= 10
