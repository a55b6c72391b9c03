"""A PostgreSQL that is slow, drops connections, says nothing, crashes and comes back: the relay goes on meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import asyncpg
import pytest

from acp_proxy.ledger import open_ledger
from tests.faults.link import Link, linked
from tests.faults.trial import BUDGET, Home, Verdict, until
from tests.ledger.server import Server, running

pytestmark = pytest.mark.xdist_group("faults of a database")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture
def link(server: Server) -> Iterator[Link]:
    with linked(server.port) as link:
        yield link


@pytest.fixture
def home(server: Server, link: Link, tmp_path: Path) -> Home:
    """Its relays reach the database through the link."""
    url = server.create(tmp_path.name)
    open_ledger(url, journals=()).close()
    return Home(tmp_path, url=url.replace(f":{server.port}/", f":{link.port}/"))


def test_one_that_answers_slowly_delays_no_line(home: Home, link: Link) -> None:
    link.delay = 0.05
    with home.trial(60) as trial:
        trial.until_over()
    link.delay = 0
    check(home.verdict(trial), 60)


def test_one_that_drops_connections(home: Home, link: Link) -> None:
    with home.trial(60) as trial:
        for turns in (5, 15, 25, 35):
            trial.until_acked(turns)
            link.cut()
        trial.until_over()
    check(home.verdict(trial), 60)


def test_one_that_says_nothing_any_more(home: Home, link: Link) -> None:
    with home.trial(60) as trial:
        trial.until_acked(10)
        link.fall_silent()
        trial.until_over()
    link.speak()
    check(home.verdict(trial), 60)


def killed(backend: int) -> bool:
    """Whether there was such a backend: one that ends by itself is none, and 0 would be all of us."""
    if not backend:
        return False
    with suppress(ProcessLookupError):
        os.kill(backend, signal.SIGKILL)
        return True
    return False


def test_one_that_is_killed_and_recovers(home: Home) -> None:
    with home.trial(60) as trial:
        trial.until_acked(20)
        assert until(lambda: killed(asyncio.run(backend(home.url))))  # the server ends all others, and recovers
        trial.until_over()
    assert until(lambda: asyncio.run(backend(home.url)))
    check(home.verdict(trial), 60)


def test_one_that_is_stopped_and_started(home: Home, server: Server) -> None:
    with home.trial(80) as trial:
        trial.until_acked(10)
        server.stop()
        trial.until_acked(60)
        server.start()
        trial.until_over()
    check(home.verdict(trial), 80)


def test_under_a_budget_prompts_wait_for_one_that_is_stopped_and_started(
    home: Home, server: Server, link: Link
) -> None:
    home = Home(home.path, BUDGET, home.url)
    with home.trial(60) as trial:
        trial.until_acked(10)
        server.stop()
        server.start()
        trial.until_over()
    verdict = home.verdict(trial)
    assert verdict.defects == []
    assert verdict.unbooked == set()
    assert len(verdict.acked) + len(verdict.refused) == 60


def check(verdict: Verdict, turns: int) -> None:
    assert verdict.defects == []
    assert len(verdict.acked) == turns
    assert verdict.unbooked == set()


async def backend(url: str) -> int:
    """The process that serves a relay, or whoever asks where there is none; 0 while the database is away."""
    try:
        connection = await asyncpg.connect(url)
    except (OSError, asyncpg.PostgresError):
        return 0
    try:
        sql = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() ORDER BY application_name = $1 DESC"
        return int(await connection.fetchval(sql, "acp-proxy"))
    finally:
        await connection.close()
