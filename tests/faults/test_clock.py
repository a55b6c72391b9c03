"""A clock that is set forward and back while turns run: what they cost is booked all the same, and none is refused."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.ledger import Query, open_ledger
from harness.faults.trial import BUDGET, Home
from harness.faults.troubles import HOUR, clock_jumps


@pytest.mark.parametrize("config", ["", BUDGET])
def test_a_clock_that_jumps_loses_no_turn_and_refuses_none(config: str, tmp_path: Path) -> None:
    home = Home(tmp_path, config)
    verdict = clock_jumps(home)
    assert (verdict.defects, verdict.refused) == ([], set())
    assert len(verdict.acked) == 60
    with closing(open_ledger(home.url, journals=())) as ledger:
        starts = [row.entry.started_at for row in ledger.rows(Query())]
    assert max(starts) - min(starts) > 48 * HOUR * 10**9  # else it would not have jumped
