"""What proxies and a hub say to each other: each call with its path, what it asks and what it answers.

Both ends and the OpenAPI document are made of these values. Bodies are JSON; times are Unix ns, amounts as in a ledger.
A field that is new has a default: who is older leaves it out or passes it over.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from msgspec import Struct

from acp_proxy.core.budget import Account
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.plan_limits import PlanStanding
from acp_proxy.core.budget.verdict import Decision as Decided
from acp_proxy.core.entry import Origin, SessionState
from acp_proxy.core.money import Money
from acp_proxy.core.notice import Notice
from acp_proxy.core.plans import PlanState, PlanWindow
from acp_proxy.ledger import OpenTurn, Row
from acp_proxy.ledger.budgets import Decision, Grant
from acp_proxy.ledger.hub.place import Again, Place

Q = TypeVar("Q")
A = TypeVar("A")

MOST_ROWS = 5000  # in one call: some 6 MB
LARGEST_BODY = 16 * 1024 * 1024  # bytes of a call
NDJSON = "application/x-ndjson"
WITHOUT_BODY = ("GET", "DELETE")  # such calls ask by path and query


class Call(Struct, Generic[Q, A], frozen=True):
    """`path` may name fields of what is asked. With `streams` the answer is one `answers` a line, in no limited number.

    What asks or answers `Nothing` has no body.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    says: str
    asks: type[Q]
    answers: type[A]
    streams: bool = False


class Nothing(Struct, frozen=True):
    """No body."""


class Problem(Struct, frozen=True, omit_defaults=True):
    """An error, as RFC 9457 has it; `detail` is one line for the user."""

    title: str
    status: int
    detail: str = ""


class RefusedRow(Struct, frozen=True):
    """A row that was not stored; the same row will never be."""

    id: str
    detail: str


class Appended(Struct, frozen=True):
    """How many rows were new, and which were refused: those that are neither were there already."""

    new: int
    refused: list[RefusedRow] = []
    place: Place | None = None


class Rows(Struct, frozen=True):
    """Rows to append. With `whole` all of them or, if one is refused, none."""

    rows: list[Row]
    in_order: bool = False
    whole: bool = False
    again: Again | None = None


class Figures(Struct, frozen=True, omit_defaults=True):
    """A `Standing` without its account."""

    spent: int = 0
    held: int = 0
    granted: int = 0
    not_counted: tuple[Money, ...] = ()
    unpriced: int = 0
    untold: int = 0


class Want(Struct, frozen=True):
    """An account that a turn is charged to, and how much is to be held for it."""

    account: Account
    size: HoldSize


class Admission(Struct, frozen=True):
    """A turn that asks to begin; its holds are to last from `now` until `until`, by the clock of who asks.

    Wants of the layer "hub" say how much is to be held where the hub's own policy has such an account for the turn;
    which accounts it has is not theirs to say.
    """

    turn: OpenTurn
    wants: list[Want]
    now: int
    until: int
    unpriced: bool = False
    knows_policy: bool = False


class Admitted(Struct, frozen=True, omit_defaults=True):
    """Figures, amounts and decisions belong by their numbers to the accounts: the wants' of other layers than the hub's
    in their order, then the hub's own. `binding` is the one that refuses; `policy` the ETag of the policy that holds.
    """

    figures: list[Figures]
    binding: int | None = None
    holds: list[tuple[int, int]] = []
    decisions: list[tuple[int, Decided]] = []
    accounts: list[Account] = []
    policy: str | None = None
    place: Place | None = None


class Turn(Struct, frozen=True):
    """One turn."""

    turn: str
    organisation: str = ""


class Heartbeat(Struct, frozen=True):
    """Turns that run on."""

    turns: list[str]
    now: int
    until: int
    organisation: str = ""


class Lost(Struct, frozen=True):
    """A turn whose process died."""

    turn: str
    now: int
    from_zero: bool
    organisation: str = ""


class OwnersTurns(Struct, frozen=True):
    """Turns that a machine's processes have open, or that were abandoned before a time."""

    hosts: list[str]
    abandoned: int


class Expiring(Struct, frozen=True):
    """A turn that is open, and until when its holds count."""

    turn: OpenTurn
    expires_at: int


class Accounts(Struct, frozen=True):
    """Accounts whose standing is asked."""

    accounts: list[Account]
    now: int


class Resembling(Struct, frozen=True):
    """Turns whose usage is asked."""

    organisation: str
    agent: str
    unit: str
    model: str | None = None
    user: str | None = None
    n: int = 50


class Titled(Struct, frozen=True):
    """A session's title."""

    origin: Origin
    session: str
    title: str | None
    at: int


class OfSession(Struct, frozen=True):
    """A session of an agent."""

    origin: Origin
    session: str


class State(Struct, frozen=True):
    """How a session stands; None without rows."""

    state: SessionState | None


class Announcement(Struct, frozen=True):
    """An account that reached a threshold."""

    account: Account
    threshold: int
    notice: Notice | None = None


class Done(Struct, frozen=True):
    """Whether it was done, or is the caller's to do."""

    done: bool


class GrantsAt(Struct, frozen=True):
    """Grants that count at a time; all of them without one."""

    organisation: str
    at: int | None = None


class Told(Struct, frozen=True):
    """What a message told of a plan's windows."""

    origin: Origin
    windows: list[PlanWindow]


class Plans(Struct, frozen=True):
    """Whose windows, and of changes those of which time."""

    organisation: str
    user: str | None = None
    since: int | None = None
    until: int | None = None


class PlanAnnouncement(Struct, frozen=True):
    """A window of a plan that reached a threshold, its own or that of a budget on it."""

    organisation: str
    state: PlanState
    threshold: int
    notice: Notice | None = None
    budget: str | None = None


class Decisions(Struct, frozen=True):
    """Decisions that were made outside of admissions."""

    decisions: list[tuple[Account, Decision]]


class PlanDecisions(Struct, frozen=True):
    """How budgets on plans stood when they decided about a prompt."""

    organisation: str
    standings: list[PlanStanding]


class Notices(Struct, frozen=True):
    """Notices for webhooks."""

    notices: list[Notice]


class Clock(Struct, frozen=True):
    """The hub's."""

    now: int


APPEND = Call("POST", "/v1/rows", "Append rows; each at most once, by its id", Rows, Appended)
MOVE = Call("POST", "/v1/rows/moved", "Append rows of a ledger that is moved, with their own users", Rows, Appended)
ADMIT = Call("POST", "/v1/admissions", "Ask whether a prompt may go, and hold what it may cost", Admission, Admitted)
RELEASE = Call("DELETE", "/v1/admissions/{turn}", "Give up what a turn holds that used nothing", Turn, Nothing)
BEAT = Call("POST", "/v1/heartbeats", "Renew what running turns hold", Heartbeat, Nothing)
BOOK_LOST = Call("POST", "/v1/admissions/lost", "Book a turn whose process died at what it held", Lost, Done)
OWNED = Call("POST", "/v1/admissions/search", "Turns that a machine has open", OwnersTurns, list[Expiring])
STANDINGS = Call("POST", "/v1/standings", "What is spent, held and granted of accounts", Accounts, list[Figures])
RECENT_COSTS = Call("POST", "/v1/recent-costs", "What similar turns used, the latest first", Resembling, list[int])
NOTE_TITLE = Call("PUT", "/v1/sessions/title", "Keep a session's title", Titled, Nothing)
STATE = Call("POST", "/v1/sessions/state", "How a session stands, for who goes on with it", OfSession, State)
GRANT = Call("POST", "/v1/grants", "Allow more than a budget's limit for a while", Grant, Nothing)
GRANTS = Call("POST", "/v1/grants/search", "Grants by their beginning", GrantsAt, list[Grant])
ANNOUNCE = Call("POST", "/v1/announcements", "Whether the caller is to announce a threshold", Announcement, Done)
NOTE_PLAN = Call("POST", "/v1/plans", "Keep what was told of a plan's windows", Told, list[PlanState])
ANNOUNCE_PLAN = Call(
    "POST", "/v1/plans/announcements", "Whether the caller is to announce a plan's threshold", PlanAnnouncement, Done
)
DECISIONS = Call("POST", "/v1/decisions", "Count decisions made while no hub was asked", Decisions, Nothing)
PLAN_DECISIONS = Call("POST", "/v1/plans/decisions", "Count what budgets on plans decided", PlanDecisions, Nothing)
NOTICES = Call("POST", "/v1/notices", "Keep notices for webhooks", Notices, Nothing)
CLOCK = Call("GET", "/v1/clock", "The hub's time", Nothing, Clock)
