"""Hubs that are killed, a database that is restarted, and networks that are cut under laptops that share a budget."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.faults.hub_rounds import round_of_troubles
from harness.faults.hubs import team
from harness.postgres import Server, running

pytestmark = pytest.mark.xdist_group("faults of a database")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


def test_nothing_is_overspent_refused_in_vain_lost_or_doubled(
    server: Server, tmp_path: Path, chance: random.Random
) -> None:
    """The short form of `scripts/prove-hub`: two laptops, of which one is offline for a while."""
    with team(tmp_path, server, laptops=2, proxies=1, turns=17) as ours:
        found = round_of_troubles(ours, chance, first=10, then=6)
    assert found.defects == [], ours.events
    assert found.turns + found.refused + found.unchecked == 2 * 17
    assert found.turns >= 2 * 11 - found.unchecked
    assert found.refused
