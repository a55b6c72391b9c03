"""SIGSTOP and SIGCONT of each party: it takes longer, and that is all."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

from harness.faults.trial import BUDGET, Home, Party, stop


@pytest.mark.parametrize("party", ["client", "relay", "agent"])
def test_who_is_stopped_and_goes_on_loses_nothing(party: Party, chance: random.Random, tmp_path: Path) -> None:
    verdict = stop(party, Home(tmp_path, BUDGET), chance)
    assert verdict.defects == []
    assert len(verdict.acked) == 60
    assert verdict.refused == set()


def test_a_relay_that_is_stopped_costs_its_neighbour_on_the_ledger_nothing(
    chance: random.Random, tmp_path: Path
) -> None:
    """It may have stopped in a transaction, which the other one then waits for."""
    home = Home(tmp_path)
    with home.trial(60) as stopped, home.trial(60) as other:
        stopped.until_acked(chance.randint(1, 30))
        stopped.signal("relay", signal.SIGSTOP)
        other.until_over()
        stopped.signal("relay", signal.SIGCONT)
        stopped.until_over()
    verdict = home.verdict(stopped, other)
    assert verdict.defects == []
    assert len(verdict.acked) == 120
