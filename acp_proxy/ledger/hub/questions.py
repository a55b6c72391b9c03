"""The calls that only read a ledger, and those of metrics and administration. As `wire` says."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from acp_proxy.core.entry import Origin
from acp_proxy.core.plans import PlanChange, PlanState
from acp_proxy.ledger import Context, OpenTurn, Query, Row, SessionInfo, Sums, TurnTimes
from acp_proxy.ledger.bill_sources import BillSource
from acp_proxy.ledger.budgets import DecisionCount, Overshoot
from acp_proxy.ledger.exports import Exporter
from acp_proxy.ledger.hub.place import Corrected, Missing, SetBack, Since
from acp_proxy.ledger.hub.wire import Call, Done, Nothing, Plans
from acp_proxy.ledger.notices import DeliveryCount
from acp_proxy.ledger.settings import Settings
from acp_proxy.ledger.sums.labels import Label
from acp_proxy.ledger.sums.tallied import Dimensions, Whole
from acp_proxy.ledger.sums.tallies import Tally


class Wanted(Struct, frozen=True):
    """Which rows."""

    query: Query


class SummedBy(Struct, frozen=True):
    """Which rows, added up by which dimensions."""

    query: Query
    by: list[str]


class Costliest(Struct, frozen=True):
    """The costliest rows or sessions by the first of the currencies, then the next."""

    query: Query
    currencies: list[str]
    most: int


class CostliestSessions(Struct, frozen=True):
    """The costliest sessions, and how many there are."""

    sessions: list[tuple[SessionInfo, Sums]]
    number: int


class Ids(Struct, frozen=True):
    """Ids of rows, or of series."""

    organisation: str
    ids: list[str]


class UsersTurns(Struct, frozen=True):
    """A user's rows, except those of one client."""

    organisation: str
    user: str
    without_client: str


class RecentSessions(Struct, frozen=True):
    """Which of the last sessions, as `Recent.sessions` takes them."""

    organisation: str
    most: int
    before: SessionInfo | None = None
    find: str | None = None
    ended: tuple[int | None, int | None] = (None, None)
    query: Query = Query()


class FoundSession(Struct, frozen=True):
    """A session, if it is there."""

    session: SessionInfo | None


class FoundRow(Struct, frozen=True):
    """A row, if it is there."""

    row: Row | None


class Named(Struct, frozen=True):
    """An agent's id of sessions, or the beginning of their key in reports."""

    name: str


class LastRows(Struct, frozen=True):
    """The last rows of a session."""

    session: SessionInfo
    most: int


class OneSession(Struct, frozen=True):
    """A session."""

    session: SessionInfo


class SessionOf(Struct, frozen=True):
    """The session of an agent by its id."""

    origin: Origin
    session: str


class Of(Struct, frozen=True):
    """An organisation."""

    organisation: str


class OfUser(Struct, frozen=True):
    """A user."""

    organisation: str
    user: str


class At(Struct, frozen=True):
    """An organisation at a time, or since one."""

    organisation: str
    at: int


class Days(Struct, frozen=True):
    """The days in four weeks."""

    organisation: str
    four_weeks: int


class Expected(Struct, frozen=True):
    """A series that turns are about to come of."""

    organisation: str
    agent: str
    team: str | None
    model: str | None


class Relayed(Struct, frozen=True):
    """What a proxy counted since its last report."""

    organisation: str
    process: str
    sequence: int
    counts: list[Tally]
    now: int


class Table(Struct, frozen=True):
    """A table that a copy of a ledger needs beside its rows, or rows of it."""

    table: str
    rows: list[list[Any]]


class Correction(Struct, frozen=True):
    """A row to put in the place of what is there with its id, if that is as it was `before`."""

    before: Row
    after: Row
    now: int


class Number(Struct, frozen=True):
    """How many were new."""

    number: int


class Check(Struct, frozen=True):
    """One line on version and size."""

    says: str


ROWS = Call("POST", "/v1/rows/search", "Rows by their start", Wanted, Row, streams=True)
EXISTING = Call("POST", "/v1/rows/existing", "Those ids that have a row", Ids, list[str])
MISSING = Call("POST", "/v1/rows/missing", "Which of these rows the ledger has no more", Ids, Missing)
TURN_TIMES = Call("POST", "/v1/rows/times", "When a user's rows began and ended", UsersTurns, TurnTimes, streams=True)
COSTLIEST = Call("POST", "/v1/rows/costliest", "The costliest rows", Costliest, list[Row])
SUMMED = Call("POST", "/v1/reports/summed", "Rows added up by dimensions", SummedBy, list[Sums])
SESSIONS = Call("POST", "/v1/sessions/search", "Sessions that have such rows", Wanted, SessionInfo, streams=True)
SESSION_SUMS = Call(
    "POST", "/v1/sessions/summed", "Sessions with their rows' sums", Wanted, tuple[SessionInfo, Sums], streams=True
)
COSTLIEST_SESSIONS = Call("POST", "/v1/sessions/costliest", "The costliest sessions", Costliest, CostliestSessions)

RECENT_SESSIONS = Call("POST", "/v1/recent/sessions", "The last sessions", RecentSessions, list[SessionInfo])
SESSION = Call("POST", "/v1/recent/session", "One session", SessionOf, FoundSession)
NAMED = Call("POST", "/v1/recent/named", "Sessions with an agent's id", Named, list[SessionInfo])
KEYED = Call("POST", "/v1/recent/keyed", "Sessions whose key begins so", Named, list[SessionInfo])
AGENTS = Call(
    "GET", "/v1/recent/agents", "Agents, their versions, when they ended", Nothing, list[tuple[str, str | None, int]]
)
LAST_TURN = Call("POST", "/v1/recent/last-turn", "A user's turn that began last", OfUser, FoundRow)
LAST_ROWS = Call("POST", "/v1/recent/rows", "The last rows of a session", LastRows, list[Row])
CONTEXTS = Call("POST", "/v1/recent/contexts", "A session's context after each row", OneSession, Context, streams=True)
OPEN_TURNS = Call("POST", "/v1/recent/open-turns", "Turns that a budget holds for", At, list[OpenTurn])
FOUR_WEEKS = Call("POST", "/v1/recent/four-weeks", "Rows in each four weeks", Of, dict[int, int])
BY_DAY = Call("POST", "/v1/recent/days", "Rows in each day of four weeks", Days, dict[int, int])

PLANS = Call("POST", "/v1/plans/search", "Windows of plans as they were told last", Plans, list[PlanState])
PLAN_CHANGES = Call("POST", "/v1/plans/changes", "How they came to that", Plans, list[PlanChange])
DECISION_COUNTS = Call("POST", "/v1/decisions/counts", "Decisions by budget", Of, list[DecisionCount])
OVERSHOOTS = Call("POST", "/v1/overshoots", "How far turns exceeded budgets", Of, list[Overshoot])
DELIVERIES = Call("POST", "/v1/notices/deliveries", "How notices were sent", Of, list[DeliveryCount])
NOTE_MACHINE = Call("PUT", "/v1/machines", "Keep by which settings a machine judges", Settings, Nothing)
MACHINES = Call("POST", "/v1/machines/search", "By which settings machines judge", At, list[Settings])

WHOLES = Call("POST", "/v1/metrics/wholes", "The sums of every series", Of, list[Whole])
SERIES = Call("POST", "/v1/metrics/series", "What series are", Ids, dict[str, Dimensions])
TALLIES = Call("POST", "/v1/metrics/tallies", "The tallies of all families", Of, list[Tally])
LABELS = Call("POST", "/v1/metrics/labels", "The values that dimensions have had", Of, list[Label])
ACTIVE = Call("POST", "/v1/metrics/active", "Sessions of each agent that ended since", At, dict[str, int])
EXPECT = Call("POST", "/v1/metrics/expected", "Make a series before it has rows", Expected, Nothing)
RELAYED = Call("POST", "/v1/metrics/relayed", "Add what a proxy counted", Relayed, Nothing)

CORRECT = Call("POST", "/v1/rows/corrections", "Put a row in the place of another", Correction, Corrected)
CHECK = Call("GET", "/v1/ledger", "The ledger's version and size", Nothing, Check)
SET_BACK = Call("POST", "/v1/ledger/set-back", "What was sent again since a ledger was set back", Since, SetBack)
REBUILD = Call("POST", "/v1/ledger/rebuild", "Recompute the running totals", Nothing, Done)
EXPORTERS = Call("POST", "/v1/telemetry/exporters", "Who sends telemetry, and what waits", Of, list[Exporter])
BILL_SOURCES = Call("POST", "/v1/bills/sources", "Providers whose bills are fetched", Of, list[BillSource])
TABLES = Call("GET", "/v1/ledger/tables", "What a copy needs beside rows", Nothing, Table, streams=True)
ADD_TO_TABLE = Call("POST", "/v1/ledger/tables", "Add what is not there yet", Table, Number)
