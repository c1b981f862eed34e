"""What the tests of faults share: small runs, what happens before one call, and what the command said of it."""

from pathlib import Path

from labelmend.training import session
from labelmend.training.checkpoint import load_newest
from labelmend.training.prepare import prepare

EPOCHS, LIMIT, STEPS = 4, 96, 3
SETTINGS = {"track_every": "1", "noise_model": "bmm"}
PAIRS = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
SMALL = ("--net", "mlp", "--epochs", EPOCHS, "--limit", LIMIT, *PAIRS)


def train(config, **watched):
    return session.train(prepare(config), **watched)


def wrapped(monkeypatch, owner, name, action, *, call=1):
    """Do something before one call of a function, counted from 1."""
    original, calls = getattr(owner, name), []

    def first(*given, **named):
        calls.append(1)
        if len(calls) == call:
            action()
        return original(*given, **named)

    monkeypatch.setattr(owner, name, first)


def sentence(ended):
    """The one line that the command said about what went wrong."""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("labelmend: ")
    return line


def newest(folder):
    """Name of the newest checkpoint, which is whole, and none of them is damaged."""
    found, warnings = load_newest(Path(folder) / "checkpoints")
    assert warnings == []
    return None if found is None else found.name
