"""A question for each call of the API, about somebody: as a proxy, a report, or somebody curious would ask it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.requests import Decision, Wish
from acp_proxy.core.entry import Origin
from acp_proxy.core.notice import a_test
from acp_proxy.core.plans import PlanState, PlanWindow
from acp_proxy.hub.api.spending import calls as spending
from acp_proxy.ledger import OpenTurn, Query, SessionInfo
from acp_proxy.ledger.budgets import EXPIRY, Grant
from acp_proxy.ledger.hub import asking, leases, people, policy, questions, wire
from acp_proxy.ledger.hub.place import Since
from acp_proxy.ledger.hub.wire import Call
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.settings import Settings
from acp_proxy.ledger.sums.tallies import Tally
from harness.rows import MINUTE, NOON, row
from tests.core.accounts import budget
from tests.ledger.holds import account

_OWNER = Owner("laptop", 1, "1")


def _of_team(team: str | None) -> policy.Table:
    return {"window": "day", "limit": {"turns": 100}, "scope": {"team": team}}


_WINDOW = PlanWindow("five_hour", 1, None, None, None, NOON)

OF_ALL = Query()


def about(origin: Origin) -> dict[Call[Any, Any], Any]:
    """What is asked, or told, of this origin's rows and turns; of each call once."""
    of_user = Query(where=(("user", origin.user),))
    pool = account(budget("9 USD"), origin)
    session = SessionInfo(origin, "s1", None, NOON, NOON + MINUTE, None, None)
    name = origin.organisation
    turn = OpenTurn(f"turn-of-{origin.user}", origin, "s1", NOON, _OWNER, "opus")
    owned = wire.Turn(turn.id, name)
    asked = questions.Wanted(of_user)
    plan = wire.Plans(name, origin.user)
    return {
        wire.APPEND: wire.Rows([row(origin=origin, id=f"new-of-{origin.user}")]),
        wire.ADMIT: wire.Admission(turn, [wire.Want(pool, HoldSize(1, 1))], NOON, NOON + EXPIRY),
        wire.MOVE: wire.Rows([row(origin=origin, id=f"moved-of-{origin.user}")]),
        wire.BEAT: wire.Heartbeat([turn.id], NOON, NOON + EXPIRY, name),
        wire.OWNED: wire.OwnersTurns([_OWNER.host], NOON),
        wire.STANDINGS: wire.Accounts([pool], NOON),
        wire.RECENT_COSTS: wire.Resembling(name, origin.agent, "USD", user=origin.user),
        wire.NOTE_TITLE: wire.Titled(origin, "s1", "a title", NOON + 2 * MINUTE),
        wire.STATE: wire.OfSession(origin, "s1"),
        wire.GRANT: Grant("g1", name, "admin", "cap", origin.user, 1, "USD", NOON, NOON + 1, "who", "why"),
        wire.GRANTS: wire.GrantsAt(name),
        wire.ANNOUNCE: wire.Announcement(pool, 50),
        wire.NOTE_PLAN: wire.Told(origin, [_WINDOW]),
        wire.ANNOUNCE_PLAN: wire.PlanAnnouncement(name, PlanState(origin.user, origin.agent, _WINDOW, NOON, 1), 75),
        wire.DECISIONS: wire.Decisions([(pool, "fail_open")]),
        wire.PLAN_DECISIONS: wire.PlanDecisions(name, []),
        wire.NOTICES: wire.Notices([a_test(name, "laptop", NOON, "mark")]),
        asking.ASK: Wish("r1", "admin", "cap", "user", origin.user, 1, "USD", "why"),
        asking.REQUESTS: asking.Wanted(),
        asking.DECIDE: Decision("r1", approve=False, note="no"),
        wire.CLOCK: wire.Nothing(),
        questions.ROWS: asked,
        questions.EXISTING: questions.Ids(name, [f"row-of-{origin.user}"]),
        questions.MISSING: questions.Ids(name, [f"row-of-{origin.user}", "nobody's"]),
        questions.SET_BACK: Since(),
        questions.TURN_TIMES: questions.UsersTurns(name, origin.user, "none"),
        questions.COSTLIEST: questions.Costliest(of_user, ["USD"], 10),
        questions.SUMMED: questions.SummedBy(of_user, ["user", "project"]),
        questions.SESSIONS: asked,
        questions.SESSION_SUMS: asked,
        questions.COSTLIEST_SESSIONS: questions.Costliest(of_user, ["USD"], 10),
        questions.RECENT_SESSIONS: questions.RecentSessions(name, 10, query=of_user),
        questions.SESSION: questions.SessionOf(origin, "s1"),
        questions.NAMED: questions.Named("s1"),
        questions.KEYED: questions.Named(""),
        questions.LAST_TURN: questions.OfUser(name, origin.user),
        questions.LAST_ROWS: questions.LastRows(session, 10),
        questions.CONTEXTS: questions.OneSession(session),
        questions.OPEN_TURNS: questions.At(name, NOON),
        questions.PLANS: plan,
        questions.PLAN_CHANGES: plan,
        questions.NOTE_MACHINE: Settings(name, "laptop", origin.user, "user", "digest", 1, NOON),
        questions.MACHINES: questions.At(name, NOON),
        questions.EXPECT: questions.Expected(name, origin.agent, origin.team, "opus"),
        questions.RELAYED: questions.Relayed(name, "p1", 1, [Tally("messages", (None,), 0, 1, 0)], NOON),
        questions.EXPORTERS: questions.Of(name),
        questions.BILL_SOURCES: questions.Of(name),
        questions.CHECK: wire.Nothing(),
        questions.AGENTS: wire.Nothing(),
        questions.FOUR_WEEKS: questions.Of(name),
        questions.BY_DAY: questions.Days(name, 740),
        questions.WHOLES: questions.Of(name),
        questions.SERIES: questions.Ids(name, []),
        questions.TALLIES: questions.Of(name),
        questions.LABELS: questions.Of(name),
        questions.ACTIVE: questions.At(name, NOON),
        questions.DECISION_COUNTS: questions.Of(name),
        questions.OVERSHOOTS: questions.Of(name),
        questions.DELIVERIES: questions.Of(name),
        questions.REBUILD: wire.Nothing(),
        questions.TABLES: wire.Nothing(),
        questions.ADD_TO_TABLE: questions.Table("granted", []),
        questions.CORRECT: questions.Correction(row(origin=origin), row(origin=origin), NOON),
        policy.POLICY: wire.Nothing(),
        policy.SET_POLICY: policy.Document(),
        policy.CHANGE_POLICY: policy.Changes({f"{origin.team}/daily": _of_team(origin.team)}),
        policy.POLICY_HISTORY: wire.Nothing(),
        spending.SET: spending.Setting(spending.OfUser(origin.user), "50000"),
        spending.LIST: spending.Listing(),
        spending.EFFECTIVE: spending.Effective([origin.user]),
        spending.AUDIT: spending.Trailing(),
        spending.FIND: spending.ById("spl_none"),
        spending.DELETE: spending.ById("spl_none"),
        spending.REQUESTS: spending.Asking(actor_ids=[origin.user]),
        spending.REQUEST: spending.ById("slir_none"),
        spending.APPROVE: spending.Approval("50000", "slir_none"),
        spending.DENY: spending.Denial("slir_none"),
        people.FORGET: people.Forgetting("nobody at all"),
        leases.LEND: leases.Lending(
            replace(turn, id=f"lease-of-{origin.user}"), [wire.Want(pool, HoldSize(1, 1))], NOON
        ),
        leases.LOANS: wire.Nothing(),
        leases.GIVE_BACK: wire.Turn(f"lease-of-{origin.user}", name),
        wire.BOOK_LOST: wire.Lost(turn.id, NOON, False, name),
        wire.RELEASE: owned,
    }


def everybody(asked: dict[Call[Any, Any], Any]) -> dict[Call[Any, Any], Any]:
    """The same questions about rows, without naming a user."""
    narrowed: Callable[[Any], Any] = lambda each: replace(each, query=OF_ALL) if hasattr(each, "query") else each  # noqa: E731
    return {call: narrowed(each) for call, each in asked.items()}
