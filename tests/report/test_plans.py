"""`report --plans` and the windows of a plan in a status: what is unknown, or over, is said so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.core.plans import FULL, PlanState, PlanWindow
from acp_proxy.core.windows import DAY, HOUR
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.report import Line, plans
from acp_proxy.status import formats
from acp_proxy.status.overview import Status
from acp_proxy.text.plans import state_text, warning, window_name
from acp_proxy.text.times import UTC_ZONE
from harness.rows import ALICE, BOB, MINUTE, NOON

END = NOON + 2 * HOUR
FIVE = PlanWindow("five_hour", FULL * 62 // 100, "allowed", END, "rejected", NOON)
WEEK = PlanWindow("seven_day", FULL * 34 // 100, "allowed", NOON + 2 * DAY - 3 * HOUR, "rejected", NOON)
BEGAN = END - 5 * HOUR


def state(told: PlanWindow = FIVE, agent: str = ALICE.agent) -> PlanState:
    return PlanState("alice", agent, told, told.seen_at, told.used)


def status_of(*states: PlanState, now: int = NOON) -> Status:
    nothing = Line("total")
    return Status("alice", UTC_ZONE, now, nothing, nothing, nothing, (), None, states)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[BudgetLedger]:
    with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())) as opened:
        yield opened


class TestStatus:
    def test_each_window_is_said_with_its_reset(self) -> None:
        line = formats.as_line(status_of(state(), state(WEEK)))
        assert line == "$0.00 today · 5 h: 62 % until 14:00 · week: 34 % until Mon 09:00\n"
        assert formats.as_text(status_of(state()), "{plan}") == "5 h: 62 % until 14:00\n"
        assert formats.as_text(status_of(), "{plan}") == "-\n"

    def test_of_several_agents_each_is_named(self) -> None:
        other = state(WEEK, "@agentclientprotocol/other-acp")
        assert "claude-agent-acp 5 h: 62 % until 14:00 · other-acp week:" in formats.as_line(status_of(state(), other))

    def test_a_window_that_was_reset_says_so_for_a_day(self) -> None:
        assert "5 h: reset at 14:00" in formats.as_line(status_of(state(), now=END))
        assert formats.as_line(status_of(state(), now=END + DAY)) == "$0.00 today\n"

    def test_json_has_every_window_exactly(self) -> None:
        five, week = json.loads(formats.as_json(status_of(state(), state(WEEK), now=END)))["plans"]
        assert five == {
            "agent": "claude-agent-acp",
            "window": "five_hour",
            "used": None,
            "status": "allowed",
            "resets_at": "2026-11-21T14:00:00Z",
            "overage": "rejected",
            "seen_at": "2026-11-21T12:00:00Z",
            "projected_full_at": None,
        }
        assert (week["used"], week["resets_at"]) == (0.34, "2026-11-23T09:00:00Z")

    def test_when_it_will_be_full_follows_from_its_pace(self) -> None:
        now = END - 2 * HOUR
        (told,) = json.loads(formats.as_json(status_of(state(replace(FIVE, used=FULL * 3 // 4)), now=now)))["plans"]
        assert told["projected_full_at"] == "2026-11-21T13:00:00Z"  # three quarters in three hours


class TestWords:
    @pytest.mark.parametrize(
        ("window", "name"),
        [
            ("five_hour", "5 h"),
            ("seven_day", "week"),
            ("seven_day_opus", "week (opus)"),
            ("lunar_month", "lunar_month"),
            ("\x1b[31m\n", "plan"),
        ],
    )
    def test_names_are_short_and_harmless(self, window: str, name: str) -> None:
        assert window_name(window) == name

    @pytest.mark.parametrize(
        ("told", "text"),
        [
            (replace(FIVE, status="rejected", used=FULL), "5 h: 100 %, rejected until 14:00"),
            (replace(FIVE, status="rejected", used=None), "5 h: rejected until 14:00"),
            (replace(FIVE, used=None), "5 h: ? until 14:00"),
            (replace(FIVE, used=FULL - 1, resets_at=None), "5 h: 99 %"),
            (replace(WEEK, resets_at=NOON + 20 * DAY), "week: 34 % until 2026-12-11 12:00"),
        ],
    )
    def test_what_is_not_known_is_not_said(self, told: PlanWindow, text: str) -> None:
        assert state_text(state(told), NOON, UTC_ZONE) == text

    def test_a_warning_says_how_long_it_lasts(self) -> None:
        nearly = state(replace(FIVE, used=FULL * 91 // 100, overage="in_use"))
        assert warning(nearly, 90, NOON, UTC_ZONE) == (
            "90 % of your plan's window (5 h) is reached: 91 % is used. At this pace it is used up at 12:17. "
            "What is used now is paid beside the plan. It resets at 14:00."
        )


class TestReport:
    def test_it_shows_how_windows_stand_and_how_they_came_to_it(self, ledger: BudgetLedger) -> None:
        ledger.note_plan(ALICE, [replace(FIVE, used=FULL // 4, seen_at=NOON - HOUR)])
        ledger.note_plan(ALICE, [FIVE, WEEK])
        report = plans.plan_report(ledger, "default", UTC_ZONE, NOON + MINUTE)
        assert plans.as_text(report) == (
            "agent             window  used  status   resets     full at this pace  seen\n"
            "claude-agent-acp  5 h     62 %  allowed  14:00      13:50              12:00\n"
            "claude-agent-acp  week    34 %  allowed  Mon 09:00  -                  12:00\n"
            "\n"
            "when              agent             window  used  status\n"
            "2026-11-21 11:00  claude-agent-acp  5 h     25 %  allowed\n"
            "2026-11-21 12:00  claude-agent-acp  5 h     62 %  allowed\n"
            "2026-11-21 12:00  claude-agent-acp  week    34 %  allowed\n"
        )
        later = plans.plan_report(ledger, "default", UTC_ZONE, END)
        assert "5 h        ?  was reset  14:00      -" in plans.as_text(later)

    def test_users_are_named_where_there_are_several(self, ledger: BudgetLedger) -> None:
        ledger.note_plan(ALICE, [FIVE])
        ledger.note_plan(BOB, [FIVE])
        text = plans.as_text(plans.plan_report(ledger, "default", UTC_ZONE, NOON))
        assert "user   agent" in text
        assert "bob    claude-agent-acp  5 h" in text
        assert "bob" not in plans.as_text(plans.plan_report(ledger, "default", UTC_ZONE, NOON, user="alice"))

    def test_the_latest_changes_are_shown_and_the_others_are_counted(self, ledger: BudgetLedger) -> None:
        for hundredth in range(60):
            ledger.note_plan(ALICE, [replace(FIVE, used=hundredth * FULL // 100, seen_at=NOON + hundredth)])
        report = plans.plan_report(ledger, "default", UTC_ZONE, NOON + MINUTE)
        assert "\n20 earlier changes are not shown" in plans.as_text(report)
        assert plans.as_text(report, 2).count("2026-11-21 12:00") == 2
        assert "not shown" not in plans.as_text(report, 60)

    def test_json_and_csv_have_the_history_exactly(self, ledger: BudgetLedger) -> None:
        ledger.note_plan(replace(ALICE, agent="=cmd()"), [FIVE])
        report = plans.plan_report(ledger, "default", UTC_ZONE, NOON)
        whole = json.loads(plans.as_json(report))
        assert [(each["user"], each["used"]) for each in whole["plans"]] == [("alice", 0.62)]
        assert whole["history"] == [
            {
                "at": "2026-11-21T12:00:00Z",
                "user": "alice",
                "agent": "=cmd()",
                "window": "five_hour",
                "used": 0.62,
                "status": "allowed",
                "resets_at": "2026-11-21T14:00:00Z",
                "overage": "rejected",
            }
        ]
        header, line = "".join(plans.as_csv(report)).splitlines()
        assert header == "at,user,agent,window,used,status,resets_at,overage"
        assert line == "2026-11-21T12:00:00Z,alice,'=cmd(),five_hour,0.62,allowed,2026-11-21T14:00:00Z,rejected"

    def test_a_ledger_without_a_plan_says_why(self, ledger: BudgetLedger) -> None:
        assert "No agent has told" in plans.as_text(plans.plan_report(ledger, "default", UTC_ZONE, NOON))


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "TZ": "UTC", "USER": "alice"}
    command = [sys.executable, "-m", "acp_proxy", "report", *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_takes_what_a_plan_has(tmp_path: Path, ledger: BudgetLedger) -> None:
    ledger.note_plan(ALICE, [FIVE])
    at = ("--ledger", str(tmp_path / "ledger.db"), "--plans")
    assert "claude-agent-acp  5 h" in run(tmp_path, *at).stdout
    assert len(json.loads(run(tmp_path, *at, "--json", "--since", "2026-11-21").stdout)["history"]) == 1
    assert json.loads(run(tmp_path, *at, "--json", "--agent", "other").stdout)["plans"] == []
    assert run(tmp_path, *at, "--csv", "--since", "2026-11").stdout.startswith("at,user,agent,window")
    for wrong in (("--model", "opus"), ("--by", "day"), ("today",), ("--coverage",)):
        done = run(tmp_path, *at, *wrong)
        assert done.returncode == 2
        assert "report --plans: expected --agent, --user, --since or --until, not" in done.stderr
