"""Two machines whose hub goes away: they spend what was lent to them, are refused, and lose and double no turn."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from acp_proxy.core.budget import Account, Budget, Limit, account_of
from acp_proxy.core.budget.lease import Terms
from acp_proxy.core.scope import Subject
from acp_proxy.core.windows import Window
from acp_proxy.hub.identity import Identity
from acp_proxy.ledger import Query
from acp_proxy.ledger.hub.ledger import HubLedger
from acp_proxy.ledger.hub.policy import Changes
from harness import hub
from harness.daemons import until
from harness.ports import free_port
from tests.hub.laptops import POOL, editor, ledger_of, lent

PEOPLE = {
    "root": Identity("root", "default", None, "administrator"),
    "ann": Identity("ann", "default", "core", "developer"),
    "bob": Identity("bob", "default", "core", "developer"),
}


def test_they_spend_what_was_lent_and_no_more_and_each_turn_arrives_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, port, terms = f"sqlite:///{tmp_path}/ledger.db", free_port(), Terms(share=20)
    url = f"http://127.0.0.1:{port}"
    monkeypatch.setenv("ACP_PROXY_HUB_TOKEN", "root")
    first = hub.running(kept, PEOPLE, lease=terms, port=port)
    first.__enter__()
    with closing(ledger_of(url, "root")) as ledger:
        ledger.change_policy(Changes({"pool": dict(POOL)}))
    homes = [tmp_path / "laptop of ann", tmp_path / "laptop of bob"]
    with editor(homes[0], url, "ann") as ann, editor(homes[1], url, "bob") as bob:
        for each, home in ((ann, homes[0]), (bob, homes[1])):
            assert "Fahrenheit" in each.prompt()
            until(lambda home=home: lent(home), "something is lent")  # type: ignore[misc]
        first.__exit__(None, None, None)
        before = [sum(lent(home)["left"].values()) for home in homes]
        assert before == [3, 3]
        for each in (ann, bob):
            said = [each.prompt() for _ in range(4)]
            assert ["Not sent" in text for text in said] == [False, False, False, True]
            assert 'budget "pool" cannot be checked' in said[-1]
            assert "nothing is left of what was set aside for this machine" in said[-1]
        with hub.running(kept, PEOPLE, lease=terms, port=port), closing(ledger_of(url, "root")) as ledger:
            until(lambda: len(list(ledger.rows(Query()))) == 8, "all turns are there")
            rows = list(ledger.rows(Query()))
            assert sorted(row.origin.user for row in rows) == ["ann"] * 4 + ["bob"] * 4
            assert len({row.entry.id for row in rows}) == 8
            assert "Not sent" not in ann.prompt()


def held(ledger: HubLedger) -> int:
    """Turns of the pool that are lent or held now."""
    ours = [each for each in ledger.policy(None)[1].document.budgets if each["name"] == "pool"]  # type: ignore[index]
    assert ours
    (standing,) = ledger.standing([_pool()], time.time_ns())
    return standing.held


def _pool() -> Account:
    pool = Budget("pool", "hub", Window.parse("month"), Limit(20, "turns"))
    subject = Subject("default", "root", None, None, "", "", None, None)
    return account_of(pool, subject, time.time_ns(), ZoneInfo("UTC"), "")


def test_a_proxy_that_is_killed_leaves_its_lease_to_the_next_which_gives_it_back_when_all_rows_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, port, terms = f"sqlite:///{tmp_path}/ledger.db", free_port(), Terms(share=20)
    url, home = f"http://127.0.0.1:{port}", tmp_path / "laptop"
    monkeypatch.setenv("ACP_PROXY_HUB_TOKEN", "root")
    with hub.running(kept, PEOPLE, lease=terms, port=port), closing(ledger_of(url, "root")) as ledger:
        ledger.change_policy(Changes({"pool": dict(POOL)}))
        killed = editor(home, url, "ann")
        ann = killed.__enter__()
        ann.prompt()
        until(lambda: lent(home), "something is lent")
    first = lent(home)["id"]
    for _ in range(2):
        assert "Not sent" not in ann.prompt()
    ann.kill()
    killed.__exit__(None, None, None)
    with editor(home, url, "ann") as again:
        assert "Not sent" not in again.prompt()
        assert "Not sent" in again.prompt()
        with hub.running(kept, PEOPLE, lease=terms, port=port), closing(ledger_of(url, "root")) as ledger:
            assert "Not sent" not in again.prompt()
            until(lambda: len(list(ledger.rows(Query()))) == 5, "all turns are there")
            until(lambda: lent(home).get("id", first) != first, "another one is lent")
            until(lambda: held(ledger) == sum(lent(home)["left"].values()), "nothing else is held")
    with hub.running(kept, PEOPLE, lease=terms, port=port), closing(ledger_of(url, "root")) as ledger:
        assert held(ledger) > 0
        environment = {"HOME": str(home), "PATH": os.environ["PATH"], "ACP_PROXY_HUB_TOKEN": "ann"}
        command = [sys.executable, "-m", "acp_proxy", "logout"]
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)
        assert held(ledger) == 0
        assert lent(home) == {}


def test_a_hub_that_was_restored_from_a_backup_is_sent_all_that_machines_wrote_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waited, and what it had acknowledged; and what was spent is counted as before."""
    file, port = tmp_path / "ledger.db", free_port()
    kept, url, home = f"sqlite:///{file}", f"http://127.0.0.1:{port}", tmp_path / "laptop"
    monkeypatch.setenv("ACP_PROXY_HUB_TOKEN", "root")

    def rows(ledger: HubLedger) -> int:
        return len(list(ledger.rows(Query())))

    first = hub.running(kept, PEOPLE, lease=Terms(share=20), port=port)
    first.__enter__()
    with closing(ledger_of(url, "root")) as ledger:
        ledger.change_policy(Changes({"pool": dict(POOL)}))
        with editor(home, url, "ann") as ann:
            ann.prompt()
            until(lambda: rows(ledger) == 1, "the first turn is there")
            with closing(sqlite3.connect(file)) as database:
                database.execute(f"VACUUM INTO '{tmp_path}/copy.db'")
            ann.prompt()
            until(lambda: rows(ledger) == 2 and lent(home), "the second turn is there")
            first.__exit__(None, None, None)
            assert "Not sent" not in ann.prompt()
            for each in tmp_path.glob("ledger.db*"):
                each.unlink()
            (tmp_path / "copy.db").rename(file)
            with hub.running(kept, PEOPLE, lease=Terms(share=20), port=port):
                assert "Not sent" not in ann.prompt()
                until(lambda: rows(ledger) == 4, "the one before the backup, the lost one, that which waited, the next")
                assert ledger.standing([_pool()], time.time_ns())[0].spent == 4
