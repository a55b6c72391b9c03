"""A PostgreSQL that is slow, drops connections, says nothing, crashes and comes back: the relay goes on meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.faults import databases
from harness.faults.link import Link, linked
from harness.faults.trial import BUDGET, Home, Verdict
from harness.postgres import Server, running

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
    return databases.home_at(tmp_path, server, link)


def test_one_that_answers_slowly_delays_no_line(home: Home, link: Link) -> None:
    check(databases.answers_slowly(home, link), 60)


def test_one_that_drops_connections(home: Home, link: Link, chance: random.Random) -> None:
    check(databases.drops_connections(home, link, chance), 60)


def test_one_that_says_nothing_any_more(home: Home, link: Link, chance: random.Random) -> None:
    check(databases.falls_silent(home, link, chance), 60)


def test_one_that_is_killed_and_recovers(home: Home, chance: random.Random) -> None:
    check(databases.is_killed(home, chance), 60)


def test_one_that_is_paused_and_goes_on(home: Home, server: Server, chance: random.Random) -> None:
    check(databases.is_paused(home, server, chance), 60)


def test_one_that_is_stopped_and_started(home: Home, server: Server, chance: random.Random) -> None:
    check(databases.fails_over(home, server, chance), 80)


def test_under_a_budget_prompts_wait_for_one_that_is_stopped_and_started(
    home: Home, server: Server, chance: random.Random
) -> None:
    home = Home(home.path, BUDGET, home.url)
    verdict = databases.fails_over(home, server, chance, 60, meanwhile=0)
    assert verdict.defects == []
    assert verdict.unbooked == set()
    assert len(verdict.acked) + len(verdict.refused) == 60


def check(verdict: Verdict, turns: int) -> None:
    assert verdict.defects == []
    assert len(verdict.acked) == turns
    assert verdict.unbooked == set()
