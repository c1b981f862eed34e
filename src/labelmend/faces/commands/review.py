"""The command `review`: a person decides in a browser which labels are wrong."""

import getpass
import os
import sys
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import InputError
from ..console import err, out
from ..files import damage_named
from ..options import Root, Run

if TYPE_CHECKING:
    import uvicorn

    from ...review.security import Gate

PASSWORD = "LABELMEND_REVIEW_PASSWORD"
SWITCH = 0.0005
"""Seconds after which threads take turns: what is computed beside answers must not hold them up."""
OPENER = "review.html"
"""A file in the run directory that sends the browser to the address; other users of this machine cannot read it."""


def review(
    run: Run,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port of the page; by default any that is free.")
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; beyond this machine a password is needed.")
    ] = "127.0.0.1",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address and open nothing.")] = False,
    reviewer: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who decides; by default your user name.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="SOURCE", help="The data set, if it is not any more where the run found it.")
    ] = None,
    root: Root = None,
    password: Annotated[
        bool, typer.Option("--password", help=f"Ask for a password to be set, unless {PASSWORD} has one.")
    ] = False,
) -> None:
    """Look at the suspects of a run in your browser and decide, one key an answer.

    Every answer is in RUN/decisions.csv before the page shows the next sample; 'labels', 'report' and 'apply' use it.
    Several people can review at once. Ctrl-C ends the page; start it again to go on.
    Needs the extra 'review' to be installed.

    Try: labelmend review runs/mine
    """
    from ...run.directory import RunDirectory

    directory = RunDirectory.existing(run)
    secret = _password(host, wanted=password)
    try:
        from ...review.security import Gate
        from ...review.server import Review, build_server, listen
    except ModuleNotFoundError as error:
        raise InputError(f"labelmend review needs {error.name}: pip install 'labelmend[review]'") from None
    with damage_named(run):
        found = Review(directory, reviewer=reviewer or _user(), source=source, root=root)
    listener = listen(host, port)
    gate = Gate(listener.getsockname()[1], host=host, password=secret)
    server = build_server(found, gate)
    sys.setswitchinterval(SWITCH)
    _say_where(directory.path, gate)
    with _opened(directory.path, gate, server, wanted=not no_browser), suppress(KeyboardInterrupt):
        server.run(sockets=[listener])
    out.print(
        f"{found.answers.heard:,} answers in {directory.decisions}", highlight=False, markup=False, soft_wrap=True
    )


def _password(host: str, *, wanted: bool) -> str | None:
    """The password of the page; one is demanded where others than this machine can reach it."""
    from ...review.security import SHORTEST_PASSWORD, is_loopback

    given = os.environ.get(PASSWORD)
    if given is None and wanted:
        given = typer.prompt("Password of the page", hide_input=True, confirmation_prompt=True)
    if given is None and not is_loopback(host):
        raise InputError(
            f"--host {host} lets other machines in, so the page needs a password: set {PASSWORD} or give --password; "
            "an ssh tunnel to 127.0.0.1 is safer still"
        )
    if given is not None and len(given) < SHORTEST_PASSWORD:
        raise InputError(f"the password has {len(given)} letters; at least {SHORTEST_PASSWORD} are needed")
    return given


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without user names
        return "reviewer"


def _say_where(run: Path, gate: "Gate") -> None:
    from ...review.security import is_loopback

    out.print(f"review of {run} at", highlight=False, markup=False, soft_wrap=True)
    out.print(f"  {gate.address()}", highlight=False, markup=False, soft_wrap=True)
    out.print("Ctrl-C ends it", highlight=False)
    if not is_loopback(gate.host):
        said = "the network can read what the page shows, and its password: use it in networks that you trust only"
        err.print(said, highlight=False)
    sys.stdout.flush()


@contextmanager
def _opened(run: Path, gate: "Gate", server: "uvicorn.Server", *, wanted: bool) -> Iterator[None]:
    """Open the browser once the server runs, by a file: on a command line every user of the machine sees the token."""
    screen = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    opener = run.resolve() / OPENER
    if not wanted or not screen:
        yield
        return
    page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={gate.address()}">'
    opener.unlink(missing_ok=True)
    with os.fdopen(os.open(opener, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(page)

    def open_page() -> None:
        while not server.started:
            time.sleep(0.02)
        webbrowser.open(opener.as_uri())

    threading.Thread(target=open_page, daemon=True).start()
    try:
        yield
    finally:
        opener.unlink(missing_ok=True)
