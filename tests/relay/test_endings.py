"""How a relay ends between a real client and a real agent, whoever leaves first: every rule of it, once."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

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

DEAF = "import signal; signal.pause()"
SAYS_ITS_PID = "import os, signal; os.write(1, b'%d\\n' % os.getpid());"
IGNORES_TERM = "signal.signal(signal.SIGTERM, signal.SIG_IGN);"
WAITS = "\nwhile True: signal.pause()"


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
    """With more of it where the machine itself stood still: we are to come back within that time, too."""
    agent = python(
        "import os, signal\nwhile os.read(0, 1): pass\nos.write(1, b'%d\\n' % os.getpid())\n"
        "os.kill(os.getpid(), signal.SIGSTOP)\nos._exit(7)"
    )
    for grace in (2, 20):
        with relayed(*agent, grace=grace) as relay:
            relay.stdin.close()
            pid = pid_from(relay.stdout)
            assert eventually(lambda pid=pid: state(pid) == "T")  # type: ignore[misc]  # mypy gives no type to a default of a lambda
            for number, seconds in ((signal.SIGSTOP, grace + 0.5), (signal.SIGCONT, 0.5)):
                relay.send_signal(number)
                with suppress(subprocess.TimeoutExpired):
                    relay.wait(seconds)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            if (status := relay.wait()) == 7:
                break
    assert status == 7


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


def test_a_client_to_whom_nothing_can_be_written_is_as_one_that_vanished() -> None:
    """A file where the disk is full: nobody tells of it but the write."""
    agent = python("import os\nos.write(1, b'lost\\n')\nwhile os.read(0, 1): pass\nos._exit(8)")
    with Path("/dev/full").open("wb") as full, relayed(*agent, grace=LIMIT, stdout=full) as relay:
        assert relay.wait() == 8  # stdin stays open here, but ends for the agent


def test_a_grandchild_that_keeps_the_pipe_does_not_keep_the_client() -> None:
    with relayed("sh", "-c", "sleep 60 & echo $!") as relay:
        grandchild = pid_from(relay.stdout)
        assert relay.stdout.readall() == b""
        assert relay.wait() == 0
        assert alive(grandchild)  # the agent left by itself: what it left behind is its own affair


def test_what_an_agent_that_ends_with_its_client_leaves_behind_is_its_own_affair_too() -> None:
    with relayed("sh", "-c", "sleep 60 >/dev/null & echo $!; read -r line; exit 5") as relay:
        grandchild = pid_from(relay.stdout)
        relay.stdin.close()
        assert relay.wait() == 5
        assert alive(grandchild)


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
    with relayed("sh", "-c", "(sleep 600 & echo $!); (sleep 600 & echo $!); read -r line") as relay:
        for orphan in [pid_from(relay.stdout), pid_from(relay.stdout)]:
            os.kill(orphan, signal.SIGKILL)
            assert is_reaped(orphan)
        assert relay.poll() is None


def is_reaped(pid: int) -> bool:
    return eventually(lambda: not Path(f"/proc/{pid}").exists())


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


def test_an_agent_that_is_deaf_to_the_signal_is_told_by_the_end_of_its_stdin() -> None:
    agent = "import signal;" + IGNORES_TERM + SAYS_ITS_PID + "os.read(0, 1); os._exit(9)"
    with relayed(*python(agent), grace=LIMIT) as relay:
        pid_from(relay.stdout)
        relay.send_signal(signal.SIGTERM)
        assert relay.wait() == 9


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


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
