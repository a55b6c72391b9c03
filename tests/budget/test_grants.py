"""Whether a prompt would be admitted, and grants: more for a budget for a while."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.budget import grants
from acp_proxy.budget.check import ADMITTED, REFUSED, Answer, check
from acp_proxy.core.budget import Budget, accounts_for
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.refusal import refusal_text
from acp_proxy.core.scope import Scope, Subject
from acp_proxy.ledger import OpenTurn, open_ledger
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger, Grant
from acp_proxy.ledger.owners import Owner
from acp_proxy.system.errors import UsageError
from acp_proxy.text import table, times
from harness.rows import ALICE, MINUTE, NOON, line, row
from tests.core.accounts import budget, standing, usd

ME = Subject("default", "alice", "core", "web", "laptop", "claude-agent-acp", "opus")
NOW = NOON + 10 * MINUTE
HOUR = 60 * MINUTE


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[BudgetLedger]:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())
    yield ledger
    ledger.close()


def checked(
    ledger: BudgetLedger, *budgets: Budget, subject: Subject = ME, now: int = NOW, unpriced: bool = False
) -> Answer:
    return check(ledger, budgets, subject, now, unpriced=unpriced)


def asked(budget: str = "daily", amount: str = "5", duration: str = "2h", reason: str = "why not", **rest: Any) -> Any:
    return grants.Asked(budget, amount, duration, reason, rest.pop("layer", None), rest)


def granted(asking: grants.Asked, *budgets: Budget, own: Subject = ME, now: int = NOW) -> Grant:
    return grants.granted(asking, budgets, own, now)[1]


def refused(asking: grants.Asked, *budgets: Budget, own: Subject = ME) -> str:
    with pytest.raises(UsageError) as error:
        granted(asking, *budgets, own=own)
    return str(error.value)


def test_a_prompt_is_admitted_while_enough_is_left(ledger: BudgetLedger) -> None:
    ledger.append([row(line(cost="1"))])
    answer = checked(ledger, budget("5 USD"))
    assert answer.status == ADMITTED
    assert answer.text.startswith("A prompt would be admitted.\n\nbudget ")
    assert "$4.00" in answer.text


def test_a_new_session_has_spent_nothing_also_where_an_agent_calls_its_own_by_no_name(ledger: BudgetLedger) -> None:
    each = budget("5 USD", "session")
    of_none = checked(ledger, each)
    (account,) = accounts_for([each], replace(ME, session=""), NOW, times.zone_info, "")
    running = OpenTurn("t1", ALICE, "", NOW, Owner.this())
    assert ledger.hold(running, [(account, HoldSize(usd("1"), 1))], NOW, NOW + EXPIRY).admitted
    lines = line(cost="9"), line("unpriced", None), line(cost="3", currency="EUR")
    ledger.append([row(*lines, session="", usage_source="partial")])
    assert checked(ledger, each) == of_none
    assert of_none.status == ADMITTED


def test_a_prompt_is_refused_in_the_words_that_the_user_of_an_editor_reads(ledger: BudgetLedger) -> None:
    ledger.append([row(line(cost="5"))])
    answer = checked(ledger, budget("5 USD", zone="Europe/Berlin"))
    assert answer.status == REFUSED
    assert answer.text == (
        'Not sent to the agent: budget "daily" has too little left. Used: $5.00 of $5.00. '
        "It resets on 2026-11-22 at 00:00 Europe/Berlin, in 10 h 50 min. "
        'To go on now, run `acp-proxy budget grant daily --amount 5 --for 2h --reason "…"` '
        "and send the prompt again.\n"
    )


def test_what_was_granted_admits_it_again(ledger: BudgetLedger) -> None:
    daily = budget("5 USD")
    ledger.append([row(line(cost="5"))])
    ledger.grant(granted(asked(duration="1h"), daily))
    assert checked(ledger, daily).status == ADMITTED
    assert checked(ledger, daily, now=NOW + HOUR).status == REFUSED


def test_asking_holds_and_counts_nothing(ledger: BudgetLedger) -> None:
    one = budget("1 turns")
    assert [checked(ledger, one).status for _ in range(3)] == [ADMITTED] * 3
    assert ledger.decision_counts("default") == []


def test_without_budgets_every_prompt_is_admitted(ledger: BudgetLedger) -> None:
    assert checked(ledger) == Answer(ADMITTED, "A prompt would be admitted: no budget is about it.\n")


def test_a_budget_that_does_not_refuse_is_told_all_the_same(ledger: BudgetLedger) -> None:
    ledger.append([row(line(cost="5"))])
    answer = checked(ledger, budget("5 USD", mode="warn"))
    assert answer.status == ADMITTED
    assert "Too little is left of budget daily, but its mode is warn.\n" in answer.text


def test_a_model_without_a_price_is_refused_where_the_budget_says_so(ledger: BudgetLedger) -> None:
    strict = budget("5 USD", on_unpriced="deny")
    assert checked(ledger, strict).status == ADMITTED
    answer = checked(ledger, strict, unpriced=True)
    assert answer.status == REFUSED
    assert "allows no model without a known price, and opus has none" in answer.text
    ledger.append([row(line(cost="5"))])
    for used_up, without_price in ((strict, False), (budget("5 USD"), True)):
        assert "too little left" in checked(ledger, used_up, unpriced=without_price).text


def test_budgets_that_depend_on_what_was_not_given_are_named(ledger: BudgetLedger) -> None:
    unknown = Subject("default", "alice", "core", "web", "laptop", "")
    opus = budget("0 USD", name="opus", scope=Scope(model=("opus*",), team=("core",)))
    each = budget("0 USD", name="each", per="agent")
    others = budget("0 USD", name="others", scope=Scope(model=("opus*",), team=("other",)))
    answer = checked(ledger, opus, each, others, subject=unknown)
    assert answer.status == ADMITTED
    assert answer.text.endswith(
        "Not asked: budget opus, which depends on --model.\nNot asked: budget each, which depends on --agent.\n"
    )
    assert "others" not in answer.text


def test_who_is_in_no_team_needs_no_model_to_be_outside_of_a_teams_budget(ledger: BudgetLedger) -> None:
    loner = Subject("default", "alice", None, "web", "laptop", "")
    core = budget("0 USD", name="core", scope=Scope(model=("opus*",), team=("core",)))
    each = budget("0 USD", name="each", per="team", scope=Scope(model=("opus*",)))
    assert checked(ledger, core, each, subject=loner).text == "A prompt would be admitted: no budget is about it.\n"


def test_a_grant_is_in_the_unit_of_its_budget(ledger: BudgetLedger) -> None:
    assert granted(asked(amount="2.50"), budget("5 EUR")).amount == usd("2.5")
    assert granted(asked(amount="2.50"), budget("5 EUR")).unit == "EUR"
    assert granted(asked(amount="500_000"), budget("5 tokens")).amount == 500_000
    assert granted(asked(amount="1,500,000"), budget("5 tokens")).amount == 1_500_000
    assert granted(asked(amount="1500000"), budget("5 tokens")).amount == 1_500_000
    assert granted(asked(amount="3"), budget("5 turns")).amount == 3


@pytest.mark.parametrize("amount", ["1,5", "1_5", "1,50,000", "1,500_000", "1,5000", ",500", "1,", "0,000", ""])
def test_a_mark_that_parts_no_thousands_is_not_read_as_if_it_were_not_there(amount: str) -> None:
    with pytest.raises(UsageError, match="--amount: expected a number of tokens above 0, such as 500000, not"):
        granted(asked(amount=amount), budget("5 tokens"))


def test_a_grant_says_who_why_and_until_when() -> None:
    grant = granted(asked(reason="release\nnight"), budget("5 USD"))
    assert (grant.who, grant.why, grant.at, grant.until) == ("alice", "release night", NOW, NOW + 2 * HOUR)
    assert (grant.layer, grant.budget, grant.value) == ("user", "daily", None)


def test_of_a_budget_for_each_oneself_gets_it_or_who_is_named_or_all() -> None:
    each = budget("5 USD", per="user")
    assert granted(asked(), each).value == "alice"
    assert granted(asked(user="bob"), each).value == "bob"
    assert granted(asked(user="*"), each).value is None


def test_what_is_granted_for_a_budget_of_ones_own_is_not_for_others_who_have_one_of_that_name() -> None:
    assert granted(asked(), budget("5 USD", scope=Scope(user=("alice",)))).value == "alice"
    assert granted(asked(), budget("5 USD", scope=Scope(user=("al*",)))).value is None


@pytest.mark.parametrize(
    ("asking", "complaint"),
    [
        (asked("dialy"), 'no budget is called "dialy"; did you mean "daily"?'),
        (asked("nothing-like-it"), 'no budget is called "nothing-like-it"; there are daily, team'),
        (asked(amount="-5"), "--amount: expected an amount of USD above 0, such as 5 or 0.50, not '-5'"),
        (asked(amount="0"), "--amount: expected an amount of USD above 0, such as 5 or 0.50, not '0'"),
        (asked(amount="nan"), "--amount: expected an amount of USD above 0, such as 5 or 0.50, not 'nan'"),
        (asked(amount="1e99"), "--amount: expected an amount of USD above 0, such as 5 or 0.50, not '1e99'"),
        (asked(duration="soon"), "--for: expected a duration such as 90m, 2h, 7d or 2w, not 'soon'"),
        (asked(duration="999999999w"), "--for: expected a shorter time"),
        (asked(reason=" \t"), "--reason: expected why, in 1 to 500 characters"),
        (asked(user="bob"), '--for-user: budget "daily" is one for all'),
        (asked("team", agent="codex"), '--for-agent: budget "team" is one for each team'),
        (asked("daily", layer="admin"), 'no budget of layer admin is called "daily"; one of layer user is'),
        (asked("team", team=""), "--for-team: expected a name, or * for all"),
    ],
)
def test_a_grant_that_cannot_be_meant_is_refused_in_a_line(asking: grants.Asked, complaint: str) -> None:
    assert refused(asking, budget("5 USD"), budget("9 USD", name="team", per="team")) == complaint


def test_a_users_own_budget_is_for_nobody_else() -> None:
    mine = budget("5 USD", scope=Scope(user=("alice",)))
    assert refused(asked(user="bob"), mine) == '--for-user: budget "daily" is alice\'s alone'


def test_a_grant_may_be_as_large_as_a_limit() -> None:
    dongs = budget("3000000000 VND")
    advised = re.search(r"--amount (\S+)", refusal_text(standing(dongs, usd("3000000000")), NOON, UTC))
    assert advised
    assert granted(asked(amount=advised[1]), dongs).amount == usd("2000000000")
    complaint = "--amount: expected at most 9,223,372,036 VND, not '9223372037'"
    assert refused(asked(amount="9223372037"), dongs) == complaint


def test_a_grant_of_counts_is_a_whole_number() -> None:
    for amount in ("0.5", "0", "-1", "many"):
        assert refused(asked(amount=amount), budget("5 turns")) == (
            f"--amount: expected a number of turns above 0, such as 5, not {amount!r}"
        )


def test_who_has_no_team_must_name_one() -> None:
    lone = Subject("default", "alice", None, None, "laptop", "")
    complaint = 'budget "daily" is one for each team: --for-team says for which'
    assert refused(asked(), budget(per="team"), own=lone) == complaint


def test_without_budgets_there_is_nothing_to_grant() -> None:
    assert refused(asked()) == 'no budget is called "daily"; no budget is configured'
    assert refused(asked("daily"), budget(layer="flag")) == 'no budget is called "daily"; no budget is configured'


def test_of_two_budgets_of_one_name_the_layer_says_which() -> None:
    both = budget("5 USD", layer="admin"), budget("5 USD", layer="user")
    assert refused(asked(), *both) == '2 budgets are called "daily": --layer admin or --layer user says which'
    assert granted(asked(layer="admin"), *both).layer == "admin"


def test_a_grant_is_confirmed_in_a_line() -> None:
    berlin = times.zone("Europe/Berlin")
    each = budget("5 USD", per="user")
    assert grants.confirmation(granted(asked(), each), each, berlin) == (
        'Granted $5.00 on top of budget "daily" (user alice) until 2026-11-21 15:10 CET.\n'
    )
    assert "(each user)" in grants.confirmation(granted(asked(user="*"), each), each, berlin)
    nameless = times.Zone("local", None)
    assert re.search(r" \d\d:\d\d\.\n$", grants.confirmation(granted(asked(), each), each, nameless))


def test_grants_are_listed_with_the_latest_first_and_what_is_over_marked(ledger: BudgetLedger) -> None:
    daily, turns = budget("5 USD", per="user"), budget("5 turns", name="turns")
    ledger.grant(granted(asked(duration="1h", reason="release night"), daily))
    ledger.grant(granted(asked("turns", "1", "1d", "one more"), turns, now=NOW + MINUTE))
    columns = grants.columns(ledger.grants("default"), (), times.UTC_ZONE, NOW + HOUR)
    assert table.plain(columns).splitlines() == [
        "budget  for    amount  granted           until                   by     reason",
        "turns   all    1 turn  2026-11-21 12:11  2026-11-22 12:11        alice  one more",
        "daily   alice   $5.00  2026-11-21 12:10  2026-11-21 13:10  over  alice  release night",
    ]


def test_a_grant_in_what_its_budget_no_longer_counts_is_marked_for_it_adds_nothing(ledger: BudgetLedger) -> None:
    in_dollars, in_euros = budget("5 USD"), budget("5 EUR")
    ledger.grant(granted(asked(), in_dollars))
    ledger.append([row(line(cost="5", currency="EUR"))])
    assert checked(ledger, in_euros).status == REFUSED
    for now_counted, state in (((in_dollars,), ""), ((), ""), ((in_euros,), "the limit is in EUR")):
        columns = grants.columns(ledger.grants("default"), now_counted, times.UTC_ZONE, NOW)
        assert columns[5].cells == [state]
        (found,) = json.loads(grants.as_json(ledger.grants("default"), now_counted, NOW))["grants"]
        assert found["active"] is not bool(state)


def test_a_grant_for_anothers_own_budget_is_not_judged_by_what_ones_own_of_that_name_counts(
    ledger: BudgetLedger,
) -> None:
    mine, his = (budget(limit, scope=Scope(user=(user,))) for limit, user in (("5 USD", "alice"), ("5 EUR", "bob")))
    ledger.grant(granted(asked(), his))
    columns = grants.columns(ledger.grants("default"), (mine,), times.UTC_ZONE, NOW)
    assert (columns[1].cells, columns[5].cells) == (["bob"], [""])


def test_a_narrow_terminal_shows_of_a_grant_what_it_is_and_until_when(ledger: BudgetLedger) -> None:
    ledger.grant(granted(asked(reason="the release night of the year"), budget("5 USD", per="user")))
    columns = grants.columns(ledger.grants("default"), (), times.UTC_ZONE, NOW)
    text = table.coloured(columns, (), None, 46, {"NO_COLOR": "1"})
    assert [line.split() for line in text.splitlines()] == [
        ["budget", "for", "amount", "until"],
        ["daily", "alice", "$5.00", "2026-11-21", "14:10"],
    ]


def test_grants_as_json_are_exact(ledger: BudgetLedger) -> None:
    ledger.grant(granted(asked(amount="0.000000001"), budget("5 USD", per="user")))
    (found,) = json.loads(grants.as_json(ledger.grants("default"), (), NOW))["grants"]
    assert found.pop("id")
    assert found == {
        "budget": "daily",
        "layer": "user",
        "for": "alice",
        "amount": "0.000000001",
        "unit": "USD",
        "granted_at": "2026-11-21T12:10:00Z",
        "expires_at": "2026-11-21T14:10:00Z",
        "active": True,
        "by": "alice",
        "reason": "why not",
    }


def test_a_grant_is_active_from_its_moment_on_until_just_before_its_end(ledger: BudgetLedger) -> None:
    made = granted(asked(), budget("5 USD"))
    moments = (made.at - 1, made.at, made.until - 1, made.until)
    active = [json.loads(grants.as_json([made], (), moment))["grants"][0]["active"] for moment in moments]
    assert active == [False, True, True, False]
    ledger.append([row(line(cost="5"))])
    ledger.grant(made)
    statuses = [checked(ledger, budget("5 USD"), now=moment).status for moment in moments]
    assert statuses == [ADMITTED if each else REFUSED for each in active]
