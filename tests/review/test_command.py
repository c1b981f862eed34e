"""The command `labelmend review`: its address, how it opens the browser, and how it ends."""

import os
import re
import socket
import stat
import webbrowser
from types import SimpleNamespace
from urllib.parse import unquote, urlparse

import pytest
from processes import Client, Command
from review_runs import ids_run

from labelmend.faces.commands import review as module
from labelmend.review.security import Gate


def test_the_command_prints_its_address_and_ends_with_ctrl_c(tmp_path):
    run = ids_run(tmp_path / "run")
    command = Command(run.path, "--reviewer", "carol")
    client = Client(command, "carol")
    assert client.get("/api/start")["reviewer"] == "carol"
    client.decide(0, "keep")
    client.connection.close()
    code, said = command.stop()
    assert code == 0
    assert "1 answers in" in said
    assert "Traceback" not in said
    assert not (run.path / module.OPENER).exists()


def test_the_browser_is_opened_by_a_file_that_others_cannot_read(tmp_path, monkeypatch):
    opened = []

    def look(address):
        path = unquote(urlparse(address).path)
        with open(path) as file:
            opened.append((address, stat.S_IMODE(os.stat(path).st_mode), file.read()))

    monkeypatch.setattr(webbrowser, "open", look)
    monkeypatch.setenv("DISPLAY", ":0")
    gate = Gate(1234)
    (tmp_path / module.OPENER).write_text("left over")
    with module._opened(tmp_path, gate, SimpleNamespace(started=True), wanted=True):
        while not opened:
            pass
    address, mode, content = opened[0]
    assert gate.token not in address
    assert mode == 0o600
    assert f"url={gate.address()}" in content
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("screen", [True, False])
def test_nothing_is_opened_if_nobody_asks_or_there_is_no_screen(tmp_path, monkeypatch, screen):
    monkeypatch.setattr(webbrowser, "open", lambda address: pytest.fail("opened"))
    monkeypatch.setattr(module.sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.setenv(name, ":0") if screen else monkeypatch.delenv(name, raising=False)
    with module._opened(tmp_path, Gate(1234), SimpleNamespace(started=True), wanted=not screen):
        assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_reviewed_is_said_in_a_sentence(labelmend, tmp_path):
    ended = labelmend("review", tmp_path / "nothing")
    assert ended.returncode == 2
    assert "is not a run directory" in ended.stderr
    run = ids_run(tmp_path / "run")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = labelmend("review", run.path, "--port", taken.getsockname()[1], "--no-browser")
    assert ended.returncode == 2
    assert re.search(r"cannot listen at 127\.0\.0\.1, port \d+: Address already in use", " ".join(ended.stderr.split()))
    run.labels_parquet.write_bytes(b"nothing")
    assert labelmend("review", run.path, "--no-browser").returncode == 2
