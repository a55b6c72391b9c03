"""Attacks over real HTTP: other sites, names, methods and paths, wrong tokens."""

from __future__ import annotations

import os
import socket
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message

from acp_proxy.serve.guard import Guard, Policy
from tests.serve.house import Home, Served

pytestmark = pytest.mark.xdist_group("guard")  # two servers for all tests of them

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TOKEN = "let-me-in"
FAR_AWAY = "before=" + b64encode(b'[9223372036854775808,"","","",""]').decode()  # ns: no ledger has such a time


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = Home(tmp_path_factory.mktemp("home"))
    home.configure('[serve]\nallowed_hosts = ["costs.example.com"]\n')
    with home.serving() as served:
        yield served


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One that wants a token."""
    home = Home(tmp_path_factory.mktemp("home"))
    with home.serving("--token-file", str(home.token(f"{TOKEN}\n"))) as served:
        yield served


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:9464", "localhost.", "127.0.0.1:1", "127.0.0.2", "[::1]:80", "Costs.Example.com"]
)
def test_its_own_names_are_answered(served: Served, host: str) -> None:
    assert served.ask("/api/live", {"Host": host}).status == 200


@pytest.mark.parametrize(("host", "status"), [("192.0.2.7:9464", 200), ("192.0.2.8:9464", 403)])
async def test_an_address_of_ipv4_that_a_socket_for_both_was_reached_at_is_its_own(host: str, status: int) -> None:
    said: list[Message] = []

    async def send(message: Message) -> None:
        said.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    headers = [(b"host", host.encode())]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers, "server": ("::ffff:192.0.2.7", 9464)}
    await Guard(PlainTextResponse("ok"), Policy())(scope, receive, send)
    assert said[0]["status"] == status


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "192.168.1.10",
        "0.0.0.0",
        "[::2]",
        "",
        "@",
        ":",
    ],
)
@pytest.mark.parametrize("path", ["/", "/healthz", "/livez", "/api/spend"])
def test_a_name_that_was_bound_to_us_by_somebody_else_is_refused(served: Served, host: str, path: str) -> None:
    answer = served.ask(path, {"Host": host})
    assert answer.status == 403
    assert b"ok" not in answer.body


def test_two_names_or_none_are_refused(served: Served) -> None:
    two = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    assert served.send(two).split()[1] in (b"400", b"403")
    assert served.send(b"GET / HTTP/1.0\r\n\r\n").split()[1] == b"403"


@pytest.mark.parametrize("path", [b"/healthz", b"/livez"])
def test_a_load_balancer_that_names_no_host_learns_whether_it_works_and_nothing_else(
    served: Served, path: bytes
) -> None:
    assert served.send(b"GET %s HTTP/1.0\r\n\r\n" % path).split()[1] == b"200"
    assert served.send(b"GET %s HTTP/1.0\r\nOrigin: http://evil.example\r\n\r\n" % path).split()[1] == b"403"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
def test_what_another_site_asks_is_refused(served: Served, headers: dict[str, str]) -> None:
    answer = served.ask("/api/spend", headers)
    assert answer.status == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"},
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Origin": "https://costs.example.com"},
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
    ],
    ids=str,
)
def test_what_the_page_or_a_person_asks_is_answered(served: Served, headers: dict[str, str]) -> None:
    assert served.ask("/", headers).status == 200


def test_the_page_may_name_its_own_origin(served: Served) -> None:
    assert served.ask("/api/live", {"Host": "localhost:1", "Origin": "http://localhost:1"}).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_only_reading_is_possible(served: Served, method: str) -> None:
    headers = {"Access-Control-Request-Method": "GET", "Content-Length": "0"}
    answer = served.ask("/api/spend", headers, method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/", "/healthz", "/livez", "/api/spend", "/api/budgets"])
def test_a_head_is_an_answer_without_its_body(served: Served, path: str) -> None:
    whole, head = served.ask(path), served.ask(path, method="HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]


def test_a_body_is_not_taken(served: Served) -> None:
    assert served.ask("/api/spend", {"Content-Length": "1000000"}).status == 413
    assert served.ask("/api/spend", {"Transfer-Encoding": "chunked"}).status == 413


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/api",
        "/api/",
        "/api/spend/",
        "/API/spend",
        "/healthz/",
        "//healthz",
        "/livez/",
        "//livez",
        "/livez/../api/spend",
        "/index.html",
        "/../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/%252e%252e/etc/passwd",
        "/page/../../__init__.py",
        "/__init__.py",
        "/page.js%00.html",
        "/..\\..\\etc\\passwd",
        "/page.js/../page.js",
        "/%ff%fe",
    ],
)
def test_a_path_that_is_none_of_ours_is_not_found(served: Served, path: str) -> None:
    answer = served.ask(path)
    assert answer.status == 404
    assert b"root:" not in answer.body


@pytest.mark.parametrize(
    ("path", "status"),
    [
        *(("/", 200), ("/healthz", 200), ("/livez", 200), ("/api/spend", 200)),
        *(("/api/spend?x=1", 400), ("/nothing", 404), ("/api/spend/", 404)),
    ],
)
def test_every_answer_binds_the_browser(served: Served, path: str, status: int) -> None:
    answer = served.ask(path)
    assert answer.status == status
    assert answer.headers["content-security-policy"] == CSP
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["cache-control"] == ("no-cache" if path == "/" else "no-store")
    assert "server" not in answer.headers
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "query",
    [
        "range=decade",
        "by=everything",
        "by=session",
        "tz=Mars/Olympus",
        "tz=../../etc/passwd",
        "tz=%00",
        "nothing=1",
        "by=model&by=agent",
        "range=",
    ],
)
def test_a_question_that_makes_no_sense_is_one_line(served: Served, query: str) -> None:
    answer = served.ask(f"/api/spend?{query}")
    assert (answer.status, answer.headers["content-type"]) == (400, "application/json")
    assert list(answer.json) == ["error"]
    assert "\n" not in answer.json["error"]
    assert answer.body.isascii()


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=x", "limit=1e9", "limit=99999", "limit=%C2%B2", "before=x", "before=bnVsbA==", FAR_AWAY, "a=1"],
)
def test_a_page_of_sessions_that_makes_no_sense_is_one_line(served: Served, query: str) -> None:
    answer = served.ask(f"/api/sessions?{query}")
    assert answer.status == 400
    assert list(answer.json) == ["error"]


def test_a_session_that_nobody_knows_is_not_found(served: Served) -> None:
    answer = served.ask("/api/session?key=0123456789abcdef")
    assert (answer.status, answer.json) == (404, {"error": "no session of this key"})
    assert served.ask("/api/session").status == 404


@pytest.mark.parametrize(
    "authorization",
    [
        f"Bearer {TOKEN}",
        f"bearer  {TOKEN}",
        f"Basic {b64encode(f'anyone:{TOKEN}'.encode()).decode()}",
        f"basic {b64encode(f':{TOKEN}'.encode()).decode()}",
    ],
)
def test_who_shows_the_token_is_answered(locked: Served, authorization: str) -> None:
    assert locked.ask("/api/live", {"Authorization": authorization}).status == 200


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        TOKEN,
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Digest {TOKEN}",
        f"Basic {TOKEN}",
        f"Basic {b64encode(TOKEN.encode()).decode()}",
        f"Basic {b64encode(f'{TOKEN}:'.encode()).decode()}",
        f"Basic !{b64encode(f'anyone:{TOKEN}'.encode()).decode()}",
        "Basic \xff\xff",
        "Bearer \xe4\xf6",
    ],
)
@pytest.mark.parametrize(
    "path", ["/", "/api/live", "/nothing", "/livez/", "/livez/../api/live", "/livez%2f..%2fapi%2flive"]
)
def test_who_does_not_is_asked_for_it(locked: Served, authorization: str | None, path: str) -> None:
    answer = locked.ask(path, {} if authorization is None else {"Authorization": authorization})
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Basic ")
    assert TOKEN.encode() not in answer.body
    assert locked.ask(path, {"Authorization": authorization or ""}, method="HEAD").status == 401


def test_health_needs_no_token(locked: Served) -> None:
    assert locked.ask("/healthz").status == 200
    assert locked.ask("/livez").status == 200


def test_a_token_does_not_open_the_door_to_other_sites(locked: Served) -> None:
    shown = {"Authorization": f"Bearer {TOKEN}"}
    assert locked.ask("/api/live", {**shown, "Origin": "https://evil.example"}).status == 403
    assert locked.ask("/api/live", {**shown, "Host": "evil.example"}).status == 403


def test_on_the_network_its_own_address_is_a_name_of_it(home: Home) -> None:
    with home.serving("--host", "0.0.0.0", "--token-file", str(home.token())) as served:
        own = socket.gethostname()
        assert served.ask("/healthz", {"Host": f"{own}:1"}).status == 200
        assert served.ask("/healthz", {"Host": "192.0.2.1"}).status == 403
        assert served.ask("/api/live").status == 401


def test_a_token_is_nowhere_in_what_is_said(home: Home) -> None:
    secret = "s3cr3t-t0k3n"
    with home.serving("--token-file", str(home.token(secret))) as served:
        served.ask("/api/live", {"Authorization": f"Bearer {secret}x"})
        served.send(f"GET /{secret} HTTP/1.1\r\nAuthorization: Bearer {secret}\r\n\r\n".encode())
        served.end()
        assert served.process.stderr
        assert secret not in served.process.stderr.read()
    assert not [path for path in Path(home.path).rglob("*") if path.name != "token" and secret in str(path)]
    assert secret not in repr(Policy.of(["localhost"], lambda: secret))


def shows(served: Served, token: str) -> int:
    return served.ask("/api/live", {"Authorization": f"Bearer {token}"}).status


def test_a_token_that_was_replaced_is_taken_at_once_and_the_old_one_no_more(home: Home) -> None:
    file = home.token("old-token")
    with home.serving("--token-file", str(file)) as served:
        assert (shows(served, "old-token"), shows(served, "new-token")) == (200, 401)
        home.token("new-token")
        assert (shows(served, "old-token"), shows(served, "new-token")) == (401, 200)
        (home.path / "next").write_text("third", encoding="utf-8")
        (home.path / "next").chmod(0o600)
        (home.path / "next").replace(file)  # as the secrets of a cluster are
        assert (shows(served, "new-token"), shows(served, "third")) == (401, 200)


def test_a_token_file_that_becomes_of_no_use_leaves_the_token_and_is_told_once(home: Home) -> None:
    file = home.token("old-token")
    with home.serving("--token-file", str(file)) as served:
        assert served.process.stderr
        for spoil, reason in (
            (lambda: home.token("", 0o600), "it is empty; `openssl rand -hex 32` makes a token"),
            (lambda: home.token("new-token", 0o644), f"others may read or change it; chmod 600 {file}"),
            (file.unlink, "no such file or directory"),
            (file.mkdir, "is a directory"),  # as containers put it in place of a file that is not there
        ):
            spoil()
            for _ in range(2):
                assert (shows(served, "old-token"), shows(served, "new-token"), shows(served, "")) == (200, 401, 401)
            told = served.process.stderr.readline()
            assert told == f"acp-proxy: serve: token file {file}: {reason}; the last token still holds\n"
        file.rmdir()
        home.token("new-token")
        assert (shows(served, "old-token"), shows(served, "new-token")) == (401, 200)
        assert served.end() == 0
        assert served.process.stderr.read() == ""


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="this system shows no descriptors as files")
def test_a_token_from_a_pipe_stands_for_as_long_as_it_serves(home: Home) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"let-me-in")
    os.close(writing)
    with home.serving("--token-file", f"/dev/fd/{reading}", inherited=(reading,)) as served:
        os.close(reading)
        assert [shows(served, "let-me-in"), shows(served, ""), shows(served, "let-me-in")] == [200, 401, 200]
        assert served.end() == 0
        assert served.process.stderr
        assert served.process.stderr.read() == ""
