"""Hubs that are killed, a database that is restarted and networks that are cut under proxies that share a budget."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.faults.hubs import round_of_troubles, team
from harness.postgres import Server, running

pytestmark = pytest.mark.xdist_group("faults of a database")

PROXIES, TURNS, LIMIT = 3, 24, 54


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


def test_nothing_is_overspent_refused_in_vain_lost_or_doubled(
    server: Server, tmp_path: Path, chance: random.Random
) -> None:
    """The short form of `scripts/prove-hub`."""
    with team(tmp_path, server, LIMIT) as ours:
        found = round_of_troubles(ours, chance, PROXIES, TURNS, LIMIT)
    assert found.defects == [], (ours.events, found.verdict.stderr)
    assert len(found.verdict.acked) + len(found.verdict.refused) == PROXIES * TURNS
    assert found.verdict.acked
