"""What the tests share: a tiny problem, and one thread, because other processes may have the other cores."""

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from labelmend.__main__ import main
from labelmend.run.directory import RunDirectory
from labelmend.training.config import TrainConfig

pytest.register_assert_rewrite("hostile", "faults")

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("LABELMEND_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    import scipy.linalg  # noqa: F401  (what is loaded later would not be limited)
    import sklearn.ensemble  # noqa: F401
    from threadpoolctl import threadpool_limits

    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    threadpool_limits(1)


@pytest.fixture(autouse=True, scope="session")
def few_resamples() -> Iterator[None]:
    """Intervals of runs in this process rest on few resamples, which take half the time of a short run."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("labelmend.detect.dynamics.RESAMPLED", 5)
        yield


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def shown(record_property: Callable[[str, object], None]) -> Callable[[str, str], None]:
    """Say what a proof did and what was seen; `make proofs` makes a table of it (benchmarks/proofs.py)."""

    def show(what: str, seen: str) -> None:
        record_property("what", what)
        record_property("seen", seen)
        print(f"\n{what}: {seen}")

    return show


class StopAfter:
    """SIGTERM when the run has looked for one so many times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def __call__(self) -> int | None:
        self.times -= 1
        return signal.SIGTERM if self.times < 0 else None

    heeded = staticmethod(contextlib.nullcontext)


@pytest.fixture
def after() -> type[StopAfter]:
    """Signals for a run in this process."""
    return StopAfter


@pytest.fixture
def train_digits(tmp_path: Path) -> Callable[..., RunDirectory]:
    """Train on a few digits and give the run directory."""
    from labelmend.training.prepare import prepare
    from labelmend.training.session import train

    def run(name: str = "run", *, afterwards: Any = lambda run: None, **changes: Any) -> RunDirectory:
        options = {"noise": "symmetric:0.5", "epochs": 2, "limit": 100, "threads": 1} | changes
        config = TrainConfig(source="digits", out=str(tmp_path / name), **options)
        return train(prepare(config), afterwards=afterwards)[0]

    return run


@pytest.fixture
def labelmend(monkeypatch, capsys):
    """Run the command in this process; gives its exit code and what it printed."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["labelmend", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        return SimpleNamespace(returncode=ended.value.code, stdout=shown.out, stderr=shown.err)

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def tiny_timm(monkeypatch):
    """A stand-in for timm with one model, `tiny`: six features of pictures of 32 px."""
    from labelmend.nets.backbones import find_backbone

    def body(pretrained=True):
        net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 6, 5, stride=4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
        )
        rng = torch.Generator().manual_seed(5)
        if pretrained:
            with torch.no_grad():
                for weight in net.parameters():
                    weight.copy_(torch.randn(weight.shape, generator=rng) / 8)
        return net

    def create_model(name, *, pretrained, num_classes):
        if name != "tiny" or num_classes != 0:
            raise RuntimeError(f"Unknown model ({name})")
        return body(pretrained)

    def config(model):
        return {"input_size": (3, 32, 32), "mean": (0.5,) * 3, "std": (0.25,) * 3}

    library = SimpleNamespace(
        create_model=create_model, data=SimpleNamespace(resolve_model_data_config=config), body=body
    )
    monkeypatch.setitem(sys.modules, "timm", library)
    find_backbone.cache_clear()
    yield library
    find_backbone.cache_clear()


@pytest.fixture
def tiny_sentences(monkeypatch):
    """A stand-in for sentence-transformers with one model, `tiny`, or a folder: counts of some letters, scaled."""
    from labelmend.nets.sentences import LIBRARY, find_sentence_encoder

    library = SimpleNamespace(asked=[], scale=1.0)

    class Letters(torch.nn.Module):
        def __init__(self, name, **options):
            super().__init__()
            library.asked.append(options)
            if name != "tiny" and not Path(name).is_dir():
                raise OSError(f"no model {name}")
            self.scale = torch.nn.Parameter(torch.tensor(library.scale))

        def encode(self, texts, *, batch_size, convert_to_tensor, show_progress_bar):
            counts = [[text.count(letter) for letter in "aeot"] for text in texts]
            return torch.tensor(counts, dtype=torch.float32) * self.scale

    library.SentenceTransformer = Letters
    monkeypatch.setitem(sys.modules, LIBRARY, library)
    find_sentence_encoder.cache_clear()
    yield library
    find_sentence_encoder.cache_clear()


@pytest.fixture(scope="session")
def browser():
    """A real browser, where there is one."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip(
            "no Chromium here: `make browser` installs Debian's where root and apt allow it, or set LABELMEND_CHROMIUM"
        )
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def visit(browser):
    """Open a file in the browser; afterwards nothing may have been logged, fetched or popped up."""
    pages, trouble, requests = [], [], []

    def opened(path, **options):
        page = browser.new_page(**{"viewport": {"width": 1280, "height": 900}} | options)
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: (trouble.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.resolve().as_uri())
        pages.append(page)
        return page

    yield opened
    pwned = [page.evaluate("typeof window.__pwned") for page in pages]
    for page in pages:
        page.close()
    assert trouble == []
    assert set(pwned) <= {"undefined"}
    assert [url for url in requests if not url.startswith(("file://", "data:"))] == []
