"""`acp-proxy ledger forget-user` on a real ledger: a name is nowhere any more, and no sum is another."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.notice import plan_reached
from acp_proxy.core.plans import FULL, PlanWindow
from acp_proxy.ledger import OpenTurn, Query, open_ledger
from acp_proxy.ledger.budgets import EXPIRY, Grant
from harness.postgres import Server, asked, running
from harness.rows import ALICE
from tests.core.accounts import budget
from tests.ledger.holds import ELSEWHERE, account
from tests.real.team import Team

GOES, STAYS = "Ana Çelik", "bob"  # JSON in a key has the first one's letters escaped
BUDGETS = """
[[budget]]
name = "each"
per = "user"
window = "month"
limit = { amount = "0.0001", currency = "USD" }
mode = "warn"
[[budget]]
name = "each lately"
per = "user"
window = "rolling:24h"
limit = { amount = "0.0001", currency = "USD" }
mode = "warn"
[[budget]]
name = "all"
window = "month"
limit = { amount = "50", currency = "USD" }
"""
BY = ("user", "team", "project", "agent", "model", "kind", "session")


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture
def team(tmp_path: Path, server: Server) -> Team:
    """Two people have spent something, and been granted something."""
    team = Team(tmp_path, server.create("acp_proxy"), BUDGETS)
    for user in (GOES, STAYS):
        team.play("claude-agent-acp-0.100.0/basic", "--user", user, "--team", "core")
    with closing(open_ledger(team.ledger)) as ledger:
        for number, (value, who) in enumerate([(GOES, STAYS), (STAYS, GOES), (STAYS, STAYS)]):
            ledger.grant(Grant(str(number), "default", "user", "each", value, 1, "USD", 0, 1, who, f"for {value}"))
        now = time.time_ns()
        last = OpenTurn("a turn whose proxy was killed", replace(ALICE, user=GOES), "s1", now, ELSEWHERE)
        hers = account(budget("9 USD", per="user"), last.origin)
        for user in (GOES, STAYS):
            window = PlanWindow("five_hour", FULL, "rejected", now + 1, None, now)
            (state,) = ledger.note_plan(replace(ALICE, user=user), [window])
            assert ledger.announce_plan("default", state, 95, plan_reached("default", state, 95))
        assert ledger.hold(last, [(hers, HoldSize(1, 1))], now, now + EXPIRY).admitted
    killed = "INSERT INTO surcharge SELECT org_id, key, 'a turn that was killed', 0, 1 FROM account WHERE key LIKE '[%'"
    server.execute("acp_proxy", killed)
    return team


def forget(team: Team, alias: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "acp_proxy", "ledger", "forget-user", GOES, "--alias", alias]
    return subprocess.run([*command, "--ledger", team.ledger], capture_output=True, text=True, timeout=60, check=False)


def test_a_name_is_nowhere_any_more_and_no_sum_is_another(team: Team) -> None:
    before = {by: team.report(by) for by in BY}
    budgets = sums(team.budgets())
    assert GOES in everything(team.ledger)
    done = forget(team, "former-1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("under the alias former-1. Sums are as they were.\n")
    assert GOES not in everything(team.ledger)
    for by in BY:
        assert figures(team.report(by)) == figures(before[by])
    assert sorted(each["key"] for each in team.report("user")["rows"]) == sorted([STAYS, "former-1"])
    assert sums(team.budgets()) == budgets
    with closing(open_ledger(team.ledger)) as ledger:
        summed = ledger.summed(Query(), ("user", "team", "model"))
        ledger.rebuild()
        assert ledger.summed(Query(), ("user", "team", "model")) == summed
        for session in (row["key"] for row in team.report("session")["rows"]):
            assert len(list(ledger.recent.keyed(session))) == 1
        assert [(each.value, each.who, each.why) for each in ledger.grants("default")] == [
            ("former-1", STAYS, ""),
            (STAYS, "former-1", ""),
            (STAYS, STAYS, f"for {STAYS}"),
        ]


def test_who_comes_back_is_counted_under_their_name_again_and_what_was_forgotten_is_not(team: Team) -> None:
    before = {row["key"]: row["turns"] for row in team.report("user")["rows"]}
    assert forget(team, "former-1").returncode == 0
    team.play("claude-agent-acp-0.100.0/basic", "--user", GOES, "--team", "core")
    after = {row["key"]: row["turns"] for row in team.report("user")["rows"]}
    assert after == {STAYS: before[STAYS], "former-1": before[GOES], GOES: before[GOES]}
    with closing(open_ledger(team.ledger)) as ledger:
        summed = ledger.summed(Query(), BY[:-1])
        ledger.rebuild()
        assert ledger.summed(Query(), BY[:-1]) == summed


def test_an_alias_that_somebody_has_is_refused_and_nothing_is_changed(team: Team) -> None:
    before = everything(team.ledger)
    done = forget(team, STAYS)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"'{STAYS}' is somebody's name already" in done.stderr
    assert done.stderr.count("\n") == 1
    assert everything(team.ledger) == before


def sums(budgets: list[dict[str, Any]]) -> Any:
    """What stands of the budget of all."""
    (found,) = [each for each in budgets if each["name"] == "all"]
    return found


def figures(report: dict[str, Any]) -> Any:
    """All but the names, in an order that does not go by them."""
    rows = [
        {name: value for name, value in row.items() if name not in ("key", "user", "host")} for row in report["rows"]
    ]
    return sorted(map(repr, rows)), report["total"]


def everything(url: str) -> str:
    """What all tables of a ledger hold, as text; JSON in it with all its letters."""

    found = list[str]()
    for (table,) in asked(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"):
        found += [f"{table}: {row}" for (row,) in asked(url, f"SELECT t::text FROM {table} t ORDER BY 1")]
    return "\n".join(found).replace(r"\\u00c7", "Ç")
