"""A clock that is set forward and back while turns run: what they cost is booked all the same, and none is refused."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.ledger import Query, open_ledger
from tests.faults.trial import BUDGET, Home

HOUR = 3600
JUMPS = (48 * HOUR, -72 * HOUR, 0, 10 * 365 * 24 * HOUR, 0, -HOUR)  # seconds that the clock is wrong by

# What Python runs before the relay. The client and the agent start without it.
SITE = """
import time
from pathlib import Path
true, offset = time.time_ns, Path({file!r})
time.time_ns = lambda: true() + int(offset.read_text()) * 10**9
time.time = lambda: time.time_ns() / 1e9
"""


@pytest.mark.parametrize("config", ["", BUDGET])
def test_a_clock_that_jumps_loses_no_turn_and_refuses_none(config: str, tmp_path: Path) -> None:
    site, offset = tmp_path / "site", tmp_path / "offset"
    site.mkdir()
    (site / "sitecustomize.py").write_text(SITE.format(file=str(offset)))
    _set(offset, 0)
    home = Home(tmp_path, config, extra={"PYTHONPATH": str(site)})
    with home.trial(60) as trial:
        for number, jump in enumerate(JUMPS):
            trial.until_acked(6 * (number + 1))
            _set(offset, jump)
        trial.until_over()
    verdict = home.verdict(trial)
    assert (verdict.defects, verdict.refused) == ([], set())
    assert len(verdict.acked) == 60
    with closing(open_ledger(home.url, journals=())) as ledger:
        starts = [row.entry.started_at for row in ledger.rows(Query())]
    assert max(starts) - min(starts) > 48 * HOUR * 10**9  # else it would not have jumped


def _set(offset: Path, seconds: int) -> None:
    """In one step: whoever reads it must never find it empty."""
    new = offset.with_suffix(".new")
    new.write_text(str(seconds))
    new.rename(offset)
