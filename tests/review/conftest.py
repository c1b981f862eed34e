"""A review server in this process, and a client that talks to it over a real socket."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from review_runs import ids_run, pictures_run, table_run

from labelmend.review.security import Gate
from labelmend.review.server import Review, build_server, listen
from labelmend.run.directory import RunDirectory


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


@dataclass
class Served:
    """A running server."""

    review: Review
    gate: Gate
    cookie: str = ""
    trouble: list[Exception] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.gate.port}"

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        """One request with just these headers; underscores in their names stand for hyphens."""
        connection = http.client.HTTPConnection("127.0.0.1", self.gate.port, timeout=30)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, named)
            reply = connection.getresponse()
            return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        """As the page asks."""
        return self.ask("GET", path, **{"Cookie": self.cookie, "Sec-Fetch-Site": "same-origin"} | headers)

    def post(self, path: str, value: Any, **headers: str) -> Reply:
        """As the page orders."""
        usual = {"Cookie": self.cookie, "Origin": self.origin, "Content-Type": "application/json"}
        return self.ask("POST", path, json.dumps(value).encode(), **usual | headers)

    def decide(self, row: int, word: str, label: int | None = None, reviewer: str = "ann") -> Reply:
        return self.post("/api/decide", {"answers": [[row, word, label]], "reviewer": reviewer})

    def next(self, count: int = 1, reviewer: str = "ann", page: str = "one", **wish: Any) -> Any:
        asked = {"wish": wish, "count": count, "reviewer": reviewer, "page": page}
        return self.post("/api/queue", asked).json

    def opened(self) -> None:
        """Wait until the data set is open, or known to be missing."""
        self.review.views.open_beside()
        until = time.monotonic() + 30
        while self.review.views.source == "opening" and time.monotonic() < until:
            time.sleep(0.01)


@contextmanager
def servers() -> Iterator[Callable[..., Served]]:
    """Start the server of a run, logged in; all end together."""
    running = []

    def start(run: RunDirectory, *, password: str | None = None, **options: Any) -> Served:
        listener = listen("127.0.0.1", None)
        gate = Gate(listener.getsockname()[1], password=password)
        review = Review(run, reviewer="ann", **options)
        server = build_server(review, gate)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        running.append((server, thread))
        while not server.started:
            time.sleep(0.005)
        served = Served(review, gate)
        reply = served.ask("GET", f"/?token={gate.token}")
        served.cookie = reply.headers["set-cookie"].partition(";")[0]
        return served

    yield start
    for server, _ in running:
        server.should_exit = True
    for _, thread in running:
        thread.join(10)


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """A server that ends with the test."""
    with servers() as start:
        yield start


@pytest.fixture(scope="module")
def serve_long() -> Iterator[Callable[..., Served]]:
    """A server for all tests of a module."""
    with servers() as start:
        yield start


@pytest.fixture
def ids_only(tmp_path: Path) -> RunDirectory:
    return ids_run(tmp_path / "run")


@pytest.fixture
def pictures(tmp_path: Path) -> RunDirectory:
    return pictures_run(tmp_path)


@pytest.fixture
def table(tmp_path: Path) -> RunDirectory:
    return table_run(tmp_path)
