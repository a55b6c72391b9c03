"""`acp-proxy hub` as a process: how it begins, what keeps it from that, and how it ends."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_proxy.ledger import Query, open_ledger
from harness.rows import row


def started(tmp_path: Path, *options: str) -> subprocess.Popen[str]:
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-m", "acp_proxy", "hub", "--port", "0", *options]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """With its address and the first token."""
    with started(tmp_path) as process:
        assert process.stderr
        said = ""
        while "doctor" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        (url,) = re.findall(r"hub at (\S+)", said)
        yield process, url, re.findall(r"acp_[\w-]+", said)[0]
        process.kill()


def test_alone_it_makes_a_ledger_that_its_first_token_writes_and_it_ends_when_told(
    hub: tuple[subprocess.Popen[str], str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    process, url, token = hub
    monkeypatch.setenv("ACP_PROXY_HUB_TOKEN", token)
    ledger = open_ledger(url, journals=())
    ledger.append([row(id="a")])
    (found,) = ledger.rows(Query())
    assert (found.entry.id, found.origin.user) == ("a", "administrator")
    ledger.close()
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[listen]\nhots = 1", "listen.hots: unknown key"),
        ('[listen]\nhost = "0.0.0.0"', "0.0.0.0 can be reached from other machines: it needs"),
        ('[listen]\ncertificate = "/none"\nkey = "/none"', "listen.certificate: /none: no such file or directory"),
        ('[database]\nurl = "sqlite:////proc/none/ledger.db"', "hub: /proc/none: "),
        ('[database]\nurl = "postgresql://127.0.0.1:1/acp"', "connection refused"),
    ],
    ids=["key", "no TLS", "certificate", "file", "database"],
)
def test_what_keeps_it_from_starting_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "hub.toml").write_text(text, encoding="utf-8")
    with started(tmp_path, "--config", str(tmp_path / "hub.toml")) as process:
        out, told = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert said.casefold() in told.casefold()
    assert len(told.splitlines()) == 1
