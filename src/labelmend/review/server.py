"""The review server: one run directory, one page, and answers that are on the disk before they are acknowledged."""

import asyncio
import json
import secrets
import socket
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from typing import Any, TypeVar

import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..detect.table import VERDICTS
from ..errors import InputError
from ..run.directory import RunDirectory
from .answers import MOST_AT_ONCE, Answer, Answers
from .asked import json_object, part, reviewer_name, share, whole_number
from .estimate import Estimate
from .labels import read_judged
from .protocol import PatientProtocol
from .queue import MOST_WITHOUT, ORDERS, SHOWN, Queue, Wish, steady_clock
from .samples import OPENING, SampleViews
from .security import PICTURE_POLICY, App, Gate, Guard

FILES = {
    "page.html": "text/html",
    "closed.html": "text/html",
    "page.css": "text/css",
    "page.js": "text/javascript",
    "parts.js": "text/javascript",
    "numbers.js": "text/javascript",
    "outbox.js": "text/javascript",
    "one.js": "text/javascript",
    "grid.js": "text/javascript",
    "classes.js": "text/javascript",
    "login.js": "text/javascript",
    "icon.png": "image/png",
}
"""All files that are ever served; others are not looked for."""
MOST_PAIRS = 200
MOST_NEXT = 60
MOST_CONNECTIONS = 200
MOST_ORDERS = 100
KEEP_ALIVE = 60
AT_A_TIME = 2
"""Pictures that are decoded at once: each may take a hundred megabytes."""
OPENING_SECONDS = 60.0
LONGEST_NAME = 64
Result = TypeVar("Result")


class Review:
    """The review of one run: its labels, answers, queue, estimate and views, and the requests of pages about them."""

    def __init__(self, run: RunDirectory, *, reviewer: str, source: str | None = None, root: str | None = None) -> None:
        self.run = run
        self.reviewer = reviewer
        self.labels = read_judged(run)
        self.answers = Answers(run, self.labels)
        self.estimate = Estimate(self.labels, self.answers, steady_clock)
        self.queue = Queue(self.labels, self.answers, self.estimate.teaching, steady_clock)
        self.views = SampleViews(run, self.labels, source=source, root=root)
        self._trouble = ""
        self._undone = dict[str, list[int]]()
        self._undoing = asyncio.Lock()
        self._decoding = anyio.CapacityLimiter(AT_A_TIME)

    def routes(self) -> list[Route]:
        """What can be asked; only requests that POST change anything."""
        posts = {"queue": self.next, "decide": self.decide, "undo": self.undo}
        return [
            Route("/", lambda _: _file("page.html")),
            *(Route(f"/{name}", partial(_named, name)) for name in FILES if not name.endswith(".html")),
            Route("/api/start", self.start),
            Route("/api/state", self.state),
            Route("/api/sample/{row:int}", self.sample),
            Route("/picture/{row:int}/{size}", self.picture),
            *(Route(f"/api/{name}", function, methods=["POST"]) for name, function in posts.items()),
        ]

    async def start(self, request: Request) -> Response:
        """What does not change while the server runs; the page is there now, so the data set is opened."""
        self.views.open_beside()
        labels = self.labels
        return _json(
            {
                "run": self.run.path.resolve().name,
                "classes": list(labels.class_names),
                "verdicts": VERDICTS,
                "pairs": labels.pairs(MOST_PAIRS),
                "orders": ORDERS,
                "shown": SHOWN,
                "reviewer": self.reviewer,
                "flagged": bool(labels.flagged.any()),
            }
        )

    async def state(self, request: Request) -> Response:
        """How far the review is, and what is worth knowing; also what others answered meanwhile."""
        wish = share(request.query_params.get("wish", "0.01"))
        reviewer = reviewer_name(request.query_params.get("reviewer", self.reviewer))

        def known() -> dict[str, Any]:
            self._refresh()
            return self._state(reviewer, wish)

        return _json(await _in_thread(known))

    async def next(self, request: Request) -> Response:
        """The samples that come next for a page, whole or as cards."""
        asked = json_object(await request.body())
        wish = Wish.read(part(asked, "wish", dict), len(self.labels.class_names))
        count = whole_number(asked, "count", 1, MOST_NEXT)
        without = {row for row in part(asked, "without", list)[:MOST_WITHOUT] if type(row) is int}
        reviewer, page = reviewer_name(asked.get("reviewer")), str(asked.get("page"))[:LONGEST_NAME]
        find = partial(self.queue.next, wish, count=count, reviewer=reviewer, page=page, without=without)
        seen = self.views.card if asked.get("cards") else self.views.view

        def found() -> dict[str, Any]:
            rows, left = find()
            return {"samples": [seen(row) | {"decided": self._decided(row)} for row in rows], "left": left}

        return _json(await _in_thread(found))

    async def sample(self, request: Request) -> Response:
        """One sample."""
        row = self._row(request)
        return _json(await _in_thread(partial(self._seen, row)))

    async def picture(self, request: Request) -> Response:
        """A picture that was made anew from the original, in its own proportions; never the file itself."""
        row, large = self._row(request), request.path_params["size"] == "large"
        if large or not self.views.has_kept_picture(row):
            until = steady_clock() + OPENING_SECONDS
            while self.views.source == OPENING and steady_clock() < until:
                await asyncio.sleep(0.05)
        content = await _in_thread(lambda: self.views.picture(row, large=large), self._decoding)
        if content is None:
            return _json({"error": "there is no picture of this sample"}, 404)
        kind = "image/png" if content.startswith(b"\x89PNG") else "image/jpeg"
        return Response(content, media_type=kind, headers={"content-security-policy": PICTURE_POLICY})

    async def decide(self, request: Request) -> Response:
        """Write an answer for one or more samples; the reply comes when it is on the disk."""
        asked = json_object(await request.body())
        answers, reviewer = self._answers(part(asked, "answers", list)), reviewer_name(asked.get("reviewer"))
        wish = share(asked.get("wish", 0.01))

        def done() -> dict[str, Any]:
            self.answers.decide(answers, reviewer)
            self.estimate.heard()
            return {"decided": {row: self._decided(row) for row, *_ in answers}, "state": self._state(reviewer, wish)}

        return _json(await _in_thread(done))

    async def undo(self, request: Request) -> Response:
        """Take back the last answer of a reviewer, by another line; an order that is repeated is done once."""
        asked = json_object(await request.body())
        reviewer, wish = reviewer_name(asked.get("reviewer")), share(asked.get("wish", 0.01))
        order = str(asked.get("order") or secrets.token_hex())[:LONGEST_NAME]

        def done() -> dict[str, Any]:
            if order not in self._undone:
                self._undone[order] = self.answers.undo(reviewer)
            rows = self._undone[order]
            if len(self._undone) > MOST_ORDERS:
                del self._undone[next(iter(self._undone))]
            self.estimate.heard()
            samples = [self._seen(row) for row in rows[:1]]
            return {"rows": rows, "samples": samples, "state": self._state(reviewer, wish)}

        async with self._undoing:
            return _json(await _in_thread(done))

    def _answers(self, asked: list[Any]) -> list[Answer]:
        """Answers as JSON has them: row, decision, and position of the class or null."""
        if not 0 < len(asked) <= MOST_AT_ONCE:
            raise InputError(f"answers must be 1 to {MOST_AT_ONCE}")
        for each in asked:
            if not isinstance(each, list) or len(each) != 3:
                raise InputError("an answer is a row, a decision, and a class or null")
            row, word, label = each
            if type(row) is not int or not 0 <= row < len(self.labels):
                raise InputError(f"a row must be a whole number below {len(self.labels):,}")
            if not isinstance(word, str) or (label is not None and type(label) is not int):
                raise InputError("a decision is a word, and a class its position")
        return [(row, word, label) for row, word, label in asked]

    def _refresh(self) -> None:
        try:
            self.answers.refresh()
            self._trouble = ""
        except (InputError, OSError) as error:
            self._trouble = f"decisions.csv cannot be read: {error}"
        self.estimate.heard()

    def _state(self, reviewer: str, wish: float) -> dict[str, Any]:
        notes = [*self.views.notes, *([self._trouble] if self._trouble else [])]
        return {
            **self.answers.progress(reviewer),
            "estimate": self.estimate.told(wish),
            "source": self.views.source,
            "notes": notes,
        }

    def _seen(self, row: int) -> dict[str, Any]:
        return self.views.view(row) | {"decided": self._decided(row)}

    def _decided(self, row: int) -> dict[str, Any] | None:
        """What holds of a sample, with everybody's opinion."""
        holds = self.answers.standing(row)
        if holds is None:
            return None
        position = self.labels.class_of
        said = [(each.reviewer, each.decision, position.get(each.label), each.time) for each in holds.opinions]
        return {
            "decision": holds.decision,
            "label": position.get(holds.label),
            "reviewer": holds.reviewer,
            "conflict": holds.conflict,
            "opinions": said,
        }

    def _row(self, request: Request) -> int:
        row = int(request.path_params["row"])
        if row >= len(self.labels):
            raise InputError(f"there are {len(self.labels):,} samples")
        return row


def build_app(review: Review, gate: Gate) -> App:
    """The server of a review behind its gate."""

    async def login(request: Request) -> Response:
        given = json_object(await request.body()).get("password")
        if not isinstance(given, str) or not await gate.takes_password(given):
            return _json({"error": "this is not the password"}, 401)
        return _json({"in": True}) if not gate.has_password else _let_in(gate)

    routes = [*review.routes(), Route("/api/login", login, methods=["POST"])]
    handlers = {InputError: _bad_input, OSError: _not_written}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Guard(app, gate, closed=_closed(gate))


def _let_in(gate: Gate) -> Response:
    return JSONResponse({"in": True}, headers={"set-cookie": gate.set_cookie()})


def _closed(gate: Gate) -> App:
    """What somebody sees who is not in: a page that says how to get in, and nothing else."""
    page = _file("closed.html").body
    page = bytes(page) if gate.has_password else bytes(page).replace(b'<form id="login">', b'<form id="login" hidden>')
    return Response(page, 401, media_type="text/html")


def listen(host: str, port: int | None) -> socket.socket:
    """A socket at this address; without a port, at any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # with the protocol named, asyncio sends at once; else the end of an answer waits 40 ms for an acknowledgement
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port or 0))
        listener.listen()  # who connects before the server runs waits a moment
    except (OSError, OverflowError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"cannot listen at {host}, port {port or 'any'}: {reason}; choose another --port") from None
    listener.set_inheritable(False)
    return listener


def build_server(review: Review, gate: Gate) -> uvicorn.Server:
    """The web server of a review, to be run on a socket; the data set is opened beside once it runs."""
    config = uvicorn.Config(
        build_app(review, gate),
        http=PatientProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


async def _in_thread(work: Callable[[], Result], limiter: anyio.CapacityLimiter | None = None) -> Result:
    return await anyio.to_thread.run_sync(work, limiter=limiter)


def _file(name: str) -> Response:
    return Response(files(__package__).joinpath(name).read_bytes(), media_type=f"{FILES[name]}")


def _named(name: str, request: Request) -> Response:
    return _file(name)


def _json(value: Any, status: int = 200) -> Response:
    """JSON in plain ASCII, so that ids which are no valid Unicode come through."""
    return Response(json.dumps(value, allow_nan=False).encode(), status, media_type="application/json")


async def _bad_input(request: Request, error: Exception) -> Response:
    return _json({"error": str(error)}, 400)


async def _not_written(request: Request, error: Exception) -> Response:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return _json({"error": f"not saved: {reason}"}, 507)
