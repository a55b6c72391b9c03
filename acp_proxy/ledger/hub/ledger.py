"""A ledger that a hub keeps: a `BudgetLedger`. Who a row or a hold belongs to is for the hub to say, by the token.

What processes of this machine left when they died is found here, where their journals and pids are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import cast

from msgspec.structs import asdict, replace

from acp_proxy.core.budget import Account
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.plan_limits import PlanStanding
from acp_proxy.core.budget.requests import Decision as RequestDecision
from acp_proxy.core.budget.requests import MoreRequest, Wish
from acp_proxy.core.budget.verdict import Verdict
from acp_proxy.core.entry import Origin, SessionState
from acp_proxy.core.notice import Notice
from acp_proxy.core.plans import PlanState, PlanWindow
from acp_proxy.core.session_ids import booked
from acp_proxy.ledger import (
    LedgerError,
    LedgerForbiddenError,
    LedgerUnavailableError,
    OpenTurn,
    Row,
    RowRefusedError,
    Warn,
)
from acp_proxy.ledger.bill_sources import BillSource
from acp_proxy.ledger.budgets import Decision, DecisionCount, Grant, Held, Overshoot
from acp_proxy.ledger.durability import Replication, Restored
from acp_proxy.ledger.exports import Exporter, Exports
from acp_proxy.ledger.hub import asking, people, questions, wire
from acp_proxy.ledger.hub.beside import HubOutbox, HubTables, HubTallied
from acp_proxy.ledger.hub.connection import Authorization, HubConnection
from acp_proxy.ledger.hub.credentials import authorization_for
from acp_proxy.ledger.hub.keeping import Keeping
from acp_proxy.ledger.hub.leases import GIVE_BACK, LEND, LOANS, Lending, Loan
from acp_proxy.ledger.hub.place import Since
from acp_proxy.ledger.hub.policy import CHANGE_POLICY, POLICY, POLICY_HISTORY, Changes, Kept
from acp_proxy.ledger.hub.reader import HubReader, standings_of
from acp_proxy.ledger.hub_address import canonical, hubs_of
from acp_proxy.ledger.journal.kept import Write
from acp_proxy.ledger.journal.recovery import recover
from acp_proxy.ledger.notices import DeliveryCount, Outbox
from acp_proxy.ledger.open_turns import ABANDONED, is_dead
from acp_proxy.ledger.owners import Owner, hosts_of
from acp_proxy.ledger.places import journal_of
from acp_proxy.ledger.restored import NOTHING
from acp_proxy.ledger.settings import Settings
from acp_proxy.ledger.sums.tallied import Tallied
from acp_proxy.ledger.tables import Tables
from acp_proxy.ledger.writing.copied_tables import CopiedTables

_ANSWERS = 4.0  # seconds that an answer may take beyond the patience of who asks


class HubLedger(HubReader):
    """With the arguments of `open_ledger`; `must_exist` makes no difference, for a hub has a ledger."""

    def __init__(
        self,
        url: str,
        clock: Callable[[], int],
        *,
        patience: float,
        warn: Warn,
        journals: Sequence[Path],
        must_exist: bool = False,  # noqa: ARG002
        authorization: Authorization | None = None,
    ) -> None:
        named = canonical(url)
        authorized = authorization or authorization_for(named)
        super().__init__(named, HubConnection(named, hubs_of(url), authorized, patience + _ANSWERS))
        self._clock = clock
        self._warn = warn
        self._journals = journals
        self._appends = wire.APPEND
        self._keeping = Keeping(self.url, self._hub, journals, warn)

    def rest(self) -> None:
        self._hub.close()

    def close(self) -> None:
        self._keeping.close()
        super().close()

    @property
    def fails_over(self) -> bool:
        return self._keeping.fails_over

    def is_sure(self) -> bool:
        return self._keeping.is_sure()

    def restored(self, organisation: str, since: int = 0) -> Restored:  # noqa: ARG002  that of who asks
        try:
            return Restored(**asdict(self._hub.call(questions.SET_BACK, Since(since))))
        except (LedgerUnavailableError, LedgerForbiddenError):
            raise
        except LedgerError:  # a hub of an earlier version has none
            return NOTHING

    def replication(self) -> Replication | None:
        return None

    # -- rows

    def takes_over(self) -> None:
        self._appends = wire.MOVE

    def append(self, rows: Sequence[Row], *, in_order: bool = False) -> int:
        """More rows than a call may have are several transactions."""
        new = 0
        for start in range(0, len(rows), wire.MOST_ROWS):
            some = [_written(row) for row in rows[start : start + wire.MOST_ROWS]]
            appended = self._hub.call(self._appends, wire.Rows(some, in_order, whole=True))
            if appended.refused:
                raise RowRefusedError(appended.refused[0].detail)
            if self._appends is wire.APPEND:  # a copy is made again
                self._keeping.acknowledged(appended.place, *(Write(0, row=row) for row in some))
            new += appended.new
        return new

    def correct(self, before: Row, after: Row, now: int) -> bool:
        answer = self._hub.call(questions.CORRECT, questions.Correction(before, after, now))
        if answer.done:
            self._keeping.acknowledged(answer.place, Write(0, corrected=(before, after)))
        return answer.done

    def note_session(self, origin: Origin, session: str, title: str | None, at: int) -> None:
        self._hub.call(wire.NOTE_TITLE, wire.Titled(origin, booked(session), title, at))

    def state_of(self, origin: Origin, session: str) -> SessionState | None:
        return self._hub.call(wire.STATE, wire.OfSession(origin, booked(session))).state

    # -- holds

    def hold(
        self, turn: OpenTurn, wants: Sequence[tuple[Account, HoldSize]], now: int, until: int, *, unpriced: bool = False
    ) -> Held:
        turn = replace(turn, session=booked(turn.session))
        asked = wire.Admission(turn, [wire.Want(*want) for want in wants], now, until, unpriced, knows_policy=True)
        answer = self._hub.call(wire.ADMIT, asked)
        if self._keeping.look(answer.place):  # it was decided without what was missing
            answer = self._hub.call(wire.ADMIT, asked)
        own = [account for account, _ in wants if account.budget.layer != "hub"]
        return held_of([*own, *answer.accounts], answer)

    def release(self, organisation: str, turn: str) -> None:
        self._hub.call(wire.RELEASE, wire.Turn(turn, organisation))
        self._keeping.released(organisation, turn)

    def beat(self, organisation: str, turns: Sequence[str], until: int) -> None:
        if turns:
            self._hub.call(wire.BEAT, wire.Heartbeat(list(turns), self._clock(), until, organisation))

    def settle_dead(self, now: int) -> int:
        self._keeping.restore_left()
        recover(self, self._journals, self._warn)
        hosts = hosts_of(self._journals)
        found = self._hub.call(wire.OWNED, wire.OwnersTurns(hosts, now - ABANDONED))
        dead = [each.turn for each in found if is_dead(each.turn, each.expires_at, hosts, self._journals, now)]
        for turn in dead:
            self.book_held(turn.origin.organisation, turn.id, now, from_zero=False)
        return len(dead)

    def book_held(self, organisation: str, turn: str, now: int, *, from_zero: bool) -> bool:
        return self._hub.call(wire.BOOK_LOST, wire.Lost(turn, now, from_zero, organisation)).done

    # -- leases

    def taken_over(self, owners: Iterable[Owner]) -> list[Owner]:
        """Of these processes of this machine, which are gone, those of which no journal waits any more."""
        recover(self, self._journals, self._warn)
        return [owner for owner in owners if journal_of(owner, self._journals) is None]

    def lend(
        self, turn: OpenTurn, wants: Sequence[tuple[Account, HoldSize]], now: int, returned: Sequence[str]
    ) -> tuple[dict[str, int], int]:
        """What is lent by the keys of accounts, and for how many ns from the question on; `turn` has the lease's id."""
        turn = replace(turn, session=booked(turn.session))
        asked = [wire.Want(*want) for want in wants if want[0].budget.window.name != "turn"]
        lent = self._hub.call(LEND, Lending(turn, asked, now, list(returned)))
        own = [want.account for want in asked if want.account.budget.layer != "hub"]
        keys = [account.key for account in (*own, *lent.accounts[len(own) :])]
        return {**dict.fromkeys(keys, 0), **{keys[number]: amount for number, amount in lent.amounts}}, lent.usable

    def give_back(self, organisation: str, lease: str) -> None:
        self._hub.call(GIVE_BACK, wire.Turn(lease, organisation))

    def loans(self) -> list[Loan]:
        return self._hub.call(LOANS)

    # -- budgets

    def grant(self, grant: Grant) -> None:
        self._hub.call(wire.GRANT, grant)

    def ask_for_more(self, wish: Wish) -> MoreRequest:
        return self._hub.call(asking.ASK, wish)

    def decide(self, decision: RequestDecision) -> MoreRequest:
        return self._hub.call(asking.DECIDE, decision)

    def announce(self, account: Account, threshold: int, notice: Notice | None = None) -> bool:
        return self._hub.call(wire.ANNOUNCE, wire.Announcement(account, threshold, notice)).done

    def note_plan(self, origin: Origin, windows: Sequence[PlanWindow]) -> list[PlanState]:
        return self._hub.call(wire.NOTE_PLAN, wire.Told(origin, list(windows)))

    def announce_plan(
        self,
        organisation: str,
        state: PlanState,
        threshold: int,
        notice: Notice | None = None,
        budget: str | None = None,
    ) -> bool:
        asked = wire.PlanAnnouncement(organisation, state, threshold, notice, budget)
        return self._hub.call(wire.ANNOUNCE_PLAN, asked).done

    def count_decisions(self, decided: Iterable[tuple[Account, Decision]]) -> None:
        self._hub.call(wire.DECISIONS, wire.Decisions(list(decided)))

    def count_plan_decisions(self, organisation: str, standings: Iterable[PlanStanding]) -> None:
        self._hub.call(wire.PLAN_DECISIONS, wire.PlanDecisions(organisation, list(standings)))

    def decision_counts(self, organisation: str) -> list[DecisionCount]:
        return self._hub.call(questions.DECISION_COUNTS, questions.Of(organisation))

    def overshoots(self, organisation: str) -> list[Overshoot]:
        return self._hub.call(questions.OVERSHOOTS, questions.Of(organisation))

    def clock_ahead(self) -> int:
        before = self._clock()
        now = self._hub.call(wire.CLOCK).now
        return now - (before + self._clock()) // 2

    def forget_user(self, user: str, alias: str | None) -> people.Forgotten:
        return self._hub.call(people.FORGET, people.Forgetting(user, alias))

    # -- what holds for everybody

    def policy(self, tag: str | None) -> tuple[str, Kept] | None:
        """The policy with its ETag; None where it is still that of `tag`."""
        return self._hub.tagged(POLICY, tag)

    def change_policy(self, changes: Changes, tag: str | None = None) -> Kept:
        """Raises LedgerChangedError where it is not that of `tag` any more."""
        return self._hub.call(CHANGE_POLICY, changes, if_match=tag)

    def policy_history(self) -> list[Kept]:
        return self._hub.call(POLICY_HISTORY)

    # -- beside them

    def note_settings(self, said: Settings) -> None:
        self._hub.call(questions.NOTE_MACHINE, said)

    def settings(self, organisation: str, now: int) -> list[Settings]:
        return self._hub.call(questions.MACHINES, questions.At(organisation, now))

    @property
    def outbox(self) -> Outbox:
        return cast(Outbox, HubOutbox(self._hub))

    def delivery_counts(self, organisation: str) -> list[DeliveryCount]:
        return self._hub.call(questions.DELIVERIES, questions.Of(organisation))

    @property
    def tallied(self) -> Tallied:
        return cast(Tallied, HubTallied(self._hub))

    @property
    def beside(self) -> CopiedTables:
        return cast(CopiedTables, HubTables(self._hub))

    @property
    def exports(self) -> Exports:
        raise LedgerForbiddenError(f"ledger {self.url}: the hub itself exports telemetry")

    @property
    def tables(self) -> Tables:
        raise LedgerForbiddenError(f"ledger {self.url}: its database is the hub's alone")

    def exporters(self, organisation: str) -> list[Exporter]:
        return self._hub.call(questions.EXPORTERS, questions.Of(organisation))

    def bill_sources(self, organisation: str) -> list[BillSource]:
        return self._hub.call(questions.BILL_SOURCES, questions.Of(organisation))

    def check(self) -> str:
        return self._hub.call(questions.CHECK).says

    def rebuild(self) -> bool:
        return self._hub.call(questions.REBUILD).done


def _written(row: Row) -> Row:
    """With its session's id as it is booked: JSON has no place for half a character."""
    session = booked(row.entry.session)
    return row if session == row.entry.session else replace(row, entry=replace(row.entry, session=session))


def held_of(accounts: Sequence[Account], answer: wire.Admitted) -> Held:
    """What was decided on these accounts."""
    standings = tuple(standings_of(accounts, answer.figures))
    verdict = Verdict(
        None if answer.binding is None else standings[answer.binding],
        tuple((accounts[number], amount) for number, amount in answer.holds),
        tuple((accounts[number], decision) for number, decision in answer.decisions),
    )
    return Held(verdict, standings, answer.policy)
