"""Two versions on one ledger: the older one writes nothing that the newer one would have written otherwise."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from acp_proxy.ledger import open_ledger
from harness.faults.trial import BUDGET, Home
from harness.faults.troubles import newer_ledger_is_there, newer_version_comes


@pytest.mark.parametrize("config", ["", BUDGET.replace("closed", "open").replace("20s", "1s")])
def test_rows_of_a_proxy_wait_when_a_newer_one_has_changed_the_ledger_under_it(
    config: str, tmp_path: Path, chance: random.Random
) -> None:
    verdict = newer_version_comes(Home(tmp_path, config), chance)
    assert (verdict.defects, verdict.refused) == ([], set())
    assert len(verdict.acked) == 80


def test_with_a_newer_ledger_the_relay_goes_on_and_commands_end_with_one_line(tmp_path: Path) -> None:
    home = Home(tmp_path)
    open_ledger(home.url, journals=()).close()
    verdict, report = newer_ledger_is_there(home)
    assert report.returncode == 2
    assert report.stderr.count("\n") == 1
    assert "written by a newer acp-proxy" in report.stderr
    assert verdict.defects == []
    assert len(verdict.acked) == 60
    assert verdict.stderr.count("ledger.unavailable") == 1
