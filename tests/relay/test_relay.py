"""The relay between a real client and a real agent: every rule of transparency and of the end of life, once."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_proxy.core.events import Side
from acp_proxy.relay import Relay
from acp_proxy.spawn import Started
from tests.agents.client import (
    LIMIT,
    PLAIN,
    alive,
    eventually,
    line,
    pid_from,
    python,
    relayed,
    running,
    send,
    send_and_close,
)
from tests.agents.forwarding import Forwarding
from tests.agents.loops import LOOPS, Loop, on

ECHO = ("cat",)
DEAF = "import signal; signal.pause()"
SAYS_ITS_PID = "import os, signal; os.write(1, b'%d\\n' % os.getpid());"
IGNORES_TERM = "signal.signal(signal.SIGTERM, signal.SIG_IGN);"
WAITS = "\nwhile True: signal.pause()"


# Bytes.


@pytest.fixture(scope="module")
def echo() -> Iterator[Any]:
    """One relay for all examples: each sends lines, and reads as many bytes as it sent."""
    with relayed(*ECHO) as relay:
        yield relay


_ODD = [b"\r\n", b"\r", b"\n\n", b"\0", b"\xef\xbb\xbf{", b'{"id":1}\r\n', b" \t\n", b'{"method":"m"}{}\n', b"\x80\n"]


@settings(max_examples=60)
@given(st.lists(st.lists(st.binary(max_size=100) | st.sampled_from(_ODD), max_size=3).map(b"".join), max_size=6))
def test_any_bytes_in_any_chunks_come_back_as_they_were(echo: Any, chunks: list[bytes]) -> None:
    for chunk in [*chunks, b"\n"]:
        send(echo.stdin, chunk)
    expected = b"".join(chunks) + b"\n"
    got = b""
    while len(got) < len(expected):
        got += echo.stdout.read(len(expected) - len(got))
    assert got == expected


def test_a_last_line_without_a_newline_is_delivered_as_it_is() -> None:
    with relayed(*ECHO) as relay:
        assert relay.communicate(b"one\nunterminated")[0] == b"one\nunterminated"
        assert relay.returncode == 0


def test_a_line_of_a_hundred_megabytes_passes_both_ways_unchanged() -> None:
    data = os.urandom(1 << 16).replace(b"\n", b"_") * 1600 + b"\n"
    with relayed(*ECHO) as relay:
        assert relay.communicate(data)[0] == data


def test_stdout_carries_the_agents_bytes_alone_and_stderr_is_the_agents_own() -> None:
    with relayed("sh", "-c", "echo out; echo err >&2") as relay:
        assert relay.communicate() == (b"out\n", b"err\n")


# Backpressure.


def test_two_peers_that_only_write_at_first_do_not_block_each_other() -> None:
    flood = b"x" * 999 + b"\n"
    agent = python(
        f"import os\nfor _ in range(3000): os.write(1, {flood!r})\nn = 0\n"
        "while d := os.read(0, 65536): n += len(d)\nos.write(1, b'%d\\n' % n)"
    )
    with relayed(*agent) as relay:
        writer = threading.Thread(target=send_and_close, args=(relay.stdin, flood * 100))
        writer.start()
        got = relay.stdout.read(3_000_000)
        while len(got) < 3_000_000:
            got += relay.stdout.read(3_000_000 - len(got))
        assert line(relay.stdout) == b"100000\n"
        writer.join()


# Writes as long as it may, says how much whenever it has not been able to for a while, and ends at the first line, or
# when nothing keeps it from writing.
WRITES = """
import os, select
os.set_blocking(1, False)
n = said = 0
while n < 4 << 20 and not (ready := select.select([0], [1], [], 0.5))[0]:
    if ready[1]:
        n += os.write(1, b"x" * 4095 + b"\\n")
    elif n != said:
        said = n
        os.write(2, b"%d\\n" % n)
os.write(2, b"in all %d\\n" % n)
"""


def test_a_reader_that_stops_stops_the_writer_behind_the_relay() -> None:
    """After at most what two pipes and the relay's slack hold."""
    with relayed(*python(WRITES)) as relay:
        said = line(relay.stderr)
        while int(said.split()[-1]) < 128 << 10:  # the relay has not had its turn yet
            said = line(relay.stderr)
        send(relay.stdin, b"enough\n")
        while said and not said.startswith(b"in all "):
            said = line(relay.stderr)
        written = int(said.split()[-1])
        assert written <= 512 << 10
        assert len(relay.stdout.readall()) == written


class Holding(Forwarding):
    """Keeps the client's lines back until it is told to let them go."""

    def __init__(self) -> None:
        self.held = b""
        self.client_left = asyncio.Event()

    def lines(self, sender: Side, run: bytes) -> None:
        if sender is Side.CLIENT:
            self.held += run
            self.to_agent.hold_back(len(self.held))
        else:
            super().lines(sender, run)

    def ended(self, sender: Side) -> None:
        if sender is Side.CLIENT:
            self.client_left.set()

    def holding(self) -> int:
        return len(self.held)

    def release(self) -> None:
        self.to_agent.write(self.held)
        self.held = b""
        self.to_agent.hold_back(0)


@LOOPS
def test_the_agents_stdin_stays_open_for_lines_that_wait_for_admission(loop: Loop) -> None:
    (client_in, ours), (theirs, client_out), (agent_in, to_agent), (from_agent, agent_out) = (
        os.pipe() for _ in range(4)
    )
    with os.fdopen(agent_in) as stdin, os.fdopen(agent_out) as stdout:
        agent = subprocess.Popen(["cat"], stdin=stdin, stdout=stdout)
    started = Started(
        pid=agent.pid, to_agent=to_agent, from_agent=from_agent, from_client=client_in, to_client=client_out
    )

    async def test() -> None:
        inspector = Holding()
        relay = asyncio.create_task(Relay(started, inspector, signals=False).run())
        os.write(ours, b"a prompt\n")
        os.close(ours)
        await inspector.client_left.wait()
        inspector.release()
        assert await relay == 0
        assert os.read(theirs, 100) == b"a prompt\n"

    on(loop, test)
    os.close(theirs)
    agent.returncode = 0  # the relay has waited for it


# Half-close, and the end.


def test_output_after_the_client_closed_stdin_is_still_delivered() -> None:
    agent = python("import os\nwhile os.read(0, 65536): pass\nfor n in range(5000): os.write(1, b'%d\\n' % n)")
    with relayed(*agent) as relay:
        out, _ = relay.communicate(b"question\n")
        assert out.split() == [b"%d" % n for n in range(5000)]
        assert relay.returncode == 0


def test_the_client_sees_the_end_of_stdout_while_the_agent_still_runs() -> None:
    agent = python("import os\nos.write(1, b'last\\n')\nos.close(1)\nos.read(0, 1)\nos._exit(5)")
    with relayed(*agent) as relay:
        assert relay.stdout.readall() == b"last\n"
        assert relay.poll() is None
        relay.stdin.close()
        assert relay.wait() == 5


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 3", 3), ("kill $$", 143), ("kill -9 $$", 137)])
def test_the_exit_status_is_the_agents(script: str, status: int) -> None:
    with relayed("sh", "-c", script) as relay:
        assert relay.wait() == status


def test_an_agent_that_reads_no_more_does_not_hold_up_the_client() -> None:
    agent = python("import os, signal\nos.close(0)\nos.write(1, b'closed\\n')\nwhile True: signal.pause()")
    with relayed(*agent, grace=0.2) as relay:
        assert line(relay.stdout) == b"closed\n"
        send_and_close(relay.stdin, b"x" * 999_999 + b"\n")
        assert relay.wait() == 128 + signal.SIGTERM


def test_all_output_of_an_agent_that_exits_is_delivered_to_a_client_that_reads_late() -> None:
    agent = python("import os\nfor n in range(16): os.write(1, b'x' * 4095 + b'\\n')\nos.write(2, b'done\\n')")
    with relayed(*agent) as relay:
        assert line(relay.stderr) == b"done\n"
        assert len(relay.stdout.readall()) == 16 * 4096


def test_an_agent_that_ignores_the_end_of_stdin_gets_sigterm_after_the_time_of_grace() -> None:
    with relayed(*python(SAYS_ITS_PID + DEAF), grace=0.2) as relay:
        pid = pid_from(relay.stdout)
        relay.stdin.close()
        assert relay.wait() == 128 + signal.SIGTERM
        assert not alive(pid)


def test_an_agent_that_ignores_sigterm_too_is_killed() -> None:
    with relayed(*python("import signal;" + IGNORES_TERM + SAYS_ITS_PID + WAITS), grace=0.2) as relay:
        pid = pid_from(relay.stdout)
        relay.stdin.close()
        assert relay.wait() == 128 + signal.SIGKILL
        assert not alive(pid)


def test_an_agent_that_keeps_writing_after_the_end_of_stdin_may_finish() -> None:
    """Also for longer than the time of grace; a slow machine is given more of it, and has more to do."""
    for grace in (0.4, 2, 10):
        agent = python(
            f"import os, time\nfor n in range(20): os.write(1, b'x\\n'); time.sleep({grace} / 8)\nos._exit(4)"
        )
        with relayed(*agent, grace=grace) as relay:
            assert line(relay.stdout) == b"x\n"
            relay.stdin.close()
            ended = relay.stdout.readall(), relay.wait()
        if ended == (b"x\n" * 19, 4):
            break
    assert ended == (b"x\n" * 19, 4)


def test_an_agent_that_stood_still_with_the_relay_has_its_time_of_grace_afterwards() -> None:
    agent = python(
        "import os, signal\nwhile os.read(0, 1): pass\nos.write(1, b'%d\\n' % os.getpid())\n"
        "os.kill(os.getpid(), signal.SIGSTOP)\nos._exit(7)"
    )
    with relayed(*agent, grace=2) as relay:
        relay.stdin.close()
        pid = pid_from(relay.stdout)
        assert eventually(lambda: state(pid) == "T")
        _still_runs(relay, 0.5)
        relay.send_signal(signal.SIGSTOP)
        _still_runs(relay, 2.5)
        relay.send_signal(signal.SIGCONT)
        _still_runs(relay, 0.5)
        os.kill(pid, signal.SIGCONT)
        assert relay.wait() == 7


def test_a_client_that_vanishes_while_nobody_speaks_ends_the_agent() -> None:
    with relayed(*python(SAYS_ITS_PID + DEAF), grace=0.2) as relay:
        pid = pid_from(relay.stdout)
        relay.stdout.close()  # stdin stays open
        assert relay.wait() == 128 + signal.SIGTERM
        assert not alive(pid)


def test_a_client_that_vanishes_lets_the_agent_leave_by_itself() -> None:
    agent = python("import os\nos.write(1, b'ready\\n')\nwhile os.read(0, 1): pass\nos._exit(8)")
    with relayed(*agent, grace=LIMIT) as relay:
        assert line(relay.stdout) == b"ready\n"
        relay.stdout.close()  # stdin stays open here, but ends for the agent
        assert relay.wait() == 8


def test_a_client_that_vanishes_in_mid_stream_ends_the_agent() -> None:
    agent = python("import os\nos.write(1, b'%d\\n' % os.getpid())\nwhile True: os.write(1, b'x' * 999 + b'\\n')")
    with relayed(*agent, grace=0.2) as relay:
        pid = pid_from(relay.stdout)
        relay.stdout.close()
        relay.wait()
        assert not alive(pid)


def test_a_grandchild_that_keeps_the_pipe_does_not_keep_the_client() -> None:
    with relayed("sh", "-c", "sleep 60 & echo $!") as relay:
        grandchild = pid_from(relay.stdout)
        assert relay.stdout.readall() == b""
        assert relay.wait() == 0
        assert alive(grandchild)  # the agent left by itself: what it left behind is its own affair


# The tree.

LAUNCHER = """
import os, signal, sys
r, w = os.pipe()
child = os.fork()
if not child:
    if "orphan" in sys.argv and os.fork(): os._exit(0)
    if "daemon" in sys.argv: os.setsid()
    os.write(w, b"%d\\n" % os.getpid())
    while True: signal.pause()
if "orphan" in sys.argv: os.waitpid(child, 0)
os.write(1, os.read(r, 20))
while True: signal.pause()
"""


@pytest.mark.parametrize("kind", ["child", "orphan"])
def test_what_the_agent_started_ends_with_it_even_when_its_parent_is_gone(kind: str) -> None:
    with relayed(*python(LAUNCHER), kind, grace=0.2) as relay:
        started = pid_from(relay.stdout)
        relay.stdin.close()
        assert relay.wait() == 128 + signal.SIGTERM
        assert not alive(started)


def test_a_daemon_in_a_session_of_its_own_is_left_alone() -> None:
    with relayed(*python(LAUNCHER), "daemon", grace=0.2) as relay:
        daemon = pid_from(relay.stdout)
        relay.stdin.close()
        relay.wait()
        assert alive(daemon)
        os.kill(daemon, signal.SIGKILL)


def test_orphans_that_end_during_the_session_leave_no_zombies() -> None:
    with relayed(*python(LAUNCHER), "orphan") as relay:
        orphan = pid_from(relay.stdout)
        os.kill(orphan, signal.SIGKILL)
        assert eventually(lambda: not Path(f"/proc/{orphan}").exists())
        assert relay.poll() is None


def test_the_agent_is_in_the_relays_process_group() -> None:
    with relayed(*python("import os; os.write(1, b'%d\\n' % os.getpgid(0)); os.read(0, 1)")) as relay:
        assert pid_from(relay.stdout) == relay.pid


# Signals.


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_relay_ends_the_agent_at_once(number: int) -> None:
    with relayed(*python(SAYS_ITS_PID + DEAF), grace=LIMIT) as relay:
        pid = pid_from(relay.stdout)
        relay.send_signal(number)
        assert relay.wait() == 128 + signal.SIGTERM
        assert not alive(pid)


def test_an_agent_that_handles_the_signal_decides_on_the_exit_status() -> None:
    agent = "import os, signal; signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'bye\\n'), os._exit(9)));"
    with relayed(*python(agent + SAYS_ITS_PID + DEAF), grace=LIMIT) as relay:
        pid_from(relay.stdout)
        relay.send_signal(signal.SIGTERM)
        assert relay.stdout.readall() == b"bye\n"
        assert relay.wait() == 9


def test_a_client_that_does_not_read_cannot_keep_a_signalled_relay_alive() -> None:
    agent = python("import os\nwhile True: os.write(1, b'x' * 999 + b'\\n')")
    with relayed(*agent) as relay:
        assert len(line(relay.stdout)) == 1000
        relay.send_signal(signal.SIGTERM)
        assert relay.wait() == 128 + signal.SIGTERM


def test_when_the_relay_is_killed_an_agent_that_ignores_the_end_of_stdin_ends_too() -> None:
    with relayed(*python(SAYS_ITS_PID + DEAF)) as relay:
        pid = pid_from(relay.stdout)
        relay.kill()
        assert eventually(lambda: not alive(pid))


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_came_ignored_stays_ignored_for_relay_and_agent(number: int) -> None:
    """As under nohup, and for a shell's background jobs."""
    agent = ("sh", "-c", "cat /proc/self/status; echo; cat; exit 6")
    ignoring = f"import os, signal, sys; signal.signal({number}, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    with running(*python(ignoring), *PLAIN, "--", *agent) as relay:
        assert ignored(b"".join(iter(relay.stdout.readline, b"\n"))) == {number}
        relay.send_signal(number)
        for _ in range(20):  # the signal has arrived long before the last of them
            send(relay.stdin, b"still there\n")
            assert line(relay.stdout) == b"still there\n"
        relay.stdin.close()
        assert relay.wait() == 6


def test_signals_that_python_ignores_are_not_ignored_in_the_agent() -> None:
    with relayed("cat", "/proc/self/status") as relay:
        assert ignored(relay.communicate()[0]) == set()


def ignored(status: bytes) -> set[int]:
    (mask,) = (int(row.split()[1], 16) for row in status.splitlines() if row.startswith(b"SigIgn"))
    return {number for number in range(1, 32) if mask >> (number - 1) & 1}


# Kinds of stdin and stdout.


def test_stdin_may_be_a_file_and_stdout_another(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"line\n" * 50_000 + b"end")
    with (
        (tmp_path / "in").open("rb") as stdin,
        (tmp_path / "out").open("wb") as stdout,
        relayed(*ECHO, stdin=stdin, stdout=stdout) as relay,
    ):
        assert relay.wait() == 0
    assert (tmp_path / "out").read_bytes() == b"line\n" * 50_000 + b"end"


def test_stdin_may_be_dev_null() -> None:
    with relayed(*ECHO, stdin=subprocess.DEVNULL) as relay:
        assert relay.wait() == 0


def test_stdin_and_stdout_may_be_closed() -> None:
    with running("sh", "-c", 'exec "$@" <&- >&-', "sh", *PLAIN, "--", "sh", "-c", "cat; echo gone; exit 3") as relay:
        assert relay.wait() == 3


def test_one_socket_may_be_both_stdin_and_stdout() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, relayed(*ECHO, stdin=theirs, stdout=theirs) as relay:
        ours.settimeout(LIMIT)
        ours.sendall(b"over one socket\n")
        assert ours.recv(100) == b"over one socket\n"
        assert os.get_blocking(theirs.fileno())
        ours.shutdown(socket.SHUT_WR)
        assert relay.wait() == 0


def test_pipes_that_the_client_shares_stay_blocking() -> None:
    r, w = os.pipe()
    with os.fdopen(r, "rb") as stdin, os.fdopen(w, "wb", buffering=0) as ours, relayed(*ECHO, stdin=stdin) as relay:
        ours.write(b"hello\n")
        assert line(relay.stdout) == b"hello\n"
        assert os.get_blocking(stdin.fileno())
        assert os.get_blocking(ours.fileno())
        ours.close()
        assert relay.wait() == 0


def test_a_named_pipe_whose_writer_has_left_is_read_and_ends(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with running("sh", "-c", f'exec "$@" < {tmp_path}/pipe', "sh", *PLAIN, "--", *ECHO) as relay:
        (tmp_path / "pipe").write_bytes(b"left behind\n")
        assert relay.stdout.readall() == b"left behind\n"
        assert relay.wait() == 0


# The loop.


def test_asyncios_own_loop_will_do_where_uvloop_is_missing() -> None:
    with running(*PLAIN, "--asyncio", "--grace", "0.2", "--", *python(SAYS_ITS_PID + DEAF)) as relay:
        pid = pid_from(relay.stdout)
        send(relay.stdin, b"x" * 1000)
        relay.stdout.close()
        assert relay.wait() == 128 + signal.SIGTERM
        assert not alive(pid)


def test_an_idle_relay_does_not_wake_up() -> None:
    """Not once in a second of several; what it still has to do on a slow machine it does in those before."""
    with relayed(*ECHO) as relay:
        send(relay.stdin, b"hello\n")
        assert line(relay.stdout) == b"hello\n"
        assert any(_switches_in_a_second(relay) == 0 for _ in range(20))


def _switches_in_a_second(relay: Any) -> int:
    before = switches(relay.pid)
    _still_runs(relay, 1.0)
    return switches(relay.pid) - before


def _still_runs(relay: Any, seconds: float) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        relay.wait(seconds)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def switches(pid: int) -> int:
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(row.split()[1]) for row in rows if "ctxt_switches" in row)
