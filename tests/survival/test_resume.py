"""A run that is stopped anywhere, or whose checkpoints are damaged, goes on and ends with the same bytes."""

import random
from dataclasses import replace

import pytest
import torch
from faults import EPOCHS, STEPS, newest, train

from labelmend.errors import InputError, InterruptedRunError
from labelmend.training import checkpoint
from labelmend.training.checkpoint import load_newest, saved

pytestmark = pytest.mark.usefixtures("without_looks")


@pytest.mark.parametrize(("cuts", "flips"), [(12, 30), pytest.param(100, 256, marks=pytest.mark.slow)])
def test_every_truncation_and_changed_byte_is_detected_and_the_checkpoint_before_is_used(cuts, flips, config, shown):
    run, _ = train(config("run"))
    older, damaged = saved(run.checkpoints)
    files, chance, detected = sorted(damaged.iterdir()), random.Random(0), 0
    for number in range(cuts + flips):
        path = files[number % len(files)]
        content = path.read_bytes()
        place = chance.randrange(len(content))
        rest = b"" if number < cuts else bytes([content[place] ^ chance.randrange(1, 256)]) + content[place + 1 :]
        path.write_bytes(content[:place] + rest)
        found, warnings = load_newest(run.checkpoints)
        detected += found is not None and found.name == older.name and [damaged.name in w for w in warnings] == [True]
        path.write_bytes(content)
    what = f"{cuts} truncations and {flips} changed bytes of a checkpoint's files"
    shown(what, f"{detected} of {cuts + flips} noticed, the checkpoint before used")
    assert detected == cuts + flips
    assert newest(run.path) == damaged.name


@pytest.mark.parametrize("spared", [0, 1])
def test_a_run_with_damaged_checkpoints_ends_the_same_and_keeps_what_it_saves(spared, run, config, monkeypatch, after):
    train(config("whole"))
    with pytest.raises(InterruptedRunError):
        train(config("cut", save_every=0.0), signals=after(20))
    folder = run("cut").folder / "checkpoints"
    for path in saved(folder)[spared:]:
        (path / "values.json").write_bytes(b"{}")
    kept, save = [], checkpoint.save

    def counted(place, state):
        save(place, state)
        kept.append((place / state.name).is_dir() and load_newest(place)[0].name == state.name)

    monkeypatch.setattr(checkpoint, "save", counted)
    _, warnings = train(config("cut", resume=True))
    assert len(warnings) == 2 - spared
    assert kept
    assert all(kept)
    assert newest(run("cut").folder) == newest(run("whole").folder)
    assert run("cut").digest() == run("whole").digest()


def test_saving_at_every_step_changes_nothing(run, config, monkeypatch):
    names, save = [], checkpoint.save
    monkeypatch.setattr(checkpoint, "save", lambda folder, state: (names.append(state.name), save(folder, state)))
    train(config("seldom"))
    assert len(names) == EPOCHS
    train(config("always", save_every=0.0))
    assert len(set(names)) == EPOCHS * (STEPS + 1)
    assert run("always").digest() == run("seldom").digest()


def test_other_threads_are_drift_that_must_be_allowed(config, after):
    with pytest.raises(InterruptedRunError):
        train(config("run"), signals=after(5))
    other = config("run", threads=2, resume=True)
    try:
        with pytest.raises(InputError, match=r"with threads 1, not 2; .* --allow-drift"):
            train(other)
        run, _ = train(replace(other, allow_drift=True))
    finally:
        torch.set_num_threads(1)
    assert run.read()["status"] == "finished"


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_stopped_in_a_step_in_tracking_or_in_a_test_it_resumes_exactly(every, run, config, after, shown):
    """At each moment in turn of two epochs at which a run looks for signals."""
    looks = after(10**9)
    train(config("whole", epochs=2), signals=looks)
    moments = range(0, 10**9 - looks.times, every)
    same, places = 0, set()
    for number in moments:
        with pytest.raises(InterruptedRunError):
            train(config(f"cut{number}", epochs=2), signals=after(number))
        places.add(newest(run(f"cut{number}").folder))
        train(config(f"cut{number}", epochs=2, resume=True))
        same += run(f"cut{number}").digest() == run("whole").digest()
    what = f"stopped at each of {len(moments)} moments of two epochs, resumed"
    shown(what, f"{same} of {len(moments)} byte-identical, from {len(places)} different checkpoints")
    assert same == len(moments)
