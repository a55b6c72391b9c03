"""Organisations that share a ledger: what one is told is its own, though another is like it in all but the amounts."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.entry import Origin, SessionState
from acp_proxy.core.notice import KINDS, threshold_reached
from acp_proxy.core.windows import DAY, HOUR
from acp_proxy.ledger import OpenTurn, Query, open_ledger
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger, Grant
from acp_proxy.ledger.notices import Subscription
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.settings import Settings
from acp_proxy.ledger.sums.tallies import Tally
from harness.rows import ALICE, MINUTE, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.conftest import ONE_AT_A_TIME
from tests.ledger.holds import ELSEWHERE, account

OTHERS = replace(ALICE, organisation="another")
FOUR_WEEKS = 28 * DAY


def accounts(of: Origin) -> list[Account]:
    """Some are read from totals, some from rows, and all from sums that are kept once something was held."""
    limits = ("90 USD", "9000 tokens", "90 turns")
    budgets = [budget(limit, window, f"{limit} {window}") for limit in limits for window in ("day", "session")]
    return [account(each, of) for each in (*budgets, budget("90 USD", name="estimating", on_unpriced="estimate"))]


def hold(ledger: BudgetLedger, turn: str, of: Origin, amount: int, now: int = NOON, owner: Owner = ELSEWHERE) -> None:
    opened = OpenTurn(turn, of, "s1", now, owner, "opus")
    sizes = [
        (each, HoldSize(amount, 1))
        for each in (*accounts(of), account(budget("1 turns", name="over", mode="warn"), of))
    ]
    ledger.hold(opened, sizes, now, now + EXPIRY)


def fill(ledger: BudgetLedger, of: Origin, times: int) -> None:
    """With one or more of everything; ids and times are the same in every organisation."""
    state = SessionState(times, 100, agent_cost=None, model=f"model {times}", title=f"Title {times}")
    rows = [row(line("opus", f"{times}.5"), id=f"{number}", origin=of, state=state) for number in range(times)]
    ledger.append([*rows, row(line(f"new {times}", None), id="unpriced", origin=of, at=NOON - HOUR)])
    hold(ledger, "expired", of, times, now=NOON - EXPIRY)
    hold(ledger, "estimated", of, times)
    ledger.append([row(line("opus", None), id="estimated", origin=of)])
    hold(ledger, "held", of, times, owner=Owner.this())
    ledger.beat(of.organisation, ["held"], NOON + times * HOUR)
    cap = accounts(of)[0]
    grant = (cap.budget.layer, cap.budget.name, None, times, "USD", NOON, NOON + HOUR, "carol", "why")
    ledger.grant(Grant("g", of.organisation, *grant))
    for percent in range(times):
        ledger.announce(cap, percent, threshold_reached(Standing(cap, spent=usd("1")), percent, NOON))
    ledger.count_decisions([(cap, "cancel")] * times)
    ledger.note_settings(Settings(of.organisation, of.host, of.user, "user", f"digest {times}", 1, NOON + times))
    ledger.outbox.count(of.organisation, "team", "sent", times)
    ledger.tallied.expect(of.organisation, f"agent {times}", None, None)
    ledger.tallied.count_relayed(of.organisation, "p", times, [Tally("relay_bytes", ("in",), 0, times, 0)], NOON)


def told(ledger: BudgetLedger, of: Origin) -> dict[str, object]:
    """Everything that can be asked for one organisation."""
    name, recent, tallied = of.organisation, ledger.recent, ledger.tallied
    query, some = Query(where=(("organisation", name),)), Query(NOON - MINUTE, None, (("organisation", name),))
    wholes, (session,) = sorted(tallied.wholes(name)), ledger.sessions(query)
    by = [(), ("model",), ("host",), ("quarter_hour",), ("day",), ("day+4",), ("day-20", "model")]
    return {
        "rows": [list(ledger.rows(each)) for each in (query, some)],
        "costliest": ledger.costliest(query, ("USD",), 9),
        "sums": [sorted(ledger.summed(each, dimensions), key=repr) for each in (query, some) for dimensions in by],
        "sessions": (session, list(ledger.session_sums(query)), ledger.costliest_sessions(query, ("USD",), 9)),
        "state": ledger.state_of(of, "s1"),
        "standings": ledger.standing(accounts(of), NOON),
        "costs": [ledger.recent_costs(name, of.agent, unit, model="opus", user="alice") for unit in ("USD", "tokens")],
        "grants": (ledger.grants(name), ledger.grants(name, NOON)),
        "counts": (ledger.decision_counts(name), ledger.overshoots(name), ledger.delivery_counts(name)),
        "settings": ledger.settings(name, NOON),
        "outbox": ledger.outbox.undelivered(Subscription(name, "team", KINDS), NOON + MINUTE, NOON + DAY),
        "metrics": (wholes, tallied.series(name, [whole.series for whole in wholes])),
        "tallies": (sorted(tallied.tallies(name), key=repr), tallied.labels(name), tallied.active_sessions(name, NOON)),
        "recent": (recent.sessions(name, 9), recent.session(of, "s1"), recent.last_turn(name, "alice")),
        "session": (recent.rows(session, 9), list(recent.contexts(session))),
        "open": recent.open_turns(name, NOON),
        "days": (recent.rows_by_four_weeks(name), recent.rows_by_day(name, NOON // FOUR_WEEKS)),
    }


@ONE_AT_A_TIME
def test_what_one_is_told_is_what_it_would_be_alone(ledger: BudgetLedger, tmp_path: Path) -> None:
    both = ((ALICE, 3), (OTHERS, 5))
    for of, times in both:
        fill(ledger, of, times)
    for rebuilt in (False, True):
        for of, times in both:
            with closing(open_ledger(f"sqlite:///{tmp_path}/{of.organisation} {rebuilt}.db", journals=())) as alone:
                fill(alone, of, times)
                assert told(ledger, of) == told(alone, of)
        assert ledger.rebuild()
    mine, theirs = told(ledger, ALICE), told(ledger, OTHERS)
    assert [asked for asked in mine if mine[asked] == theirs[asked]] == []


@ONE_AT_A_TIME
def test_what_one_ends_or_renames_goes_on_for_another(ledger: BudgetLedger) -> None:
    fill(ledger, ALICE, 3)
    fill(ledger, OTHERS, 5)
    mine = told(ledger, ALICE)
    for turn in ("held", "expired"):
        ledger.release(OTHERS.organisation, turn)
    wanted = Subscription("another", "team", KINDS)
    claimed = ledger.outbox.claim(wanted, NOON, NOON + HOUR)
    assert claimed
    ledger.outbox.settle(wanted, "team", claimed, "sent", NOON)
    ledger.note_session(OTHERS, "s1", "Another title", NOON + DAY)
    ledger.note_settings(Settings("another", "desk", "bob", "user", "digest", 1, NOON + 99 * DAY))
    ledger.tallied.count_relayed("another", "q", 1, [], NOON + 9 * DAY)
    ledger.tallied.count_relayed("default", "p", 3, [Tally("relay_bytes", ("in",), 0, 1, 0)], NOON)  # comes again
    assert told(ledger, ALICE) == mine


@ONE_AT_A_TIME
def test_models_that_one_makes_up_leave_room_for_those_of_another(ledger: BudgetLedger) -> None:
    ledger.append([row(line(f"made up {number}", None), origin=OTHERS) for number in range(30)])
    ledger.append([row(line("new", None))])
    assert ledger.outbox.undelivered(Subscription("default", "team", KINDS), NOON + MINUTE, NOON + DAY).waiting == 1
