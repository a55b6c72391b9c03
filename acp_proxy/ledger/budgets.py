"""The ledger's interface for budgets: holds, standings, grants, announcements, counts of decisions. Types only.

A hold (a reservation for a running turn) counts against its accounts from admission until the turn's row is appended.
The same transaction deletes the one and appends the other. Nothing is ever decremented: holds are rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from msgspec import Struct

from acp_proxy.core.budget import Account, Layer, Standing
from acp_proxy.core.entry import Origin
from acp_proxy.core.windows import SECOND
from acp_proxy.ledger import Ledger, LedgerReader, OpenTurn

if TYPE_CHECKING:  # what only names types is not imported by who only reads
    from acp_proxy.core.budget.hold_size import HoldSize
    from acp_proxy.core.budget.plan_limits import PlanStanding
    from acp_proxy.core.budget.requests import MoreRequest, Wish
    from acp_proxy.core.budget.verdict import Verdict
    from acp_proxy.core.notice import Notice
    from acp_proxy.core.plans import PlanChange, PlanState, PlanWindow
    from acp_proxy.ledger.bill_sources import BillSource
    from acp_proxy.ledger.durability import Replication, Restored
    from acp_proxy.ledger.exports import Exporter, Exports
    from acp_proxy.ledger.notices import DeliveryCount, Outbox
    from acp_proxy.ledger.reading.recent import Recent
    from acp_proxy.ledger.settings import Settings
    from acp_proxy.ledger.sums.tallied import Tallied
    from acp_proxy.ledger.tables import Tables
    from acp_proxy.ledger.writing.copied_tables import CopiedTables

BEAT = 10 * SECOND  # how often a running turn's owner says that it lives
EXPIRY = 60 * SECOND  # after the last beat a hold no longer counts

# Those of `core/budget/verdict.py`, and others: spelt out, for who decodes them has no other names.
Decision: TypeAlias = Literal["allow", "warn", "deny", "shadow_deny", "cancel", "grant", "fail_open", "fail_closed"]


class Held(Struct, frozen=True):
    """The answer to `hold`: `standings` belong to the accounts one by one, `held` in them is what others hold.

    By a hub they are those of its own policy as well, whose ETag is `policy`.
    """

    verdict: Verdict
    standings: tuple[Standing, ...]
    policy: str | None = None

    @property
    def admitted(self) -> bool:
        return self.verdict.admitted


class Grant(Struct, frozen=True):
    """Allows more than a budget's limit from `at` until before `until` (Unix ns); the limit itself does not change."""

    id: str
    organisation: str
    layer: Layer
    budget: str  # its name
    value: str | None  # of the dimension that the budget is `per`, else its owner; None: each of them has it
    amount: int  # in `unit`, like a `Limit`
    unit: str
    at: int
    until: int
    who: str
    why: str


class DecisionCount(Struct, frozen=True):
    """How often a budget made this decision since the ledger was created."""

    layer: Layer
    budget: str
    decision: Decision
    count: int


class Overshoot(Struct, frozen=True):
    """How far turns exceeded a budget's limit and grants since the ledger was created, in any mode."""

    layer: Layer
    budget: str
    unit: str
    amount: int  # in `unit`, like a `Limit`


class BudgetReader(LedgerReader, Protocol):
    """Times are Unix ns; amounts are in the unit of their account. All raise LedgerError."""

    @property
    def recent(self) -> Recent:
        """Values that change at any moment."""

    def standing(self, accounts: Sequence[Account], now: int) -> list[Standing]:
        """One standing per account, for any number of accounts."""

    def recent_costs(
        self,
        organisation: str,
        agent: str,
        unit: str,
        *,
        model: str | None = None,
        user: str | None = None,
        n: int = 50,
    ) -> list[int]:
        """What the last `n` turns of an agent used in `unit`, the latest first; of one model and user if given.

        Turns of unknown usage are left out; only the last 1000 turns are searched.
        """

    def grants(self, organisation: str, at: int | None = None) -> list[Grant]:
        """All grants of an organisation in the order in which they begin, or those that count at a time."""

    def requests(self, *, own: bool) -> list[MoreRequest]:
        """Requests for more that the asker may see, or made; the latest first. Without a hub nobody can be asked."""

    def plans(self, organisation: str, user: str | None = None) -> list[PlanState]:
        """Windows of plans as they were told last, by user, agent and name; of all users where none is given."""

    def plan_changes(
        self, organisation: str, since: int | None = None, until: int | None = None, user: str | None = None
    ) -> list[PlanChange]:
        """How they came to that: what was told in an interval, by user, agent, name and time, where it was news."""


class BudgetLedger(BudgetReader, Ledger, Protocol):
    """Times, amounts and errors as `BudgetReader` says."""

    @property
    def fails_over(self) -> bool:
        """Whether a failover may lose what was committed, so that `is_sure` has to be asked."""

    def rest(self) -> None:
        """Give back what a server keeps for it, until it is used again."""

    def takes_over(self) -> None:
        """From now on append rows as those of their own users, whoever appends: another ledger is copied into it."""

    def is_sure(self) -> bool:
        """Whether all that was written here is where a failover keeps it: asks the server, which may not tell.

        Where the ledger was set back what it lacks is written again.
        """

    def restored(self, organisation: str, since: int = 0) -> Restored:
        """What was written again from `since` on (Unix ns), because the ledger had been set back."""

    def replication(self) -> Replication | None:
        """How its server stands to others; None where that is not known, or where there is no server."""

    def hold(
        self, turn: OpenTurn, wants: Sequence[tuple[Account, HoldSize]], now: int, until: int, *, unpriced: bool = False
    ) -> Held:
        """Decide with `core/budget/verdict.py` on a turn, and hold the amounts until `until`: all accounts or none.

        The accounts are of one organisation, each with how much is to be held; `unpriced` as there. One transaction,
        that also counts what each budget decided. The same turn again is answered as it was: it holds nothing twice,
        and nothing more once its row is there.
        """

    def release(self, organisation: str, turn: str) -> None:
        """Delete the holds of a turn that used nothing; `append` does so for a turn with a row."""

    def beat(self, organisation: str, turns: Sequence[str], until: int) -> None:
        """Renew the holds of running turns until `until`, even expired ones."""

    def settle_dead(self, now: int) -> int:
        """Book turns whose owner died without a row, at what they held, `estimated`. Returns their number.

        Rows in their journals are booked first, because their figures are better. Then turns of dead owners of this
        host, unless their journal still waits to be read; after `open_turns.ABANDONED` those of others.
        """

    def book_held(self, organisation: str, turn: str, now: int, *, from_zero: bool) -> bool:
        """Book a turn whose owner is known to be dead at what it held; whether it held anything.

        `from_zero`: it was the first of a session that began with it, as `SessionState` has it.
        """

    def grant(self, grant: Grant) -> None:
        """Add a grant, and count it as a decision; one whose id is there is skipped."""

    def ask_for_more(self, wish: Wish) -> MoreRequest:
        """Note a wish once, by its id; as it is kept. Raises LedgerForbiddenError where nobody can be asked."""

    def announce(self, account: Account, threshold: int, notice: Notice | None = None) -> bool:
        """Whether the caller is to announce that an account reached a threshold: true for exactly one caller.

        `threshold` is in percent. The notice is kept in the same transaction, whichever process announces it.
        """

    def note_plan(self, origin: Origin, windows: Sequence[PlanWindow]) -> list[PlanState]:
        """Keep what a message told of the windows of a user's plan; how they stand then.

        What was seen earlier than what is kept changes nothing.
        """

    def announce_plan(
        self,
        organisation: str,
        state: PlanState,
        threshold: int,
        notice: Notice | None = None,
        budget: str | None = None,
    ) -> bool:
        """As `announce`, of a window of a plan, or of a budget on it: once in each."""

    def count_decisions(self, decided: Iterable[tuple[Account, Decision]]) -> None:
        """Count decisions made outside of `hold` and `grant`, which count their own."""

    def count_plan_decisions(self, organisation: str, standings: Iterable[PlanStanding]) -> None:
        """Count what budgets on plans decided about a prompt; their budgets are in `decision_counts`."""

    def decision_counts(self, organisation: str) -> list[DecisionCount]:
        """By layer, name and decision."""

    def overshoots(self, organisation: str) -> list[Overshoot]:
        """The overshoots of budgets, by layer, name and unit.

        `append` counts: of a turn that held anything, what of its charge is above limit and grants, once.
        """

    def clock_ahead(self) -> int:
        """How far (ns) the clock by which holds expire is ahead of this machine's; 0 where it is this machine's own."""

    def note_settings(self, said: Settings) -> None:
        """Store the digests of a machine's configuration files; writes only changes, and once a day."""

    def settings(self, organisation: str, now: int) -> list[Settings]:
        """The settings that were seen in the last 30 days, by host, user and layer."""

    @property
    def outbox(self) -> Outbox:
        """Notices for webhooks. The ledger itself adds refusals and models without a price."""

    def delivery_counts(self, organisation: str) -> list[DeliveryCount]:
        """Attempts to send notices, by channel and result, since the ledger began."""

    @property
    def tallied(self) -> Tallied:
        """The sums that metrics are computed from."""

    @property
    def exports(self) -> Exports:
        """What exporters of telemetry keep."""

    @property
    def beside(self) -> CopiedTables:
        """What a copy of the ledger needs in addition to its rows."""

    def exporters(self, organisation: str) -> list[Exporter]:
        """Who sends telemetry out of it, and what waits."""

    def bill_sources(self, organisation: str) -> list[BillSource]:
        """Providers whose bills are fetched into it."""

    @property
    def tables(self) -> Tables:
        """Its database, for who keeps tables of their own beside the ledger's."""

    def rebuild(self) -> bool:
        """Recompute the running totals from the rows; writers wait. Returns whether the sum of all was right."""
