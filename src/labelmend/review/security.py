"""Who may talk to the review server, and how: a token, names it answers to, where requests come from, and limits.

Every request passes `Guard` before anything else sees it. What is refused: other names in Host (421, against DNS
rebinding), other origins and sites (403), no or a wrong token (401), bodies that are no JSON (415) or too large (413).
"""

import asyncio
import ipaddress
import json
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

LARGEST_BODY = 64 << 10
SHORTEST_PASSWORD = 8
GUESS_PAUSE = 1.0
"""Seconds that a wrong password costs; guesses wait for each other."""
MOST_GUESSING = 5
ANY_ADDRESS = ("0.0.0.0", "::")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
PICTURE_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""On every answer, unless it has its own."""
LOGIN = "/api/login"
OPEN_TO_ALL = ("/icon.png", "/login.js", "/page.css", LOGIN)
"""What somebody needs who is not in yet; nothing of it tells anything about the run."""


class RefusedError(Exception):
    """A request that is refused, with the status and one sentence."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class Gate:
    """The secrets of one server: the token of its address, an optional password, and the key in the cookie."""

    def __init__(self, port: int, *, host: str = "127.0.0.1", password: str | None = None) -> None:
        self.port = port
        self.host = host
        self.token = secrets.token_urlsafe(32)
        self.cookie = f"labelmend-review-{port}"
        self.has_password = password is not None
        self._password = password or ""
        self._key = secrets.token_urlsafe(32)
        self._guessing = 0
        self._guess = asyncio.Lock()
        self._names = _own_names(host)

    def address(self, *, token: bool = True) -> str:
        """Where the page is; with the token, whoever has it is in."""
        name = socket.gethostname() if self.host in ANY_ADDRESS else self.host
        shown = f"[{name}]" if ":" in name else name
        return f"http://{shown}:{self.port}/" + (f"?token={self.token}" if token else "")

    def answers_to(self, host: str) -> bool:
        """Whether this Host header names this server; other names would be those of a page that points here."""
        name = _name(host).lower()
        return name in self._names or (self.host in ANY_ADDRESS and _is_address(name))

    def knows(self, headers: MutableMapping[str, str]) -> bool:
        """Whether the cookie of this server is among the headers."""
        pairs = (pair.strip().partition("=") for pair in headers.get("cookie", "").split(";"))
        return any(name == self.cookie and _same(value, self._key) for name, _, value in pairs)

    def takes(self, query: bytes) -> bool:
        """Whether the query of an address has the token."""
        given = parse_qs(query.decode("latin-1"), max_num_fields=20).get("token", [""])
        return _same(given[0], self.token)

    async def takes_password(self, password: str) -> bool:
        """Whether this is the password; wrong ones wait, and only a few at a time."""
        if not self.has_password or self._guessing >= MOST_GUESSING:
            return False
        self._guessing += 1
        try:
            async with self._guess:
                if _same(password, self._password):
                    return True
                await asyncio.sleep(GUESS_PAUSE)
                return False
        finally:
            self._guessing -= 1

    def set_cookie(self) -> str:
        """The header that lets a browser in: scripts cannot read it, and other sites cannot send it."""
        return f"{self.cookie}={self._key}; HttpOnly; SameSite=Strict; Path=/"


class Guard:
    """The server behind its gate."""

    def __init__(self, app: App, gate: Gate, *, closed: App) -> None:
        self.app = app
        self.gate = gate
        self.closed = closed

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on with a limited body; answers get the headers that keep pages apart."""
        if scope["type"] != "http":
            return
        try:
            headers = _headers(scope["headers"])
            welcome = self._checked(scope, headers)
            body = await _read_body(receive) if scope["method"] == "POST" else b""
        except RefusedError as error:
            await _refuse(error, _with_headers(send))
            return
        app = self.closed if welcome is None else self.app
        cookie = self.gate.set_cookie() if welcome == "token" else None
        await app(scope, _replay(body), _with_headers(send, cookie))

    def _checked(self, scope: Message, headers: MutableMapping[str, str]) -> str | None:
        """How somebody is let in: by the `token`, or as `known`; None shows a closed page, and all else is refused."""
        method, path = scope["method"], scope["path"]
        if not self.gate.answers_to(headers.get("host", "")):
            raise RefusedError(421, "this server does not go by that name")
        if method not in ("GET", "HEAD", "POST"):
            raise RefusedError(405, f"{method} is not used here")
        by_token = method == "GET" and path == "/" and self.gate.takes(scope["query_string"])
        _check_origin(method, headers, followed=by_token)
        if method == "POST":
            _check_body(headers)
        if by_token:
            return "token"
        if path in OPEN_TO_ALL or self.gate.knows(headers):
            return "known"
        if path == "/" and method == "GET":
            return None
        raise RefusedError(401, "open the address that labelmend review printed, which has a token")


def _check_origin(method: str, headers: MutableMapping[str, str], *, followed: bool) -> None:
    """Refuse requests that another page made, also one of another port; a link with the token may come from anywhere.

    Browsers say where a request comes from; a POST that does not say is not from our page.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin is not None and origin != f"http://{headers['host']}":
        raise RefusedError(403, "this request comes from another origin")
    opened = followed and headers.get("sec-fetch-mode", "navigate") == "navigate"
    if site not in (None, "same-origin", "none") and not opened:
        raise RefusedError(403, "this request comes from another site")
    if method == "POST" and origin is None and site is None:
        raise RefusedError(403, "this request does not say where it comes from")


def _check_body(headers: MutableMapping[str, str]) -> None:
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RefusedError(415, "only application/json is taken")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 12 or int(length) > LARGEST_BODY:
        raise RefusedError(413, f"at most {LARGEST_BODY:,} bytes are taken")


async def _read_body(receive: Receive) -> bytes:
    """The whole body, which the protocol gives a client a few seconds to send."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise RefusedError(400, "the request ended before its body did")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LARGEST_BODY:
            raise RefusedError(413, f"at most {LARGEST_BODY:,} bytes are taken")
        if not message.get("more_body"):
            return b"".join(parts)


def _replay(body: bytes) -> Receive:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    return receive


def _with_headers(send: Send, cookie: str | None = None) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower() for name, _ in message.get("headers", ())}
            more = [(n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in own]
            if cookie is not None:
                more.append((b"set-cookie", cookie.encode()))
            message["headers"] = [*message.get("headers", ()), *more]
        await send(message)

    return sending


async def _refuse(error: RefusedError, send: Send) -> None:
    body = json.dumps({"error": error.why}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    # what is left of a refused body is not read: the connection ends with this answer
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name; one that must be single and is not is refused, since two readers could differ about it."""
    found = dict[str, str]()
    for name, value in raw:
        key = name.decode("latin-1").lower()
        if key in found and key in ("host", "origin", "content-type", "content-length", "sec-fetch-site"):
            raise RefusedError(400, f"the header {key} comes twice")
        found[key] = f"{found[key]}; {value.decode('latin-1')}" if key in found else value.decode("latin-1")
    return found


def _name(host: str) -> str:
    """The name in a Host header, without the port: a tunnel may end at another one."""
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _own_names(host: str) -> set[str]:
    if is_loopback(host):
        return {"127.0.0.1", "localhost", "::1", host.lower()}
    names = {host.lower()}
    if host in ANY_ADDRESS:
        names |= {"localhost", socket.gethostname().lower(), socket.getfqdn().lower()}
    return names


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server at this address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return host.lower() == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _same(given: str, expected: str) -> bool:
    """Compared in constant time; nothing is equal to an empty secret."""
    return bool(expected) and secrets.compare_digest(given.encode(errors="replace"), expected.encode())
