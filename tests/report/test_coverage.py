"""How much went through a relay: rows of relays beside rows of imports."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from acp_proxy.books.agents import family
from acp_proxy.core.entry import IMPORT
from acp_proxy.ledger import Ledger, Query
from acp_proxy.report import coverage
from acp_proxy.text import times
from harness.rows import ALICE, NOON, line, row

CLAUDE = replace(ALICE, agent="@agentclientprotocol/claude-agent-acp")
BESIDE = replace(ALICE, agent="claude-code", client=IMPORT)
OTHER = replace(ALICE, agent="other-agent")
DAY = 86_400 * 10**9


def found(ledger: Ledger, by: str = "agent") -> dict[str, coverage.Covered]:
    return {each.key: each for each in coverage.coverage(ledger, by, Query(), times.UTC_ZONE)}


def test_an_agents_relayed_and_imported_rows_are_one_line(ledger: Ledger) -> None:
    ledger.append([row(line(cost="3", input=300), origin=CLAUDE), row(line(cost="1", input=100), origin=BESIDE)])
    (each,) = found(ledger).values()
    assert (each.key, each.relayed, each.imported) == ("claude-code", 300, 100)
    assert [cost.text for cost in (*each.relayed_costs, *each.imported_costs)] == ["3", "1"]
    assert coverage.plain([each], "agent").splitlines()[1].split() == [
        *("claude-code", "75%", "300", "100", "$3.0000", "$1.0000")
    ]


def test_where_nothing_was_imported_the_share_is_unknown_and_not_in_the_total(ledger: Ledger) -> None:
    ledger.append([row(line(input=500), origin=OTHER), row(line(input=100), origin=BESIDE)])
    lines = found(ledger)
    assert lines["other-agent"].imported is None
    assert coverage.together(lines.values()).relayed == 0
    text = coverage.plain(list(lines.values()), "agent")
    assert "other-agent     ?" in text
    assert "?: nothing was imported of it, and it is not in the total" in text


def test_without_any_import_it_says_how_to_make_one(ledger: Ledger) -> None:
    ledger.append([row()])
    assert "acp-proxy import" in coverage.plain(list(found(ledger).values()), "agent")


def test_days_are_told_apart(ledger: Ledger) -> None:
    ledger.append([row(line(input=300), origin=CLAUDE), row(line(input=100), origin=BESIDE, at=NOON + DAY)])
    assert {key: (each.relayed, each.imported) for key, each in found(ledger, "day").items()} == {
        "2026-11-21": (300, None),
        "2026-11-22": (0, 100),
    }


def test_json_has_exact_figures_and_null_for_what_is_unknown(ledger: Ledger) -> None:
    ledger.append([row(line(cost="0.3", input=300), origin=CLAUDE), row(line(cost="0.1", input=100), origin=BESIDE)])
    ledger.append([row(line(input=5), origin=OTHER)])
    lines = list(found(ledger).values())
    told = json.loads(coverage.as_json(lines, "agent", Query(), times.UTC_ZONE))
    assert {each["key"]: each["seen"] for each in told["rows"]} == {"claude-code": 0.75, "other-agent": None}
    assert told["total"]["imported"] == {"tokens": 100, "cost": {"USD": "0.1"}}


@pytest.mark.parametrize(
    ("agent", "known"),
    [
        ("@agentclientprotocol/claude-agent-acp", "claude-code"),
        ("codex-acp", "codex"),
        ("gemini-cli", "gemini-cli"),
        ("OpenCode", "opencode"),
        ("goose", "goose"),
        ("claudette", "claudette"),
    ],
)
def test_an_agent_is_known_by_the_name_that_an_import_gives_it(agent: str, known: str) -> None:
    assert family(agent) == known
