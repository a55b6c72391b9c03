"""What only Linux has is not there, as on macOS or in a sandbox: whoever relays, meters and recovers does so still."""

from __future__ import annotations

import os
import platform
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from acp_proxy.ledger.owners import Owner
from harness.faults.trial import BUDGET, Home, kill
from tests.agents.client import LIMIT, PLAIN, ROOT, alive, eventually, line, pid_from, python, running
from tests.cases import each_of

if sys.platform != "linux":
    pytest.skip("takes away what is there", allow_module_level=True)

WITHOUT = str(ROOT / "tests/agents/without_linux")
MACOS = {"PYTHONPATH": WITHOUT}
SANDBOX = {**MACOS, "PLATFORM": "linux", "WITHOUT_PS": "1"}  # neither /proc nor ps
DEAF = "import os, signal; os.write(1, b'%d\\n' % os.getpid())\nwhile True: signal.pause()"
DEAF_CHILD = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-I", "-S", "-c", {DEAF!r}])
while True: __import__("signal").pause()
"""


def without(environ: dict[str, str]) -> dict[str, str]:
    return {**os.environ, **environ}


@each_of([(system, loop) for system in (MACOS, SANDBOX) for loop in ((), ("--asyncio",))], name=repr)
def test_all_bytes_pass_and_the_agents_status_is_ours(case: tuple[dict[str, str], tuple[str, ...]]) -> None:
    system, loop = case
    with running(*PLAIN, *loop, "--", "sh", "-c", "cat; exit 7", env=without(system)) as relay:
        said = b"{}\n" + b"x" * 3_000_000 + b"\n{}\n"
        assert relay.communicate(said) == (said, b"")
        assert relay.returncode == 7


@pytest.mark.skipif(platform.machine() != "x86_64", reason="calls have other numbers")
@each_of(["epoll_create1", "eventfd2", "epoll_create1,eventfd2"], name=str)
def test_a_sandbox_that_refuses_what_a_loop_polls_by_keeps_no_agent_from_being_relayed(refused: str) -> None:
    sandbox = (sys.executable, str(ROOT / "tests/agents/refusing.py"), refused)
    with running(*sandbox, *PLAIN, "--", "sh", "-c", "cat; exit 7") as relay:
        said = b"{}\n" + b"x" * 3_000_000 + b"\n{}\n"
        assert relay.communicate(said)[0] == said
        assert relay.returncode == 7
    ours, theirs = socket.socketpair()
    with ours, theirs, running(*sandbox, *PLAIN, "--", "sh", "-c", "cat; exit 7", stdin=theirs, stdout=theirs) as relay:
        ours.settimeout(LIMIT)
        ours.sendall(b"one\n")
        assert ours.recv(100) == b"one\n"
        ours.shutdown(socket.SHUT_WR)
        assert relay.wait() == 7


@each_of([(), ("--asyncio",)], name=repr)
def test_one_socket_may_be_both_ends_and_is_given_back_as_it_was(loop: tuple[str, ...]) -> None:
    """The agent ends its half first: what is then still read of the client must not block the relay."""
    ours, theirs = socket.socketpair()
    agent = ("sh", "-c", "head -n 1; exec >&-; cat >&2; exit 3")
    with ours, theirs, running(*PLAIN, *loop, "--", *agent, stdin=theirs, stdout=theirs, env=without(MACOS)) as relay:
        ours.settimeout(LIMIT)
        ours.sendall(b"one\n")
        assert ours.recv(100) == b"one\n"
        for _ in range(3):
            ours.sendall(b"two\n")
            assert line(relay.stderr) == b"two\n"
        ours.shutdown(socket.SHUT_WR)
        assert relay.wait() == 3
        assert os.get_blocking(theirs.fileno())


def test_an_agent_that_ignores_the_end_of_stdin_ends_with_what_it_started() -> None:
    with running(*PLAIN, "--grace", "0.1", "--", *python(DEAF_CHILD), env=without(MACOS)) as relay:
        started = pid_from(relay.stdout)
        relay.stdin.close()
        assert relay.wait() == 128 + signal.SIGTERM
        assert eventually(lambda: not alive(started))


def test_where_no_process_can_be_looked_at_the_agent_itself_ends() -> None:
    with running(*PLAIN, "--grace", "0.1", "--", *python(DEAF), env=without(SANDBOX)) as relay:
        agent = pid_from(relay.stdout)
        relay.stdin.close()
        assert relay.wait() == 128 + signal.SIGTERM
        assert not alive(agent)


def test_who_is_killed_costs_no_turn(tmp_path: Path) -> None:
    home = Home(tmp_path, BUDGET, extra=MACOS, settings="Library/Application Support/acp-proxy")
    verdict = kill("all", home, random.Random(9))
    assert verdict.defects == []
    assert verdict.unbooked == set()


ASKS = "import sys; from acp_proxy.ledger.owners import *; "


def asked(code: str, **environ: str) -> str:
    """What Python prints that has no Linux."""
    found = subprocess.run(
        [sys.executable, "-c", f"{ASKS}{code}"], env=without(MACOS | environ), cwd=ROOT, capture_output=True, check=True
    )
    return found.stdout.decode().strip()


def test_a_process_lives_whatever_zone_and_language_is_asked_in() -> None:
    us = f"Owner(this_host(), {os.getpid()}, _started({os.getpid()}))"
    known = asked(f"from acp_proxy.ledger.owners import _started; print(repr({us}))", TZ="Asia/Tokyo")
    assert asked(f"print({known}.is_gone)", TZ="America/New_York") == "False"
    assert asked(f"print({known}.started)") != ""
    another = f"Owner({known}.host, {os.getpid()}, 'Thu Jan  1 00:00:00 1970')"
    assert asked(f"print({another}.is_gone)") == "True"


@each_of([MACOS, SANDBOX], name=repr)
def test_a_process_that_ended_is_gone_and_one_that_cannot_be_looked_at_is_not(system: dict[str, str]) -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    assert asked(f"print(Owner(this_host(), {ended.pid}, 'then').is_gone)", **system) == "True"
    assert asked("print(Owner.this().is_gone)", **system) == "False"
    hidden = asked(f"print(Owner(this_host(), {os.getpid()}, '').is_gone)", **system)
    assert hidden == "False"


def test_a_process_that_proc_hides_is_not_gone() -> None:
    """As another user's is where /proc is mounted with `hidepid`."""
    hide = f"""
import sys
from acp_proxy.ledger.owners import Owner, this_host
def hook(event, arguments):
    if event == "open" and str(arguments[0]) == "/proc/{os.getpid()}/stat":
        raise FileNotFoundError(2, "hidden")
sys.addaudithook(hook)
print(Owner(this_host(), {os.getpid()}, {Owner.this().started!r}).is_gone)
"""
    assert subprocess.check_output([sys.executable, "-c", hide], cwd=ROOT, text=True) == "False\n"


def test_a_journal_takes_no_more_than_there_is_room_for(tmp_path: Path) -> None:
    """Where pages cannot be reserved they are written, and a disk with room for a part takes that part."""
    code = f"""
import resource
from pathlib import Path
from acp_proxy.ledger.journal.writer import FIRST_SIZE, open_journal
from harness.rows import line, row
resource.setrlimit(resource.RLIMIT_FSIZE, (FIRST_SIZE + 100_000, FIRST_SIZE + 100_000))
journal = open_journal([Path({str(tmp_path)!r})], "sqlite:////l", print)
kept = 0
while journal.write(row(line("m" * 50_000, None))) is not None:
    kept += 1
sys.stdout.write(str(kept))
"""
    assert asked(code) == "5"
