"""Budgets on plans in `budget`, `status`, `doctor` and metrics: what refuses, and what is not known."""

from __future__ import annotations

import json
import time
import tomllib
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.core.plans import FULL, PlanWindow
from acp_proxy.core.windows import HOUR
from acp_proxy.ledger import open_ledger
from harness.rows import ALICE, NOON
from tests.machine import Machine
from tests.metrics.scrapes import configuration, scrape

KEEP = '[[budget]]\nname = "keep"\nlimit = { plan = "five_hour", percent = 80 }\n'
AGENT = ALICE.agent


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    configure(made, KEEP)
    return made


def configure(machine: Machine, text: str) -> Path:
    path = machine.home / ".config/acp-proxy/config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def told(machine: Machine, used: int, window: str = "five_hour") -> None:
    """That so many percent are used, just now."""
    now = time.time_ns()
    with closing(open_ledger(machine.url, journals=())) as ledger:
        ledger.note_plan(ALICE, [PlanWindow(window, used * FULL // 100, "allowed", now + 2 * HOUR, None, now)])


def test_a_list_has_what_is_used_and_what_becomes_of_prompts(machine: Machine) -> None:
    told(machine, 62)
    assert "keep    claude-agent-acp  enforce  5 h     62 %   80 %  go" in machine.answer("budget", "list")
    (found,) = json.loads(machine.answer("budget", "list", "--json"))["plan_budgets"]
    assert (found["name"], found["plan"], found["percent"], found["agent"]) == ("keep", "five_hour", 80, AGENT)
    assert (found["used"], found["decision"], found["why"], found["until"]) == (0.62, "allow", None, None)
    told(machine, 81)
    assert "81 %   80 %  refused" in machine.answer("budget", "list")


def test_what_is_not_known_is_said_everywhere(machine: Machine) -> None:
    machine.fill()
    assert 'How much of budget "keep" is used is not known: it refuses nobody.' in machine.answer("budget", "list")
    assert "keep refuses nobody: its window is not known" in machine.answer("status")
    (found,) = json.loads(machine.answer("status", "--json"))["plan_budgets"]
    assert (found["used"], found["decision"], found["agent"]) == (None, "allow", None)
    assert (
        'budget: "keep" (user): 80 % of a plan\'s five_hour, enforce; how much is used is not known, '
        "no agent has told of a plan: it refuses nobody"
    ) in machine.run("doctor").stdout
    told(machine, 5, "seven_day")
    assert "told were seven_day" in machine.run("doctor").stdout


def test_a_status_says_what_refuses(machine: Machine) -> None:
    told(machine, 90)
    assert machine.answer("status").endswith(" · keep refuses prompts\n")


def test_a_check_refuses_as_the_relay_does(machine: Machine) -> None:
    told(machine, 90)
    done = machine.run("budget", "check", "--agent", AGENT)
    assert done.returncode == 3
    assert done.stdout.startswith('Not sent to the agent: budget "keep" is used up: it allows 80 % of')
    assert machine.run("budget", "check", "--agent", "another").returncode == 0
    configure(machine, f'{KEEP}mode = "warn"\n')
    assert "go, with a warning" in machine.answer("budget", "check", "--agent", AGENT)


def test_one_is_added_and_changed_without_an_editor(machine: Machine) -> None:
    path = configure(machine, "")
    machine.answer("budget", "add", "keep", "--plan", "five_hour", "--percent", "80", "--on-overage", "deny")
    assert tomllib.loads(path.read_text())["budget"] == [
        {"name": "keep", "limit": {"plan": "five_hour", "percent": 80}, "on_overage": "deny"}
    ]
    machine.answer("budget", "set", "keep", "--percent", "90")
    machine.answer("budget", "add", "unpaid", "--plan", "seven_day")
    limits = [each["limit"] for each in tomllib.loads(path.read_text())["budget"]]
    assert limits == [{"plan": "five_hour", "percent": 90}, {"plan": "seven_day", "percent": 100}]
    assert "expected none: a limit of a plan has" in machine.complaint("budget", "set", "keep", "--window", "day")


def test_metrics_have_it_in_percent_of_the_fullest(tmp_path: Path) -> None:
    config = configuration(tmp_path, KEEP)
    with closing(open_ledger(config.ledger.url, journals=())) as ledger:
        five = PlanWindow("five_hour", FULL * 62 // 100, "allowed", NOON + HOUR, None, NOON)
        ledger.note_plan(ALICE, [five])
        ledger.note_plan(replace(ALICE, user="bob"), [replace(five, used=FULL // 10)])
        found = scrape(ledger, config, clock=NOON / 1e9)
    labels = {"budget": "keep", "unit": "percent"}
    assert found.value("acp_proxy_budget_limit", **labels) == 80
    assert found.value("acp_proxy_budget_spent", **labels) == Decimal(62)
    assert found.value("acp_proxy_budget_info", budget="keep", mode="enforce", window="five_hour") == 1
    assert found.value("acp_proxy_budget_decisions_total", budget="keep", decision="deny") == 0
    assert found.value("acp_proxy_budget_reset_timestamp_seconds", budget="keep") == (NOON + HOUR) // 10**9
