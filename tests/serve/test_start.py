"""How `acp-proxy serve` begins and ends; whatever keeps it from starting is one line and status 2."""

from __future__ import annotations

import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from harness.daemons import until
from harness.ports import free_port
from tests.machine import COMMAND
from tests.pace import slower
from tests.serve.house import Home, Served


def refusal(home: Home, *options: str) -> str:
    """The one line that a server says that does not start."""
    done = home.run("serve", *options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.startswith("acp-proxy: ")
    return done.stderr.removeprefix("acp-proxy: ").rstrip("\n")


def test_it_says_where_it_serves_and_answers_there(home: Home) -> None:
    with home.serving() as served:
        assert served.address == f"http://127.0.0.1:{served.port}/"
        answer = served.ask("/healthz")
        assert (answer.status, answer.body) == (200, b"ok\n")


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
def test_it_serves_though_nobody_can_be_told_where(home: Home, stderr: str) -> None:
    port = free_port()
    command = ["sh", "-c", f'exec "$@" {stderr}', "sh", *COMMAND, "serve", "--port", str(port)]
    with subprocess.Popen(command, env=home.environ, stdin=subprocess.DEVNULL, text=True) as process:
        served = Served(f"http://127.0.0.1:{port}/", process)
        until(lambda: process.poll() is not None or answers(served), "it answers")
        assert served.ask("/healthz").status == 200
        assert served.end() == 0


def answers(served: Served) -> bool:
    try:
        served.connected().close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_ledger_that_is_not_there_is_made(home: Home) -> None:
    with home.serving() as served:
        assert served.json("/api/sessions") == {"sessions": [], "more": False, "next": None}
    assert Path(home.url.removeprefix("sqlite:///")).exists()


def test_a_working_directory_that_was_removed_keeps_nothing_from_being_shown(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = home.path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with home.serving() as served:
        assert served.json("/api/budgets") == {"budgets": [], "plan_budgets": []}
        assert b"acp_proxy_ledger_up 1\n" in served.ask("/metrics").body


def test_the_port_may_stand_in_the_configuration(home: Home) -> None:
    home.configure("[serve]\nport = 70000\n")
    assert refusal(home).endswith("config.toml:2: serve.port: expected a port from 0 to 65535, such as 9464")


def test_a_port_that_is_taken_is_one_line(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = refusal(home, "--port", str(port))
    assert said == f"serve: 127.0.0.1:{port}: address already in use; --host and --port choose another"


@pytest.mark.parametrize("port", ["http", "-1", "65536"])
def test_a_port_that_is_none_is_one_line(home: Home, port: str) -> None:
    assert refusal(home, f"--port={port}") == "--port: expected a port from 0 to 65535, such as 9464"


@pytest.mark.parametrize("host", ["no such host", "192.0.2.1"])
def test_a_host_that_is_not_this_machine_is_one_line(home: Home, host: str) -> None:
    said = refusal(home, "--host", host, "--port", "0", "--token-file", str(home.token()))
    assert host in said


def test_a_ledger_of_a_newer_version_is_one_line(home: Home) -> None:
    home.append([])
    with sqlite3.connect(home.url.removeprefix("sqlite:///")) as database:
        database.execute("PRAGMA user_version = 1000")
    database.close()
    assert "written by a newer acp-proxy" in refusal(home, "--port", "0")


def test_a_ledger_that_cannot_be_made_is_one_line(home: Home) -> None:
    (home.path / "file").touch()
    assert "/file/ledger.db" in refusal(home, "--port", "0", "--ledger", f"sqlite:///{home.path}/file/ledger.db")


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_beyond_this_machine_a_token_is_needed(home: Home, host: str) -> None:
    said = refusal(home, "--host", host, "--port", "0")
    assert said == f"serve: {host} can be reached from other machines: --token-file FILE is needed"


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("secret", 0o644, "others may read or change it"),
        ("secret", 0o602, "others may read or change it"),
        ("secret", 0o620, "others may read or change it"),
        (" \n", 0o600, "it is empty"),
        ("two secrets", 0o600, "expected one word"),
        ("sec\x1bret", 0o600, "expected one word"),
    ],
)
def test_a_token_file_that_keeps_no_secret_is_one_line(home: Home, text: str, mode: int, said: str) -> None:
    line = refusal(home, "--port", "0", "--token-file", str(home.token(text, mode)))
    assert line.startswith(f"token file {home.path}/token: {said}")
    assert "secret" not in line


def test_a_token_file_of_bytes_is_one_line(home: Home) -> None:
    home.token().write_bytes(b"secret\xff")
    line = refusal(home, "--port", "0", "--token-file", str(home.path / "token"))
    assert line == f"token file {home.path}/token: expected UTF-8 text"


def test_a_token_file_that_is_not_there_is_one_line(home: Home) -> None:
    line = refusal(home, "--port", "0", "--token-file", str(home.path / "none"))
    assert line == f"token file {home.path}/none: no such file or directory"


def test_a_directory_in_place_of_a_token_file_is_one_line_and_keeps_its_mode(home: Home) -> None:
    (home.path / "secrets").mkdir(mode=0o755)
    line = refusal(home, "--port", "0", "--token-file", str(home.path / "secrets"))
    assert line == f"token file {home.path}/secrets: is a directory"  # no word of chmod 600


def has_ipv6() -> bool:
    with suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        return socket.has_dualstack_ipv6()
    return False


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_all_addresses_of_ipv6_are_those_of_ipv4_as_well(home: Home) -> None:
    with home.serving("--host", "::", "--token-file", str(home.token())) as served:
        assert served.address == f"http://[::]:{served.port}/"
        for address in ("127.0.0.1", "::1"):
            with socket.create_connection((address, served.port), timeout=60) as connection:
                connection.sendall(b"HEAD /healthz HTTP/1.0\r\n\r\n")
                assert connection.recv(1024).startswith(b"HTTP/1.1 200 ")


def test_without_its_packages_it_says_how_to_get_them(home: Home) -> None:
    code = "import sys; sys.modules['uvicorn'] = None; from acp_proxy.cli import main; sys.exit(main(['serve']))"
    done = subprocess.run([sys.executable, "-c", code], env=home.environ, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "acp-proxy: serve: not installed, run pip install '.[serve]' in a clone of acp-proxy\n"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_soon_though_clients_dawdle(home: Home, number: int, status: int) -> None:
    with home.serving() as served:
        dawdling = [served.connected() for _ in range(20)]
        for connection in dawdling:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        assert served.ask("/healthz").status == 200
        began = time.monotonic()
        assert served.end(number) == status
        assert time.monotonic() - began < 6 * slower()
        for connection in dawdling:
            connection.close()


def test_a_database_that_is_away_at_the_start_is_waited_for(home: Home) -> None:
    pytest.importorskip("psycopg")
    with home.serving("--ledger", f"postgresql://127.0.0.1:{free_port()}/ledger") as served:
        assert served.ask("/healthz").status == 503
        assert (served.ask("/livez").status, served.ask("/livez").body) == (200, b"ok\n")
        answer = served.ask("/api/spend")
        assert answer.status == 503
        assert set(answer.json) == {"error"}
        assert served.ask("/").status == 200


def test_a_database_that_is_away_at_the_start_is_told(home: Home) -> None:
    pytest.importorskip("psycopg")
    url = f"postgresql://127.0.0.1:{free_port()}/ledger"
    command = [*COMMAND, "serve", "--port", "0", "--ledger", url]
    with subprocess.Popen(command, env=home.environ, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        said = process.stderr.readline()
        process.kill()
        process.stderr.read()
    assert said.startswith(f"acp-proxy: serve: ledger {url}: ")
    assert said.endswith("; it is asked again\n")
