"""Two versions on one ledger: the older one writes nothing that the newer one would have written otherwise."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.ledger import LedgerError, Query, open_ledger
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.ledger.places import default_url
from tests.faults.trial import BUDGET, Home
from tests.ledger.rows import row
from tests.ledger.server import running

NOW = len(MIGRATIONS)


@pytest.mark.parametrize("config", ["", BUDGET.replace("closed", "open").replace("20s", "1s")])
def test_rows_of_a_proxy_wait_when_a_newer_one_has_changed_the_ledger_under_it(config: str, tmp_path: Path) -> None:
    home = Home(tmp_path, config)
    with home.trial(80) as trial:
        trial.until_acked(20)
        booked = set_version(home, NOW + 1)
        trial.until_warned("written by a newer acp-proxy")
        trial.until_over()
        assert set_version(home, NOW) == booked  # as if it had been updated
    verdict = home.verdict(trial)
    assert (verdict.defects, verdict.refused) == ([], set())
    assert len(verdict.acked) == 80


def test_with_a_newer_ledger_the_relay_goes_on_and_commands_end_with_one_line(tmp_path: Path) -> None:
    home = Home(tmp_path)
    open_ledger(home.url, journals=()).close()
    set_version(home, NOW + 1)
    with home.trial(20) as trial:
        trial.until_over()
    report = subprocess.run(
        [sys.executable, "-m", "acp_proxy", "report"], env=home.environ, capture_output=True, text=True, check=False
    )
    assert report.returncode == 2
    assert report.stderr.count("\n") == 1
    assert "written by a newer acp-proxy" in report.stderr
    set_version(home, NOW)
    verdict = home.verdict(trial)
    assert verdict.defects == []
    assert len(verdict.acked) == 20
    assert verdict.stderr.count("ledger.unavailable") == 1


def test_on_postgresql_too_an_open_ledger_notices_a_newer_version() -> None:
    with running() as server, closing(open_ledger(server.create("versions"), journals=())) as ledger:
        ledger.append([row(id="before")])
        server.execute("versions", "UPDATE acp_proxy_schema SET version = version + 1")
        with pytest.raises(LedgerError, match=r"written by a newer acp-proxy: update it$"):
            ledger.append([row(id="meanwhile")])
        server.execute("versions", "UPDATE acp_proxy_schema SET version = version - 1")
        ledger.append([row(id="after")])
        assert {found.entry.id for found in ledger.rows(Query())} == {"before", "after"}


def set_version(home: Home, version: int) -> int:
    """What a newer version does to a ledger that is open elsewhere, and how many rows it has by then."""
    path = default_url(home.environ).removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None, timeout=20)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA user_version = {version}")
        (rows,) = connection.execute("SELECT count(*) FROM turn").fetchone()
        connection.execute("COMMIT")
    return int(rows)
