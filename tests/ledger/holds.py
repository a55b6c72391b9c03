"""Accounts and holds as tests of a ledger say them, and rows of any kind."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.budget import Account, Budget, Standing, accounts_for
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.entry import Origin, UsageLine
from acp_proxy.core.usage import Usage
from acp_proxy.core.windows import HOUR
from acp_proxy.ledger import OpenTurn, Row
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger, Held
from acp_proxy.ledger.owners import Owner
from harness.rows import ALICE, BOB, MINUTE, NOON, line, row
from tests.core.accounts import budget, usd

GONE = replace(Owner.this(), started="long ago")
ELSEWHERE = Owner("another host", 1, "1")


def account(of: Budget, origin: Origin = ALICE, *, at: int = NOON, model: str | None = "opus", **rest: Any) -> Account:
    (only,) = accounts_for([of], origin.subject(model, "s1", "p1"), at, ZoneInfo, rest.get("turn", "t"))
    return only


def hold(
    ledger: BudgetLedger, turn: str, *wants: tuple[Account, str | int], now: int = NOON, owner: Owner | None = None
) -> Held:
    opened = OpenTurn(turn, ALICE, "s1", now, owner or Owner.this(), "opus")
    sizes = [(each, HoldSize(usd(size) if isinstance(size, str) else size, 1)) for each, size in wants]
    return ledger.hold(opened, sizes, now, now + EXPIRY)


def held(ledger: BudgetLedger, of: Account, now: int = NOON) -> tuple[int, int]:
    (standing,) = ledger.standing([of], now)
    return standing.spent, standing.held


def overshot(ledger: BudgetLedger, organisation: str = "default") -> dict[str, int]:
    """By the names of budgets."""
    return {each.budget: each.amount for each in ledger.overshoots(organisation)}


CAP = account(budget("1 USD"))
NOTHING_KNOWN = UsageLine("opus", Usage())


def ended(stop_reason: str, *lines: UsageLine) -> Row:
    """The row of turn `a`; without costs and tokens it tells of none."""
    return row(
        *lines,
        id="a",
        stop_reason=stop_reason,
        usage_source="agent" if any(each.usage.total for each in lines) else "none",
        cost_source="agent" if any(each.cost for each in lines) else "unknown",
    )


def unique(given_row: Row, number: int, organisation: str) -> Row:
    origin = replace(given_row.origin, organisation=organisation)
    return replace(given_row, origin=origin, entry=replace(given_row.entry, id=f"{number:04}"))


_moments = st.sampled_from([15 * MINUTE, HOUR, 24 * HOUR, 40 * 24 * HOUR]).flatmap(
    lambda unit: st.builds(lambda n, off: NOON + n * unit + off, st.integers(-4, 4), st.sampled_from([-1, 0, 0, 1, 7]))
)
_lines = st.lists(
    st.builds(
        line,
        st.sampled_from(["opus", "opera", "haiku", "OPUS", None]),
        st.sampled_from(["0.5", "1.000000001", "-0.25", None]),
        st.sampled_from(["USD", "EUR"]),
        input=st.integers(0, 5),
        output=st.integers(0, 5),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda each: each.model,
)
_rows = st.builds(
    lambda lines, at, origin, session, kind, source, process: replace(
        row(*lines, at=at, origin=origin, session=session, kind=kind, cost_source=source), process=process
    ),
    _lines,
    _moments,
    st.sampled_from([ALICE, BOB, replace(ALICE, user="carol", project="w[e]b"), replace(ALICE, agent="codex")]),
    st.sampled_from(["s1", "s2"]),
    st.sampled_from(["turn", "turn", "side", "subagent"]),
    st.sampled_from(["computed", "agent", "parent", "estimated"]),
    st.sampled_from(["p1", "p2", None]),
)
any_rows = st.lists(_rows, max_size=12)


def keep(ledger: BudgetLedger, *accounts: Account, now: int = NOON) -> None:
    """As the first hold does; this one is given up."""
    hold(ledger, "first", *((each, 1) for each in accounts), now=now, owner=ELSEWHERE)
    ledger.release("default", "first")


def standing(ledger: BudgetLedger, of: Account) -> Standing:
    (found,) = ledger.standing([of], NOON)
    return found
