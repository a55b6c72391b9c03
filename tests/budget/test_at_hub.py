"""`acp-proxy budget add`, `set`, `remove`, `undo`, `history` and `list` at a hub, typed by people of each role."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.cli import main
from acp_proxy.core.budget import account_of
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.hub.identity import Identity
from acp_proxy.ledger import OpenTurn, open_ledger
from acp_proxy.ledger.hub.lease_store import LeaseStore, steady
from acp_proxy.ledger.hub.ledger import HubLedger
from acp_proxy.ledger.hub.policy import Changes
from acp_proxy.ledger.owners import Owner
from acp_proxy.policy import understood
from acp_proxy.policy.borrowed import borrowed
from acp_proxy.status.at_hub import in_lines, news
from acp_proxy.text.times import zone, zone_info
from harness import hub
from harness.rows import ALICE, line, row
from tests.ledger.warned import Warnings

PEOPLE = {
    "root": Identity("root", "default", None, "administrator"),
    "ada": Identity("ada", "default", None, "administrator"),
    "olga": Identity("olga", "default", None, "finance"),
    "lead": Identity("bob", "default", "core", "lead", ("core",)),
    "alice": Identity("alice", "default", "core", "developer"),
    "ci": Identity("ci", "default", None, "service"),
}
OWN = """
[identity]
user = "al"
[[budget]]
name = "mine"
window = "day"
limit = { amount = "1", currency = "USD" }
per = "user"
"""
Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with closing(open_ledger(f"sqlite:///{tmp_path}/hub.db", journals=())) as ledger:
        ledger.append([row(line(cost="1.25"), origin=ALICE, at=time.time_ns())])
    with hub.running(f"sqlite:///{tmp_path}/hub.db", PEOPLE) as url:
        yield url


@pytest.fixture
def typed(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """As somebody: the status, stdout and stderr."""
    config = tmp_path / ".config/acp-proxy/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'{OWN}\n[ledger]\nurl = "{url}"\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")

    def as_somebody(who: str, *words: str, command: str = "budget") -> tuple[int, str, str]:
        monkeypatch.setenv("ACP_PROXY_HUB_TOKEN", who)
        status = main([command, *words])
        said = capsys.readouterr()
        return status, said.out, said.err

    return as_somebody


@pytest.fixture
def at_hub(url: str) -> Iterator[Callable[[str], HubLedger]]:
    """Of a program of somebody's."""
    opened: list[HubLedger] = []

    def of(who: str) -> HubLedger:
        ledger = HubLedger(
            url, time.time_ns, patience=5, warn=Warnings(), journals=(), authorization=lambda _: f"Bearer {who}"
        )
        opened.append(ledger)
        return ledger

    yield of
    for ledger in opened:
        ledger.close()


POOL = ("add", "pool", "--amount", "2000", "--window", "month")
SEATS = ("add", "seats", "--amount", "20", "--window", "day", "--per", "user")


def listed(typed: Typed, who: str) -> dict[str, dict[str, object]]:
    found = json.loads(typed(who, "list", "--json")[1])
    return {each["name"]: each for each in (*found["budgets"], *found["plan_budgets"])}


def test_a_budget_is_added_changed_and_removed_for_everybody_with_what_was_changed(typed: Typed) -> None:
    status, said, _ = typed("root", *POOL)
    assert (status, said) == (0, 'budget "pool": window month, limit 2000 USD\nIt holds for everybody from now on.\n')
    assert typed("root", "set", "pool", "--amount", "1500", "--mode", "warn")[1].startswith(
        'budget "pool": limit 2000 USD → 1500 USD, mode none → warn\n'
    )
    assert listed(typed, "alice")["pool"]["limit"] == "1500"
    assert typed("root", "remove", "pool")[1].startswith('budget "pool": removed\n')
    assert list(listed(typed, "alice")) == ["mine"]


def test_a_dry_run_shows_the_change_and_makes_none(typed: Typed) -> None:
    assert typed("root", *POOL, "--dry-run")[1] == 'budget "pool": window month, limit 2000 USD\n'
    assert list(listed(typed, "root")) == ["mine"]
    status, _, error = typed("root", "add", "pool", "--amount", "2000", "--window", "fortnight", "--dry-run")
    assert (status, error.count("\n")) == (2, 1)
    assert "policy: budget.window: expected turn, session, day" in error


def test_a_budget_on_a_plan_is_set_and_what_is_not_given_of_it_stays(typed: Typed) -> None:
    typed("root", "add", "share", "--plan", "five_hour", "--percent", "80", "--scope", "team=core")
    said = typed("root", "set", "share", "--percent", "90", "--on-overage", "deny")[1]
    assert said.startswith('budget "share": limit 80 % of five_hour → 90 % of five_hour, on_overage none → deny\n')
    assert listed(typed, "alice")["share"]["percent"] == 90


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (POOL, 'budget "pool" is there already; `acp-proxy budget set` changes it'),
        (("set", "poool", "--amount", "1"), 'the hub has no budget "poool" for you: did you mean pool?; one of '),
        (("remove", "other"), 'the hub has no budget "other" for you: it has pool; one of '),
        (("add", "x", "--amount", "1", "--window", "fortnight"), "policy: budget.window: expected turn, session, day"),
        (("add", "x", "--amount", "much", "--window", "day"), "policy: budget.limit.amount: expected"),
        (
            ("set", "pool", "--amount", "1", "--if-version", "7"),
            "prices were changed meanwhile by root, 2",
        ),
    ],
)
def test_a_mistake_changes_nothing_and_is_told_in_one_line(typed: Typed, words: tuple[str, ...], says: str) -> None:
    typed("root", *POOL)
    status, said, error = typed("root", *words)
    assert (status, said, error.count("\n")) == (2, "", 1)
    assert says in error
    assert listed(typed, "root")["pool"]["limit"] == "2000"


@pytest.mark.parametrize(
    ("who", "says"),
    [
        ("alice", "expected the role administrator or lead, not developer; with --own it is a budget of "),
        ("olga", "expected the role administrator or lead, not finance; with --own it is a budget of "),
        ("ci", "expected the role administrator or lead, not service; with --own it is a budget of "),
        ("lead", "budget 'pool' is an administrator's to set; a lead sets budgets \"core/…\" of team core; with --own"),
    ],
)
def test_who_may_not_is_told_who_may(typed: Typed, who: str, says: str) -> None:
    typed("root", *POOL)
    for words in (("set", "pool", "--amount", "1"), ("remove", "pool")):
        status, said, error = typed(who, *words)
        assert (status, said, error.count("\n")) == (2, "", 1)
        assert says in error
    assert listed(typed, "root")["pool"]["limit"] == "2000"


def test_one_changes_their_own_file_as_ever(typed: Typed, tmp_path: Path) -> None:
    status, _, _ = typed("alice", "set", "mine", "--amount", "3", "--own")
    assert status == 0
    assert 'amount = "3"' in (tmp_path / ".config/acp-proxy/config.toml").read_text()
    assert "only the budgets of a hub do" in typed("alice", "remove", "mine", "--own", "--if-version", "1")[2]


def test_a_change_between_reading_and_changing_is_not_overwritten(
    typed: Typed, at_hub: Callable[[str], HubLedger], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed("root", *POOL)
    read, other = HubLedger.policy, at_hub("ada")

    def read_then_somebody_changes(ledger: HubLedger, tag: str | None) -> object:
        found = read(ledger, tag)
        if ledger is not other:
            other.change_policy(Changes({"pool": {"limit": {"amount": "9", "currency": "USD"}}}))
        return found

    monkeypatch.setattr(HubLedger, "policy", read_then_somebody_changes)
    status, said, error = typed("root", "set", "pool", "--amount", "1500")
    monkeypatch.undo()
    assert (status, said) == (2, "")
    assert "the hub's budgets and prices were changed meanwhile by ada, " in error
    assert ", nothing was done; acp-proxy budget history says how" in error


def test_the_history_tells_who_changed_what_and_how_it_was_before(typed: Typed) -> None:
    assert typed("root", "history")[1] == "Nothing was changed yet.\n"
    typed("root", *POOL)
    typed("ada", "set", "pool", "--amount", "1500")
    typed("root", *SEATS)
    _, said, _ = typed("olga", "history", "pool")
    assert [words[:1] + words[3:] for words in map(str.split, said.splitlines()[1:])] == [
        ["2", "ada", "changed", "budget", "pool", "limit", "2000", "USD", "→", "1500", "USD"],
        ["1", "root", "added", "budget", "pool", "window", "month,", "limit", "2000", "USD"],
    ]
    found = json.loads(typed("olga", "history", "--json")[1])["history"]
    assert [(each["version"], each["who"], each["kind"], each["name"]) for each in found] == [
        (3, "root", "budget", "seats"),
        (2, "ada", "budget", "pool"),
        (1, "root", "budget", "pool"),
    ]
    assert (found[1]["before"]["limit"]["amount"], found[1]["after"]["limit"]["amount"]) == ("2000", "1500")
    status, _, error = typed("alice", "history")
    assert (status, "expected the role administrator or finance or lead, not developer" in error) == (2, True)


def test_the_last_change_is_taken_back_by_who_made_it(typed: Typed) -> None:
    assert "nothing to undo" in typed("root", "undo")[2]
    typed("root", *POOL)
    typed("root", "set", "pool", "--mode", "warn")
    assert "the last change is of root, 2" in typed("ada", "undo")[2]
    assert typed("root", "undo")[1].startswith('budget "pool": mode warn → none\n')
    typed("root", "remove", "pool")
    assert typed("root", "undo", "--dry-run")[1] == 'budget "pool": window month, limit 2000 USD\n'
    typed("root", "undo")
    assert listed(typed, "root")["pool"]["mode"] == "enforce"


def test_a_lead_sets_budgets_of_their_team_and_sees_how_those_were_changed(typed: Typed) -> None:
    typed("root", *POOL)
    typed("root", "add", "blue", "--amount", "5", "--window", "day", "--scope", "team=blue")
    daily = ("add", "core/daily", "--amount", "10", "--window", "day")
    refused = typed("lead", *daily)[2]
    assert "budget 'core/daily' is an administrator's to set; a lead sets budgets \"core/…\" of team core" in refused
    assert typed("lead", *daily, "--scope", "team=core")[0] == 0
    assert typed("lead", "set", "core/daily", "--amount", "12", "--per", "user")[0] == 0
    assert (
        typed("lead", "grant", "core/daily", "--amount", "1", "--for", "2h", "--reason", "x", "--for-user", "*")[0] == 0
    )
    assert "gives no grant" in typed("lead", "grant", "pool", "--amount", "1", "--for", "2h", "--reason", "x")[2]
    found = json.loads(typed("lead", "history", "--json")[1])["history"]
    assert [(each["name"], each["who"]) for each in found] == [
        ("core/daily", "bob"),
        ("core/daily", "bob"),
        ("pool", "root"),
    ]
    assert listed(typed, "alice")["core/daily"]["limit"] == "12"
    assert typed("lead", "remove", "core/daily")[0] == 0


def test_the_list_has_budgets_of_the_hub_beside_those_of_the_machine_and_says_which_hold(typed: Typed) -> None:
    typed("root", *SEATS)
    typed("root", "add", "mine", "--amount", "5", "--window", "day", "--scope", "team=core")
    _, said, _ = typed("alice", "list")
    assert [row.split()[:4] for row in said.splitlines()[1:4]] == [
        ["mine", "own", "file", "alice"],
        ["seats", "hub", "alice", "day"],
        ["mine", "hub", "day", "$1.25"],
    ]
    assert said.splitlines()[-1] == (
        "All of them hold: a prompt goes if each has enough left, so the least decides. "
        "mine of the hub and of a file are two budgets."
    )
    assert {name: each["layer"] for name, each in listed(typed, "alice").items()} == {"seats": "hub", "mine": "hub"}


def test_of_a_shared_budget_a_developer_is_told_the_limit_and_what_all_have_spent_as_a_refusal_tells_it(
    typed: Typed,
) -> None:
    typed("root", "add", "pool", "--amount", "1", "--window", "month")
    pool = listed(typed, "lead")["pool"]
    assert (pool["limit"], pool["spent"], pool["left"]) == ("1", "1.25", "-0.25")
    status, said, _ = typed("lead", "check")
    assert (status, "$1.25 of $1.00" in said) == (3, True)


def test_nobody_is_shown_their_own_figures_as_those_of_others(typed: Typed) -> None:
    """A hub answers a question about another user's account with one's own."""
    typed("root", *SEATS)
    of = {who: json.loads(typed(who, "list", "--json")[1])["budgets"] for who in ("lead", "alice", "olga")}
    seen = {who: [(each["name"], each["scope"].get("user"), each["spent"]) for each in of[who]] for who in of}
    assert seen["alice"] == [("mine", ["alice"], "1.25"), ("seats", ["alice"], "1.25")]
    assert seen["lead"] == [("mine", ["bob"], "0"), ("seats", ["bob"], "0")]
    assert seen["olga"] == [("mine", ["olga"], "0"), ("seats", ["alice"], "1.25"), ("seats", ["olga"], "0")]


def test_what_is_lent_is_told_of_ones_own_machines_and_to_who_sees_all_of_everybodys(
    typed: Typed, at_hub: Callable[[str], HubLedger]
) -> None:
    typed("root", *POOL)
    typed("root", *SEATS)
    ledger, now = at_hub("alice"), time.time_ns()
    found = ledger.policy(None)
    assert found
    budgets = understood(found[1].document).budgets
    wants = [(account_of(each, ALICE.subject(), now, zone_info("UTC"), ""), HoldSize(10**9, 10**9)) for each in budgets]
    ledger.lend(OpenTurn("lease-1", ALICE, "s", now, Owner("", 0, "")), wants, now, [])
    for who, lent in (("alice", {"pool": "5", "seats": "1.875"}), ("root", {"pool": "5"}), ("lead", {"pool": "5"})):
        found_by = listed(typed, who)
        assert {name: found_by[name]["lent"] for name in lent} == lent
        assert found_by["pool"]["held"] == "5"
    assert "of it lent" in typed("alice", "list")[1]


def test_the_status_has_budgets_of_the_hub_and_what_became_of_requests(typed: Typed) -> None:
    """Also where this machine calls its user otherwise than the hub does."""
    typed("root", "add", "seats", "--amount", "2", "--window", "day", "--per", "user")
    assert typed("alice", command="status")[1].startswith("$1.25 today · $0.25 over mine · ")
    found = json.loads(typed("alice", "--json", command="status")[1])["budgets"]
    assert [(each["name"], each["layer"], each["left"]) for each in found] == [
        ("mine", "user", "-0.25"),
        ("seats", "hub", "0.75"),
    ]
    typed("alice", "request", "seats", "--amount", "5", "--reason", "the release")
    assert typed("alice", "--json", command="status")[1].count('"pending"') == 1
    (asked,) = json.loads(typed("root", "requests", "--json")[1])["requests"]
    assert typed("alice", "--format", "{requests}", command="status")[1] == "1 request for more waits\n"
    typed("root", "approve", str(asked["id"]), "--amount", "3", "--for", "2d")
    (found,) = json.loads(
        typed("alice", "--format=json", "--config", "~/.config/acp-proxy/config.toml", command="status")[1]
    )["requests"]
    assert (found["state"], found["granted"], found["by"]) == ("approved", "3", "root")


def test_who_asks_who_they_are_is_told_of_their_requests_and_of_what_is_lent(
    typed: Typed, url: str, tmp_path: Path
) -> None:
    typed("root", *SEATS)
    typed("alice", "request", "seats", "--amount", "5", "--reason", "the release")
    key = '["hub","seats","day","USD",0,{"organisation":"default","user":"alice"}]'
    lease_store = LeaseStore(url, tmp_path / ".local/state/acp-proxy/hubs")
    assert lease_store.ask_for("lease-1") == ()
    lease_store.whose = "alice"
    lease_store.take("lease-1", {key: 1_500_000_000}, steady(), 3600 * 10**9, ())
    now = time.time_ns()
    (lent,) = borrowed(url, "alice", {"HOME": str(tmp_path)}, now)
    assert (lent.budget, lent.layer, lent.amount, lent.unit) == ("seats", "hub", 1_500_000_000, "USD")
    assert borrowed(url, "bob", {"HOME": str(tmp_path)}, now) == []
    assert typed("alice", "--format", "{lent}", command="status")[1] == "$1.50 of seats\n"
    with closing(
        HubLedger(url, time.time_ns, patience=5, warn=Warnings(), journals=(), authorization=lambda _: "Bearer alice")
    ) as hub:
        asked, said = in_lines(news(hub.requests(own=True), now), [lent], zone("UTC"))
    assert asked.startswith("asked for $5.00 more of seats, ")
    assert asked.endswith(": pending")
    assert said.startswith("lent to this machine until ")
    assert said.endswith(": $1.50 of seats")


def test_without_a_hub_there_is_no_history_and_the_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / ".config/acp-proxy/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(OWN)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["budget", "history"]) == 2
    assert f"only a hub keeps one; here budgets are those of {config}" in capsys.readouterr().err
