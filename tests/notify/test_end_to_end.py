"""Notifications as a team meets them: a real `acp-proxy run` reaches its budget, a real `acp-proxy serve` tells."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.ledger import open_ledger
from tests.editor import BUDGET, PATIENT, Editor, proxy
from tests.notify.house import notice
from tests.notify.receiver import HANG, Receiver, receiving
from tests.pace import slower
from tests.serve.house import Home

NETWORK_DOWN = """
import socket, sys, threading

def look_up(host, *others, **named):
    if host in ("hooks.example.com", b"hooks.example.com"):
        sys.stderr.write("resolver: looking\\n")
        threading.Event().wait()
    return known(host, *others, **named)

known, socket.getaddrinfo = socket.getaddrinfo, look_up
sys.modules["uvloop"] = None  # which asks the system without Python
from acp_proxy.cli import main
sys.exit(main(["serve", "--port", "0"]))
"""


def configured(path: Path, *receivers: Receiver) -> Home:
    home = Home(path)
    channels = "".join(
        f'[[notify]]\nname = "channel {number}"\nurl = "{receiver.url}"\n' for number, receiver in enumerate(receivers)
    )
    home.configure(BUDGET + PATIENT + channels)
    return home


def spend(home: Home, *prompts: str) -> None:
    with proxy(home.environ) as process:
        editor = Editor(process)
        for prompt in prompts:
            editor.prompt(prompt)
        editor.leave()


async def test_a_threshold_and_a_refusal_are_told_by_who_serves(tmp_path: Path) -> None:
    async with receiving() as receiver:
        home = configured(tmp_path, receiver)
        await asyncio.to_thread(spend, home, "end 0.85", "end 0.95", "end 1.0", "end 1.1")
        with home.serving() as served:
            await receiver.until(4)
            *thresholds, refusal = receiver.bodies
            assert [(body["kind"], body["threshold"], body["spent"]) for body in thresholds] == [
                ("threshold", 80, "0.85"),
                ("threshold", 90, "0.95"),
                ("threshold", 100, "1"),
            ]
            assert (refusal["kind"], refusal["user"], refusal["agent"]) == ("refusal", "alice", "claude-agent-acp")
            assert await asyncio.to_thread(served.end) == 0


async def test_it_ends_in_time_while_a_receiver_hangs(tmp_path: Path) -> None:
    async with receiving(HANG) as receiver:
        home = configured(tmp_path, receiver)
        await asyncio.to_thread(spend, home, "end 0.6")
        with home.serving() as served:
            await receiver.until(1)
            async with asyncio.timeout(6 * slower()):
                assert await asyncio.to_thread(served.end, signal.SIGTERM) == 0


def test_it_ends_in_time_while_a_name_is_looked_up(tmp_path: Path) -> None:
    """Which nothing can stop, and which takes long where the network is down."""
    home = Home(tmp_path)
    home.configure('[[notify]]\nurl = "https://hooks.example.com/x"\n')
    home.append([])
    with closing(open_ledger(home.url, journals=())) as ledger:
        ledger.outbox.note([notice(at=time.time_ns())])
    assert ended_as_it_looks_up(home, signal.SIGTERM) == 0


def test_it_ends_in_time_while_its_database_is_looked_up(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    home = Home(tmp_path)
    home.configure('[ledger]\nurl = "postgresql://hooks.example.com/x"\n')
    assert ended_as_it_looks_up(home, signal.SIGINT) == 130


def ended_as_it_looks_up(home: Home, number: int) -> int:
    """The exit status, by a signal."""
    command = [sys.executable, "-c", NETWORK_DOWN]
    with subprocess.Popen(command, env=home.environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            while "looking" not in (line := process.stderr.readline()):
                assert line
            process.send_signal(number)
            return process.wait(6 * slower())
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ALL_PROXY", "socks5://alice:secret@127.0.0.1:1", "a SOCKS proxy, which cannot be used"),
        ("HTTPS_PROXY", "http://alice:secret@[::1", "a proxy by something that is no URL"),
        ("SSL_CERT_FILE", "/nowhere/secret.pem", "certificates that cannot be used: no such file or directory"),
    ],
)
def test_what_the_environment_says_of_the_network_is_one_line_when_it_cannot_be_used(
    tmp_path: Path, name: str, value: str, said: str
) -> None:
    home = Home(tmp_path)
    home.configure('[[notify]]\nurl = "https://hooks.example.com/x"\n')
    for command in (("serve", "--port", "0"), ("notify", "test")):
        done = home.run(*command, environ={name: value})
        assert (done.returncode, done.stderr) == (2, f"acp-proxy: notify: the environment names {said}\n")


def test_a_url_file_that_is_not_there_keeps_it_from_starting(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.configure('[[notify]]\nurl_file = "~/webhook"\n')
    done = home.run("serve", "--port", "0")
    assert done.returncode == 2
    assert done.stderr == f'acp-proxy: notify "json": url_file {tmp_path}/webhook: no such file or directory\n'
