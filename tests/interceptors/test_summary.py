"""The table that stderr gets at the end."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from acp_proxy.core.entry import Entry, SessionState, UsageLine
from acp_proxy.core.events import Implementation, Initialized, PlanReported, SessionOpened, TurnMetered
from acp_proxy.core.plans import FULL, PlanWindow
from acp_proxy.interceptors.summary import Summary
from harness.rows import line, row


def after(*entries: Entry) -> str:
    summary = Summary()
    for entry in entries:
        assert list(summary.on_event(TurnMetered(entry.ended_at, entry, SessionState(), False, False))) == []
    return summary.render()


def met(agent: str) -> Initialized:
    return Initialized(1, 1, client=Implementation(), agent=Implementation(agent), client_notices=False)


def turn(*lines: UsageLine, **fields: Any) -> Entry:
    return row(*lines, **fields).entry


def test_there_is_nothing_to_say_when_there_was_no_turn() -> None:
    summary = Summary()
    summary.on_event(SessionOpened(1, "new", "s"))
    assert summary.render() == ""


def test_one_model_needs_no_total() -> None:
    used = line("claude-sonnet-5", "0.045989", input=100, cached_read=900, output=20, thought=5)
    assert after(turn(used)) == (
        "model            kind  turns  prompt  completion  total     cost\n"
        "claude-sonnet-5  turn      1   1,000          25  1,025  $0.0460\n"
    )


def test_models_and_kinds_have_a_line_each_and_a_turn_of_two_models_is_one_in_the_total() -> None:
    entries = (
        turn(line("opus", "1.5", input=900), line("haiku", "0.25", input=90)),
        turn(line("opus", "0.5", input=9)),
        turn(line("haiku", "0.25", input=1), kind="side"),
    )
    assert after(*entries) == (
        "model  kind  turns  prompt  completion  total     cost\n"
        "opus   turn      2     909           0    909  $2.0000\n"
        "haiku  turn      1      90           0     90  $0.2500\n"
        "haiku  side      0       1           0      1  $0.2500\n"
        "total            2   1,000           0  1,000  $2.5000\n"
    )


def test_a_turn_that_costs_two_currencies_is_one() -> None:
    *_, opus = after(turn(line("opus", "1", input=9), line("opus", "2", "credits", input=0))).splitlines()
    assert opus.split() == ["opus", "turn", "1", "9", "0", "9", "$1.0000", "+", "2.0000", "credits"]


def test_a_cost_that_misses_a_price_is_at_least_that() -> None:
    entries = (turn(line("opus", "1")), turn(line("opus", None)), turn(line(None, None, input=1)))
    *_, opus, unknown, total = after(*entries).splitlines()
    assert opus.endswith("  ≥ $1.0000")
    assert unknown.startswith("unknown ")
    assert unknown.endswith(" ?")
    assert total.endswith("  ≥ $1.0000")


def test_a_total_is_at_least_that_whichever_model_misses_a_price() -> None:
    *_, total = after(turn(line("opus", None, input=9)), turn(line("haiku", "1", input=1))).splitlines()
    assert total.endswith("  ≥ $1.0000")


def test_currencies_are_not_added() -> None:
    assert after(turn(line("a", "1")), turn(line("a", "2", "credits"))).endswith("  $1.0000 + 2.0000 credits\n")


def test_a_models_name_cannot_control_the_terminal() -> None:
    assert "\x1b" not in after(turn(line("\x1b[31mopus\x07", "1")))


def test_the_summary_imports_nothing_that_takes_long() -> None:
    code = "import sys, acp_proxy.interceptors.summary; print({'rich', 'sqlite3', 'asyncio'} & set(sys.modules))"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, check=True, text=True, timeout=30).stdout == "set()\n"


def test_what_a_plan_covers_is_called_a_list_price() -> None:
    summary = Summary(billing_of=lambda agent: "plan" if agent == "codex" else None)
    used = turn(line("claude-sonnet-5", "0.5"))
    metered = TurnMetered(used.ended_at, used, SessionState(), False, False)
    window = PlanWindow("five_hour", FULL // 2, "allowed", None, None, 1)
    summary.on_event(metered)
    assert "list price" not in summary.render()
    summary.on_event(met("codex"))
    summary.on_event(metered)
    assert summary.render().endswith("\nlist price, not billed: $0.50 under a plan\n")
    summary.on_event(met("claude"))
    summary.on_event(PlanReported(1, "s", (window,)))
    summary.on_event(metered)
    assert summary.render().endswith("\nlist price, not billed: $1.00 under a plan\n")
    summary.on_event(PlanReported(1, "s", (PlanWindow("five_hour", FULL, "allowed", None, "in_use", 1),)))
    summary.on_event(metered)
    assert summary.render().endswith("\nlist price, not billed: $1.00 under a plan\n")
