"""Attacks on the review server: strangers, other sites, other names, paths, markup, large and slow requests."""

import contextlib
import io
import json
import shutil
import socket
import time

import pytest
from PIL import Image
from review_runs import SHAPES, ids_run, pictures_run, shape

from labelmend.faces.commands.review import PASSWORD
from labelmend.review import protocol, security
from labelmend.review.security import LARGEST_BODY, Gate, is_loopback

ASKED = ["/", "/page.js", "/api/start", "/api/state", "/api/sample/0", "/picture/0/large", "/picture/0/small"]
ORDERED = {
    "/api/queue": {"wish": {}, "count": 1, "reviewer": "ann", "page": "p"},
    "/api/decide": {"answers": [[0, "keep", None]], "reviewer": "ann"},
    "/api/undo": {"reviewer": "ann"},
}
TRAVERSALS = [
    "/../../../../etc/passwd",
    "/..%2f..%2f..%2f..%2fetc%2fpasswd",
    "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "/%252e%252e%252fetc%252fpasswd",
    "/..%5c..%5c..%5cetc%5cpasswd",
    "/....//....//etc/passwd",
    "/..;/..;/etc/passwd",
    "/.%00./etc/passwd",
    "/%c0%ae%c0%ae/%c0%ae%c0%ae/etc/passwd",
    "//etc/passwd",
    "/file:///etc/passwd",
    "/picture/../../../etc/passwd/large",
    "/picture/%2e%2e%2f%2e%2e%2fetc%2fpasswd/large",
    "/picture/0/../../../../etc/passwd",
    "/picture/-1/large",
    "/picture/0.5/large",
    "/picture/99999999999999999999/large",
    "/api/sample/../../run.json",
    "/page.html/../../run.json",
    "/run.json",
    "/decisions.csv",
    "/page.html",
    "/closed.html",
    "/server.py",
]
MARKUP = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(1)</script></svg>"


@pytest.fixture(scope="module")
def secret(tmp_path_factory):
    """A file beside the source that nobody may get."""
    return "the secret beside the source"


@pytest.fixture(scope="module")
def guarded(serve_long, tmp_path_factory, secret):
    """A server whose data set has files that are no pictures, and links that lead out of it."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "secret.txt").write_text(secret)
    (folder / "secret.png").write_bytes(shape(0, 77))
    run = pictures_run(folder)
    files = sorted((folder / "pictures").rglob("*.png"))
    files[0].write_bytes(MARKUP)
    files[1].write_bytes(b"<!doctype html><script>alert(1)</script>")
    files[2].unlink()
    files[2].symlink_to(folder / "secret.png")
    files[3].unlink()
    files[3].symlink_to("/etc/passwd")
    run.suspects.unlink()  # so that nothing is shown in place of the originals
    served = serve_long(run)
    served.opened()
    served.odd = [file.relative_to(folder / "pictures").as_posix() for file in files[:4]]
    return served


def untouched(served):
    return not served.review.run.decisions.exists()


@pytest.mark.parametrize("cookie", ["", "labelmend-review-{port}=wrong", "labelmend-review-{port}=", "token={token}"])
def test_without_the_cookie_nothing_is_told_or_changed(guarded, cookie):
    cookie = cookie.format(port=guarded.gate.port, token=guarded.gate.token)
    for path in ASKED:
        reply = guarded.get(path, Cookie=cookie)
        assert reply.status == 401, path
        assert b"circle" not in reply.content
        assert "set-cookie" not in reply.headers
    for path, value in ORDERED.items():
        assert guarded.post(path, value, Cookie=cookie).status == 401
    assert untouched(guarded)


@pytest.mark.parametrize(
    "token", ["", "wrong", "{token}x", "{short}", "%00", "{token}&token=wrong", "wrong&token={token}"]
)
def test_only_the_whole_token_lets_in(guarded, token):
    filled = token.format(token=guarded.gate.token, short=guarded.gate.token[:-1])
    reply = guarded.ask("GET", f"/?token={filled}")
    first = filled.partition("&")[0]
    assert reply.status == (200 if first == guarded.gate.token else 401)
    assert ("set-cookie" in reply.headers) == (first == guarded.gate.token)


def test_the_token_is_taken_by_the_page_alone(guarded):
    for path in ASKED[1:]:
        assert guarded.ask("GET", f"{path}?token={guarded.gate.token}").status == 401
    reply = guarded.ask(
        "POST", f"/?token={guarded.gate.token}", b"{}", Origin=guarded.origin, Content_Type="application/json"
    )
    assert reply.status == 401


def test_the_cookie_is_no_token_and_scripts_and_other_sites_cannot_use_it(guarded):
    reply = guarded.ask("GET", f"/?token={guarded.gate.token}")
    assert reply.headers["set-cookie"].endswith("; HttpOnly; SameSite=Strict; Path=/")
    assert guarded.gate.token not in reply.headers["set-cookie"]
    assert guarded.gate.token.encode() not in reply.content


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example:{port}",
        "localhost.evil:{port}",
        "[::2]:{port}",
        "0.0.0.0:{port}",
        "",
        "169.254.169.254",
    ],
)
def test_another_host_name_is_misdirected(guarded, host):
    host = host.format(port=guarded.gate.port)
    for path in [*ASKED, f"/?token={guarded.gate.token}"]:
        assert guarded.get(path, Host=host).status == 421
    assert guarded.post("/api/decide", ORDERED["/api/decide"], Host=host, Origin=f"http://{host}").status == 421
    assert untouched(guarded)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}", "LOCALHOST:{port}", "localhost:8080"]
)
def test_own_names_are_taken_also_at_the_end_of_a_tunnel(guarded, host):
    host = host.format(port=guarded.gate.port)
    assert guarded.get("/api/start", Host=host).status == 200
    assert guarded.post("/api/undo", {"reviewer": "ann"}, Host=host, Origin=f"http://{host}").status == 200


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1",
        "http://localhost:{port}",
        "http://127.0.0.1:1",
        "file://",
    ],
)
def test_another_origin_is_refused(guarded, origin):
    origin = origin.format(port=guarded.gate.port)
    for path, value in ORDERED.items():
        assert guarded.post(path, value, Origin=origin).status == 403
    assert guarded.get("/api/start", Origin=origin).status == 403
    assert untouched(guarded)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "unheard-of"])
def test_what_another_site_or_port_fetches_is_refused(guarded, site):
    for path in ASKED[1:]:
        assert guarded.get(path, **{"Sec-Fetch-Site": site}).status == 403
    for path, value in ORDERED.items():
        assert guarded.post(path, value, **{"Sec-Fetch-Site": site}).status == 403
    fetched = guarded.ask("GET", f"/?token={guarded.gate.token}", Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors")
    assert fetched.status == 403
    followed = guarded.ask("GET", f"/?token={guarded.gate.token}", Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate")
    assert followed.status == 200  # the link of a terminal that is a web page


def test_an_order_that_does_not_say_where_it_comes_from_is_refused(guarded):
    body = json.dumps(ORDERED["/api/decide"]).encode()
    assert (
        guarded.ask("POST", "/api/decide", body, Cookie=guarded.cookie, Content_Type="application/json").status == 403
    )


@pytest.mark.parametrize(
    "kind",
    ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "", "application/jsonp"],
)
def test_what_a_form_of_another_site_can_send_is_refused(guarded, kind):
    body = json.dumps(ORDERED["/api/decide"]).encode()
    foreign = guarded.ask(
        "POST", "/api/decide", body, Cookie=guarded.cookie, Origin="http://evil.example", Content_Type=kind
    )
    own = guarded.ask("POST", "/api/decide", body, Cookie=guarded.cookie, Origin=guarded.origin, Content_Type=kind)
    assert (foreign.status, own.status) == (403, 415)
    assert untouched(guarded)


def test_nothing_is_changed_by_asking(guarded):
    for path in ORDERED:
        assert guarded.get(path).status == 405
        assert guarded.get(f"{path}?answers=[[0,%22keep%22,null]]&reviewer=ann").status == 405
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"):
        assert guarded.ask(method, "/api/decide", Cookie=guarded.cookie).status in (400, 405)
    assert untouched(guarded)


@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_path_leads_to_a_file(guarded, path):
    reply = guarded.get(path)
    assert reply.status in (400, 404)
    assert b"root:" not in reply.content
    assert b"fingerprint" not in reply.content


def test_files_that_are_no_pictures_and_links_that_lead_out_are_not_served(guarded):
    for id in guarded.odd:
        row = guarded.review.labels.row_of[id]
        for size in ("large", "small"):
            reply = guarded.get(f"/picture/{row}/{size}")
            assert (reply.status, reply.headers["content-type"]) == (404, "application/json"), id
            assert b"<" not in reply.content


def test_pictures_are_made_anew_and_cannot_be_anything_else(guarded):
    row = next(row for id, row in guarded.review.labels.row_of.items() if id not in guarded.odd)
    reply = guarded.get(f"/picture/{row}/large")
    assert reply.headers["content-type"] in ("image/png", "image/jpeg")
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in reply.headers["content-security-policy"]
    assert reply.headers["cross-origin-resource-policy"] == "same-origin"


def test_what_hides_behind_a_picture_is_not_passed_on(serve, tmp_path):
    run = pictures_run(tmp_path)
    file = next((tmp_path / "pictures" / SHAPES[0]).iterdir())
    image = Image.open(io.BytesIO(file.read_bytes()))
    image.save(file, "PNG", pnginfo=None)
    file.write_bytes(file.read_bytes() + b"<script>alert(1)</script>")
    served = serve(run)
    served.opened()
    content = served.get(f"/picture/{served.review.labels.row_of[f'{SHAPES[0]}/{file.name}']}/large").content
    assert content.startswith(b"\x89PNG")
    assert b"<script>" not in content


def test_every_answer_has_the_headers_that_keep_pages_apart(guarded):
    for reply in (guarded.get("/"), guarded.get("/api/start"), guarded.get("/nothing"), guarded.ask("GET", "/")):
        policy = reply.headers["content-security-policy"]
        for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for"):
            assert part in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in reply.headers
        assert "server" not in reply.headers


def raw(served, content: bytes, *, pieces: int = 1, pause: float = 0.0, wait: float = 5.0) -> bytes:
    """What comes back on a connection to which these bytes are sent."""
    found = b""
    with socket.create_connection(("127.0.0.1", served.gate.port), timeout=wait) as connection:
        step = max(1, len(content) // pieces)
        try:
            for begin in range(0, len(content), step):
                connection.sendall(content[begin : begin + step])
                time.sleep(pause)
            while piece := connection.recv(1 << 16):
                found += piece
        except OSError:
            pass
    return found


def order(served, body: bytes, *headers: str) -> bytes:
    lines = [
        "POST /api/decide HTTP/1.1",
        f"Host: 127.0.0.1:{served.gate.port}",
        f"Cookie: {served.cookie}",
        f"Origin: {served.origin}",
        "Content-Type: application/json",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def test_large_bodies_are_refused_before_they_are_read(guarded):
    assert guarded.post("/api/decide", {"x": "y" * LARGEST_BODY}).status == 413
    claimed = raw(guarded, order(guarded, b"", f"Content-Length: {1 << 40}"))
    assert claimed.startswith(b"HTTP/1.1 413")
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    assert raw(guarded, order(guarded, chunk * 4, "Transfer-Encoding: chunked")).startswith(b"HTTP/1.1 413")
    assert raw(guarded, order(guarded, b"", "Content-Length: -1")).startswith(b"HTTP/1.1 400")
    assert raw(guarded, order(guarded, b"{}", "Content-Length: 2", "Content-Length: 3")).startswith(b"HTTP/1.1 400")
    assert raw(guarded, b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000).startswith(b"HTTP/1.1 400")
    assert untouched(guarded)


def test_headers_that_come_twice_are_refused(guarded):
    twice = raw(guarded, order(guarded, b"{}", "Content-Length: 2", "Connection: close", f"Origin: {guarded.origin}"))
    assert twice.startswith(b"HTTP/1.1 400")
    assert raw(guarded, order(guarded, b"{}", "Host: evil.example", "Content-Length: 2")).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'"keep"', b"\xff\xfe", b"[" * 60_000, b'{"answers": 1e999}']
)
def test_bodies_that_are_no_orders_are_refused(guarded, body):
    reply = guarded.ask(
        "POST", "/api/decide", body, Cookie=guarded.cookie, Origin=guarded.origin, Content_Type="application/json"
    )
    assert reply.status == 400
    assert untouched(guarded)


def test_slow_clients_are_hung_up_on_and_others_are_served_meanwhile(guarded, monkeypatch):
    monkeypatch.setattr(protocol, "REQUEST_SECONDS", 0.4)
    started = time.monotonic()
    silent = [socket.create_connection(("127.0.0.1", guarded.gate.port), timeout=5) for _ in range(20)]
    for connection in silent[:10]:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127")
    for connection in silent[10:15]:
        connection.sendall(order(guarded, b"{", "Content-Length: 100"))
    assert guarded.get("/api/state").status == 200
    for connection in silent:
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(100) == b""
        connection.close()
    assert time.monotonic() - started < 4
    drip = raw(guarded, order(guarded, b" " * 40, "Content-Length: 40"), pieces=200, pause=0.05)
    assert drip == b""
    assert untouched(guarded)


def send_for(connection: socket.socket, content: bytes, *, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        connection.sendall(content)
        time.sleep(0.01)


def test_a_client_that_never_reads_is_hung_up_on(guarded, monkeypatch):
    monkeypatch.setattr(protocol, "REPLY_SECONDS", 0.4)
    asked = f"GET /page.js HTTP/1.1\r\nHost: 127.0.0.1:{guarded.gate.port}\r\nCookie: {guarded.cookie}\r\n\r\n".encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", guarded.gate.port))
        connection.settimeout(5)
        with pytest.raises(OSError):
            send_for(connection, asked * 20, seconds=20)
    assert guarded.get("/api/state").status == 200


def test_too_many_connections_are_turned_away_and_then_welcome_again(guarded, monkeypatch):
    monkeypatch.setattr(protocol, "REQUEST_SECONDS", 1.0)
    crowd = [socket.create_connection(("127.0.0.1", guarded.gate.port), timeout=5) for _ in range(210)]
    assert guarded.get("/api/state").status == 503
    for connection in crowd:
        connection.close()
    until = time.monotonic() + 5
    while guarded.get("/api/state").status != 200:
        assert time.monotonic() < until


def test_a_password_lets_in_and_guesses_are_slow(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(security, "GUESS_PAUSE", 0.2)
    served = serve(ids_run(tmp_path / "run"), password="correct horse")
    closed = served.ask("GET", "/")
    assert closed.status == 401
    assert b'<form id="login">' in closed.content
    login = {"Origin": served.origin, "Content_Type": "application/json"}
    started = time.monotonic()
    for guess in ("", "wrong", "correct hors", "correct horse "):
        reply = served.ask("POST", "/api/login", json.dumps({"password": guess}).encode(), **login)
        assert reply.status == 401
        assert "set-cookie" not in reply.headers
    assert time.monotonic() - started > 0.8
    assert served.ask("POST", "/api/login", b'{"password": ["correct horse"]}', **login).status == 401
    reply = served.ask("POST", "/api/login", b'{"password": "correct horse"}', **login)
    assert reply.status == 200
    assert served.get("/api/start", Cookie=reply.headers["set-cookie"].partition(";")[0]).status == 200


def test_without_a_password_there_is_no_login(guarded):
    assert b'<form id="login" hidden>' in guarded.ask("GET", "/").content
    for password in ("", "anything"):
        assert guarded.post("/api/login", {"password": password}, Cookie="").status == 401


def test_other_machines_are_let_in_with_a_password_only(labelmend, tmp_path, monkeypatch):
    monkeypatch.delenv(PASSWORD, raising=False)
    run = ids_run(tmp_path / "run")
    for host in ("0.0.0.0", "::", "192.168.1.2", "example.org"):
        ended = labelmend("review", run.path, "--host", host, "--no-browser")
        assert ended.returncode == 2
        assert "needs a password" in " ".join(ended.stderr.split())
    monkeypatch.setenv(PASSWORD, "short")
    assert "at least 8" in " ".join(labelmend("review", run.path, "--host", "0.0.0.0").stderr.split())


def test_loopback_is_told_from_the_world():
    inside, outside = (
        ("127.0.0.1", "localhost", "::1", "127.8.9.1"),
        ("0.0.0.0", "::", "10.0.0.1", "evil", "localhost.evil"),
    )
    assert all(map(is_loopback, inside))
    assert not any(map(is_loopback, outside))
    everywhere = Gate(80, host="0.0.0.0", password="correct horse")
    assert everywhere.answers_to("192.168.1.2:80")
    assert everywhere.answers_to(f"{socket.gethostname()}:80")
    assert not everywhere.answers_to("evil.example:80")


def test_a_source_outside_of_the_run_cannot_be_chosen_by_a_request(guarded):
    for path in ("/api/sample/0?source=/etc", "/picture/0/large?path=/etc/passwd", "/api/state?root=/"):
        assert b"root:" not in guarded.get(path).content
    assert guarded.post("/api/queue", ORDERED["/api/queue"] | {"source": "/etc", "root": "/"}).status == 200


def test_pictures_that_are_bombs_are_refused(serve, tmp_path):
    import struct
    import zlib

    run = pictures_run(tmp_path)
    file = next((tmp_path / "pictures" / SHAPES[0]).iterdir())
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(100_000))), (b"IEND", b"")]
    body = b"".join(struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks)
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + body)
    shutil.rmtree(run.evidence)
    served = serve(run)
    served.opened()
    assert served.get(f"/picture/{served.review.labels.row_of[f'{SHAPES[0]}/{file.name}']}/large").status == 404
