import pytest
from faults import EPOCHS, LIMIT, SETTINGS
from hostile import World, harmless, in_child, png
from runs import Run

from labelmend.training.config import TrainConfig
from labelmend.training.prepare import prepare
from labelmend.training.session import train


@pytest.fixture
def run(tmp_path):
    return lambda name, *words: Run(tmp_path / name, *words)


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A harmless image folder, a finished run on it, and the corrected set of that run."""
    from labelmend.fix.plan import plan

    place = tmp_path_factory.mktemp("finished")
    for number in range(40):
        path = place / "images" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(seed=number))
    train(prepare(TrainConfig(source=str(place / "images"), out=str(place / "run"), epochs=1, threads=1)))
    plan(place / "run").write(place / "corrected")
    return place


@pytest.fixture
def world(tmp_path, finished):
    (tmp_path / "case").mkdir()
    return World(tmp_path / "case", tmp_path / "canary", finished)


@pytest.fixture(scope="session")
def usual(finished, tmp_path_factory):
    """Peak memory of the harmless command of a kind, measured once."""
    known: dict[str, int] = {}

    def measure(kind: str) -> int:
        if kind not in known:
            here = tmp_path_factory.mktemp("harmless")
            ended = in_child(harmless(kind, World(here, here / "canary", finished)), here)
            assert ended.code == 0, ended.shown
            known[kind] = ended.peak
        return known[kind]

    return measure


@pytest.fixture
def without_looks(monkeypatch):
    """Nobody looks at these runs, and a report and a narrow interval take longer than they do."""
    monkeypatch.setattr("labelmend.faces.terminal.build_report", lambda run: None)
    monkeypatch.setattr("labelmend.detect.dynamics.RESAMPLED", 2)


@pytest.fixture
def config(tmp_path):
    """A run of the same size as `run(name, *SMALL)`."""

    def of(name, **changes):
        options = {"noise": "symmetric:0.5", "net": "mlp", "epochs": EPOCHS, "limit": LIMIT, "threads": 1}
        options |= {"settings": SETTINGS} | changes
        return TrainConfig(source="digits", out=str(tmp_path / name), **options)

    return of
