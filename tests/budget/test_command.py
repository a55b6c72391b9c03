"""`acp-proxy budget …` as it is typed: what it answers, its exit statuses, and that each mistake is one line."""

from __future__ import annotations

import json
import shlex
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.budget import simulation
from acp_proxy.budget.replay import replay
from acp_proxy.config import load
from acp_proxy.core.entry import Origin
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import Query, open_ledger
from acp_proxy.text.times import rfc3339
from harness.rows import ALICE, MINUTE, NOON, line, row
from tests.machine import Machine, in_terminal

TWO = """
[identity]
team = "core"
project = "web"

[[budget]]
name = "daily"
per = "user"
window = "rolling:24h"
limit = { amount = "5", currency = "USD" }

[[budget]]
name = "opus"
scope = { model = "claude-opus*" }
window = "total"
limit = { turns = 3 }
"""

ACTIONS = "list, check, grant, grants, request, requests, approve, deny, simulate, add, set, remove, undo or history"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """With two budgets."""
    machine = Machine(tmp_path)
    configure(machine, TWO)
    return machine


def configure(machine: Machine, text: str) -> None:
    config = machine.home / ".config/acp-proxy/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(text)


def spend(machine: Machine, *costs: str, origin: Origin = ALICE) -> None:
    """Turns that ended a while ago, one after the other."""
    begin = time.time_ns() - 60 * MINUTE
    ledger = open_ledger(machine.url, journals=())
    ledger.append(
        [row(line("claude-opus-5-5", cost), at=begin + i * 2 * MINUTE, origin=origin) for i, cost in enumerate(costs)]
    )
    ledger.close()


def listed(machine: Machine, *options: str) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in json.loads(machine.answer("budget", "list", "--json", *options))["budgets"]}


def test_a_budget_whose_scope_names_nobody_that_was_seen_says_so_below_the_list(machine: Machine) -> None:
    configure(machine, TWO.replace('model = "claude-opus*"', 'agent = ["cluade*", "codex"], model = "*opus*"'))
    assert "counts" not in machine.answer("budget", "list")
    spend(machine, "1")
    said = 'Nothing counts in budget "opus" so far: no agent in the ledger is cluade* or codex.'
    assert machine.answer("budget", "list").splitlines()[-2:] == ["", said]
    assert said in in_terminal(machine, 120, "budget", "list")


def test_whom_another_organisation_has_in_the_ledger_is_nobody_for_a_budget(machine: Machine) -> None:
    configure(machine, TWO.replace('model = "claude-opus*"', 'agent = "codex"'))
    spend(machine, "1")
    spend(machine, "1", origin=replace(ALICE, organisation="another", agent="codex"))
    said = 'Nothing counts in budget "opus" so far: no agent in the ledger is codex.'
    assert said in machine.answer("budget", "list")


def test_list_tells_what_is_used_and_left(machine: Machine) -> None:
    spend(machine, "1", "0.5")
    found = listed(machine)
    assert (found["daily"]["spent"], found["daily"]["left"]) == ("1.5", "3.5")
    assert found["daily"]["scope"] == {"user": ["alice"]}
    assert (found["opus"]["unit"], found["opus"]["spent"], found["opus"]["left"]) == ("turns", "2", "1")
    first, second = machine.answer("budget", "list").splitlines()[1:]
    assert first.split()[:2] == ["daily", "alice"]
    assert second.split()[0] == "opus"


def test_a_terminal_gets_bars(machine: Machine) -> None:
    spend(machine, "4")
    assert "█" in in_terminal(machine, 100, "budget", "list")
    assert "█" not in in_terminal(machine, 100, "budget", "list", TERM="dumb")
    assert "█" in in_terminal(machine, 60, "budget", "check")


def test_without_budgets_list_says_how_to_make_one(machine: Machine) -> None:
    configure(machine, "")
    assert "[[budget]]" in machine.answer("budget", "list")
    assert listed(machine) == {}
    assert "[[budget]]" in machine.answer("budget", "simulate")
    assert machine.run("budget", "check").returncode == 0


@pytest.mark.parametrize(("per", "value"), [("agent", "@acme/it's"), ("project", "another"), ("team", "ops")])
def test_the_command_that_a_refusal_advises_grants_to_whom_it_refused(machine: Machine, per: str, value: str) -> None:
    configure(machine, TWO.replace('per = "user"', f'per = "{per}"').replace('amount = "5"', 'amount = "0"'))
    asked = ("budget", "check", "--model", "gpt", "--agent", "codex", f"--{per}", value)
    refused = machine.run(*asked)
    assert refused.returncode == 3
    machine.answer(*shlex.split(refused.stdout.split("`")[1])[1:])
    assert machine.run(*asked).returncode == 0


def test_check_ends_with_0_or_3_and_says_why(machine: Machine) -> None:
    assert machine.answer("budget", "check", "--model", "claude-opus-5-5").startswith("A prompt would be admitted.\n")
    spend(machine, "0.1", "0.1", "0.1")
    done = machine.run("budget", "check", "--model", "claude-opus-5-5")
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.startswith('Not sent to the agent: budget "opus" has too little left. Used: 3 of 3 turns.')
    assert machine.run("budget", "check", "--model", "sonnet").returncode == 0
    assert "depends on --model" in machine.answer("budget", "check")


def test_check_asks_for_whoever_is_named(machine: Machine) -> None:
    spend(machine, "5")
    assert machine.run("budget", "check").returncode == 3
    assert machine.run("budget", "check", "--user", "bob", "--team", "x", "--project", "y").returncode == 0


def test_check_says_which_of_the_names_the_ledger_does_not_know(machine: Machine) -> None:
    spend(machine, "0.1", origin=replace(ALICE, agent="@maker/agent"))
    said = machine.answer("budget", "check", "--agent", "agent", "--model", "claude-opus-5")
    assert said.endswith(
        '\n\nThe ledger has no agent "agent"; did you mean @maker/agent?\n'
        'The ledger has no model "claude-opus-5"; did you mean claude-opus-5-5?\n'
    )
    known = ("--agent", "@maker/agent", "--user", "alice")
    for model in ("claude-opus-5-5", "default"):  # what an alias stands for, no row has to say
        assert "The ledger has" not in machine.answer("budget", "check", *known, "--model", model)


def test_an_alias_is_checked_as_the_model_that_it_stands_for(machine: Machine) -> None:
    configure(machine, TWO + '[aliases]\ndefault = "anthropic/claude-opus-5-5"\n[[budget]]\nname = "none"\n'
              'scope = { model = "claude-opus-*" }\nwindow = "day"\nlimit = { turns = 0 }\n')  # fmt: skip
    assert machine.run("budget", "check", "--model", "default").returncode == 3
    assert machine.run("budget", "check", "--model", "gpt-5").returncode == 0


def test_a_grant_admits_the_next_prompt_and_is_kept(machine: Machine) -> None:
    spend(machine, "5")
    assert machine.run("budget", "check").returncode == 3
    said = machine.answer("budget", "grant", "daily", "--amount", "2.50", "--for", "2h", "--reason", "release night")
    assert said.startswith('Granted $2.50 on top of budget "daily" (user alice) until ')
    assert machine.run("budget", "check").returncode == 0
    assert (listed(machine)["daily"]["limit"], listed(machine)["daily"]["granted"]) == ("5", "2.5")
    (grant,) = json.loads(machine.answer("budget", "grants", "--json"))["grants"]
    assert (grant["by"], grant["reason"], grant["for"], grant["active"]) == ("alice", "release night", "alice", True)
    assert "release night" in machine.answer("budget", "grants")
    assert "release night" in in_terminal(machine, 100, "budget", "grants")


def test_a_grant_may_be_for_somebody_else(machine: Machine) -> None:
    options = ("--amount", "1", "--for", "1d", "--reason", "x", "--for-user", "bob")
    assert "(user bob)" in machine.answer("budget", "grant", "daily", *options)
    assert listed(machine)["daily"]["granted"] == "0"


def test_a_grant_for_a_name_that_no_row_has_is_told_so(machine: Machine) -> None:
    spend(machine, "1", origin=replace(ALICE, user="bob"))
    options = ("--amount", "1", "--for", "1d", "--reason", "x", "--for-user")
    assert "The ledger has" not in machine.answer("budget", "grant", "daily", *options, "bob")
    assert "The ledger has" not in machine.answer("budget", "grant", "daily", *options, "*")
    said = machine.answer("budget", "grant", "daily", *options, "bbo").splitlines()
    assert ("(user bbo)" in said[0], said[1:]) == (True, ['The ledger has no user "bbo"; did you mean bob?'])


def test_nothing_granted_is_no_error(machine: Machine) -> None:
    assert machine.answer("budget", "grants") == "Nothing was granted yet.\n"
    assert json.loads(machine.answer("budget", "grants", "--json")) == {"grants": []}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), f"budget: expected {ACTIONS}; see acp-proxy budget --help"),
        (("grant", "daily"), "budget grant: expected --amount N, --reason TEXT and --for DURATION; "
         "see acp-proxy budget grant --help"),
        (("grant", "dayly", "--amount", "5", "--for", "2h", "--reason", "x"),
         'no budget is called "dayly"; did you mean "daily"?'),
        (("grant", "daily", "--amount", "-5", "--for", "2h", "--reason", "x"),
         "--amount: expected an amount of USD above 0, such as 5 or 0.50, not '-5'"),
        (("grant", "daily", "--amount", "5", "--reason", "x", "--for"),
         "--for needs a value: DURATION; see acp-proxy budget grant --help"),
        (("grant", "daily", "--amount", "5", "--for", "2h", "--reason", ""),
         "--reason: expected why, in 1 to 500 characters"),
        (("grant", "opus", "--amount", "5", "--for", "2h", "--reason", "x", "--for-user", "bob"),
         '--for-user: budget "opus" is one for all'),
        (("check", "--user", ""), "--user: expected a name"),
        (("check", "--model", ""), "--model: expected a name"),
        (("simulate", "--since", "soon"),
         "--since: expected a date such as 2026-11-01, today, an RFC 3339 time or 7d, not 'soon'"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_status_2(machine: Machine, arguments: tuple[str, ...], complaint: str) -> None:
    assert machine.complaint("budget", *arguments) == f"acp-proxy: {complaint}"
    assert json.loads(machine.answer("budget", "grants", "--json")) == {"grants": []}


def test_check_asks_for_the_agent_that_the_configuration_names(machine: Machine) -> None:
    of_mine = '[[budget]]\nname = "none"\nwindow = "total"\nlimit = { turns = 0 }\nscope = { agent = "mine" }\n'
    configure(machine, of_mine + '[run]\nagent = "mine"\n')
    assert machine.run("budget", "check").returncode == 3
    configure(machine, of_mine + '[run]\nagent = "other"\n')
    assert machine.run("budget", "check").returncode == 0


def test_simulate_plays_the_ledger_of_the_user_against_the_file_that_is_proposed(machine: Machine) -> None:
    spend(machine, "1", "1", "1", "1")
    proposed = machine.home / "proposed.toml"
    proposed.write_text('[[budget]]\nname = "two"\nwindow = "total"\nlimit = { turns = 2 }\n')
    said = machine.answer("budget", "simulate", "--config", str(proposed))
    assert said.startswith("2 of 4 turns would have been refused.\n")
    found = json.loads(machine.answer("budget", "simulate", "--config", str(proposed), "--json", "--since", "2d"))
    assert (found["turns"], found["refused"]) == (4, 2)
    (two,) = found["budgets"]
    assert (two["name"], two["turns"], two["refused"], two["let_through"]) == ("two", 4, 2, 0)
    assert two["first_refused_at"] > found["since"]
    assert listed(machine)["daily"]["spent"] == "4"


@pytest.mark.parametrize(
    ("window", "refused"),
    [
        ('"total"', 3),
        ('"total"\nper = "user"', 1),
        ('"session"', 1),
        ('"session"\nper = "team"', 1),
        ('"month"', 0),
        ('"turn"', 0),
    ],
)
def test_simulate_counts_what_was_spent_before_its_time_as_if_it_had_read_all(
    machine: Machine, window: str, refused: int
) -> None:
    proposed, long_ago, bob = machine.home / "proposed.toml", NOON - 100 * DAY, replace(ALICE, user="bob")
    proposed.write_text(
        f'[[budget]]\nname = "three"\nscope = {{ model = "claude-*" }}\nwindow = {window}\nhold = "0.01"\n'
        'limit = { amount = "3", currency = "USD" }\n'
    )
    with closing(open_ledger(machine.url, journals=())) as ledger:
        ledger.append([row(line("claude-x", "2"), at=long_ago, origin=origin) for origin in (ALICE, bob)])
        ledger.append([row(line("gpt", "9"), line("claude-x", "9", "EUR"), at=long_ago, session="s2")])
        ledger.append([row(line("claude-x", "1"), at=NOON + number * DAY) for number in range(2)])
        ledger.append([row(line("claude-x", "1"), at=NOON + 2 * DAY, origin=bob)])
        all_rows = replay(ledger.rows(Query()), load({"config": str(proposed)}, {}).budgets, NOON)
    said = machine.answer("budget", "simulate", "--config", str(proposed), "--json", "--since", rfc3339(NOON))
    assert said == simulation.as_json(all_rows)
    assert json.loads(said)["refused"] == refused


@pytest.mark.parametrize(("week_start", "refused"), [("sunday", 1), ("monday", 0)])
def test_simulate_goes_by_the_weeks_of_the_budget(machine: Machine, week_start: str, refused: int) -> None:
    saturday, proposed = NOON, machine.home / "proposed.toml"
    proposed.write_text(
        f'[[budget]]\nname = "one"\nwindow = "week"\nweek_start = "{week_start}"\nlimit = {{ turns = 1 }}\n'
    )
    with closing(open_ledger(machine.url, journals=())) as ledger:
        ledger.append([row(at=saturday + days * DAY) for days in (1, 2)])
    found = json.loads(machine.answer("budget", "simulate", "--config", str(proposed), "--json"))
    assert (found["turns"], found["refused"]) == (2, refused)


def test_a_proposed_file_may_name_a_ledger_of_its_own(machine: Machine) -> None:
    spend(machine, "1")
    proposed = machine.home / "proposed.toml"
    url = f"sqlite:///{machine.home}/other.db"
    proposed.write_text(
        f'[[budget]]\nname = "two"\nwindow = "total"\nlimit = {{ turns = 2 }}\n[ledger]\nurl = "{url}"\n'
    )
    assert "no turns" in machine.answer("budget", "simulate", "--config", str(proposed))
    assert "None of 1 turn " in machine.answer("budget", "simulate", "--config", str(proposed), "--ledger", machine.url)


def test_what_is_let_through_is_told_apart_from_what_is_refused(machine: Machine) -> None:
    spend(machine, "1", "1", "1")
    configure(machine, '[[budget]]\nname = "two"\nwindow = "total"\nlimit = { turns = 2 }\nmode = "shadow"\n')
    assert machine.answer("budget", "simulate").startswith("None of 3 turns would have been refused.\n")
    assert "(1)" in in_terminal(machine, 80, "budget", "simulate")
    (two,) = json.loads(machine.answer("budget", "simulate", "--json"))["budgets"]
    assert (two["refused"], two["let_through"]) == (0, 1)
