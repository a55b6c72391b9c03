"""The agent's process and its tree, on both loops, with real children."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from acp_proxy.relay.process import AgentProcess, Process, descendants, process_table, table_of_ps
from tests.agents.client import LIMIT, alive, eventually, python
from tests.agents.loops import LOOPS, Loop, on

# Says its pid and its child's, then waits for ever. The child may be told to do something first.
FAMILY = """
import os, signal, sys
told = sys.argv[1:]
r, w = os.pipe()
child = os.fork()
if not child:
    if "setsid" in told: os.setsid()
    if "deaf" in told: signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(w, b"ready")
    while True: signal.pause()
os.read(r, 5)
os.write(1, b"%d\\n" % child)
while True: signal.pause()
"""


@contextmanager
def child(*command: str) -> Iterator[tuple[int, int]]:
    """The pid of a child that nobody but the code under test waits for, and the number that it says."""
    r, w = os.pipe()
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, w, 1)])
    os.close(w)
    with os.fdopen(r, "rb") as stdout:
        said = int(stdout.readline() or 0)
        try:
            yield pid, said
        finally:
            for each in (pid, said):
                if each and alive(each):
                    os.kill(each, signal.SIGKILL)


def reap(pid: int) -> None:
    """As a program around us may do."""
    os.waitpid(pid, 0)


async def exit_status(pid: int) -> int | None:
    exited = asyncio.Event()
    agent = AgentProcess(pid, exited=exited.set)
    await exited.wait()
    agent.close()
    return agent.status


@LOOPS
@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143), ("kill -9 $$", 137)]
)
def test_the_status_is_the_agents_or_128_and_its_signal(loop: Loop, script: str, status: int) -> None:
    async def test() -> None:
        with child("sh", "-c", script) as (pid, _):
            assert await exit_status(pid) == status

    on(loop, test)


@LOOPS
def test_agents_that_exited_one_after_the_other_leave_no_descriptor(loop: Loop) -> None:
    async def test() -> None:
        await asyncio.sleep(0)  # the loop has what it keeps open
        with child("true") as (first, _), child("true") as (second, _):
            before = descriptors()
            assert [await exit_status(pid) for pid in (first, second)] == [0, 0]
            assert descriptors() <= before

    on(loop, test)


def descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def refused(_pid: int) -> int:
    """As by a sandbox."""
    raise PermissionError


@LOOPS
@pytest.mark.parametrize("pidfd_open", [refused, None])
def test_the_exit_is_seen_without_pidfds_too(loop: Loop, pidfd_open: Callable[[int], int] | None) -> None:
    async def test() -> None:
        with child("sh", "-c", "exit 7") as (pid, _):
            exited = asyncio.Event()
            agent = AgentProcess(pid, exited=exited.set, pidfd_open=pidfd_open)
            await exited.wait()
            assert agent.status == 7

    on(loop, test)


@LOOPS
@pytest.mark.parametrize("pidfd_open", [os.pidfd_open, None])
def test_an_agent_that_somebody_else_reaped_has_ended_all_the_same(
    loop: Loop, pidfd_open: Callable[[int], int] | None
) -> None:
    async def test() -> None:
        with child("true") as (pid, _):
            reap(pid)
            exited = asyncio.Event()
            agent = AgentProcess(pid, exited=exited.set, pidfd_open=pidfd_open)
            await exited.wait()
            assert agent.status == 255

    on(loop, test)


@LOOPS
def test_an_agent_that_is_reaped_while_it_is_watched_has_ended_too(loop: Loop) -> None:
    async def test() -> None:
        with child(*python(FAMILY)) as (pid, _):
            exited = asyncio.Event()
            agent = AgentProcess(pid, exited=exited.set)
            os.kill(pid, signal.SIGKILL)
            reap(pid)
            await exited.wait()
            assert agent.status == 255

    on(loop, test)


@LOOPS
def test_a_child_that_dies_after_the_end_concerns_no_loop_that_is_closed(loop: Loop) -> None:
    async def test() -> None:
        with child("true") as (pid, _):
            exited = asyncio.Event()
            agent = AgentProcess(pid, exited=exited.set, adopts=True)
            await exited.wait()
            agent.close()

    on(loop, test)
    signal.raise_signal(signal.SIGCHLD)


@LOOPS
def test_an_agent_that_dies_after_the_end_concerns_no_loop_that_is_closed(loop: Loop) -> None:
    async def test() -> None:
        AgentProcess(pid, exited=lambda: None, pidfd_open=None).close()

    with child(*python(FAMILY)) as (pid, _):
        on(loop, test)
        os.kill(pid, signal.SIGKILL)
        for thread in threading.enumerate():
            if thread.name == "agent-exit":
                thread.join(LIMIT)


@LOOPS
def test_a_signal_reaches_the_agent_and_what_it_started(loop: Loop) -> None:
    async def test() -> None:
        with child(*python(FAMILY)) as (pid, grandchild):
            agent = AgentProcess(pid, exited=lambda: None)
            agent.signal_tree(signal.SIGTERM)
            assert await agent.gone(within=LIMIT)
            assert agent.status == 128 + signal.SIGTERM
            assert not alive(grandchild)

    on(loop, test)


@LOOPS
def test_what_survives_the_agent_is_still_known_and_killed(loop: Loop) -> None:
    async def test() -> None:
        with child(*python(FAMILY), "deaf") as (pid, grandchild):
            exited = asyncio.Event()
            agent = AgentProcess(pid, exited=exited.set)
            agent.signal_tree(signal.SIGTERM)
            await exited.wait()
            assert not await agent.gone(within=0.3)
            assert agent.status == 128 + signal.SIGTERM
            assert alive(grandchild)
            agent.signal_tree(signal.SIGKILL)
            assert await agent.gone(within=LIMIT)
            assert not alive(grandchild)

    on(loop, test)


@LOOPS
def test_a_session_of_its_own_is_left_alone(loop: Loop) -> None:
    async def test() -> None:
        with child(*python(FAMILY), "setsid") as (pid, daemon):
            agent = AgentProcess(pid, exited=lambda: None)
            agent.signal_tree(signal.SIGKILL)
            assert await agent.gone(within=LIMIT)
            assert alive(daemon)

    on(loop, test)


def test_descendants_come_parents_first_and_strangers_not_at_all() -> None:
    with (
        subprocess.Popen([*python(FAMILY)], stdout=subprocess.PIPE) as family,
        subprocess.Popen(["sleep", "60"]) as other,
    ):
        assert family.stdout
        grandchild = int(family.stdout.readline())
        assert [each.pid for each in descendants(process_table(), [family.pid])] == [family.pid, grandchild]
        os.kill(grandchild, signal.SIGKILL)
        family.kill()
        other.kill()


def test_each_descendant_comes_once_though_the_table_goes_round() -> None:
    """It is read process by process, and a pid that is used anew meanwhile may be its own descendants' child."""
    ring = {pid: Process(pid, parent, 1, 0, dead=False) for pid, parent in ((2, 4), (3, 2), (4, 3))}
    assert [each.pid for each in descendants(ring, [2, 3])] == [2, 3, 4]


def test_the_table_of_proc_and_that_of_ps_agree() -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        pids = {sleeper.pid, os.getpid()}
        listed = table_of_ps(pids)
        assert {(each.pid, each.parent, each.session, each.dead) for each in listed.values()} == {
            (each.pid, each.parent, each.session, each.dead) for each in process_table(pids).values()
        }
        sleeper.kill()


def test_a_process_that_ended_but_was_not_waited_for_counts_as_dead() -> None:
    sleeper = subprocess.Popen(["sleep", "60"])
    assert not process_table([sleeper.pid])[sleeper.pid].dead
    sleeper.kill()
    assert eventually(lambda: process_table([sleeper.pid])[sleeper.pid].dead)
    sleeper.wait()
    assert process_table([sleeper.pid]) == {}
