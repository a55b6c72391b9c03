"""The writes that both backends share, in the same SQL. A backend implements `_read`, `_write` and `_lock`.

`_write` may run its work more than once, so the work must have no effects outside of the transaction.
"""

from __future__ import annotations

import os
import random
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from acp_proxy.core.budget import Account
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.lease import Terms
from acp_proxy.core.budget.plan_limits import PlanStanding
from acp_proxy.core.budget.verdict import decide
from acp_proxy.core.entry import Origin, SessionState
from acp_proxy.core.notice import Notice
from acp_proxy.core.plans import PlanState, PlanWindow
from acp_proxy.core.session_ids import booked
from acp_proxy.ledger import (
    LedgerError,
    LedgerForbiddenError,
    OpenTurn,
    Query,
    Row,
    RowRefusedError,
    Warn,
    exports,
    plans,
    restored,
    session_keys,
    settings,
)
from acp_proxy.ledger.accounts import balance_updates, balances, holding, overshoot, pending_rows, standings
from acp_proxy.ledger.accounts.batched_holds import BatchedHolds, Prompt
from acp_proxy.ledger.accounts.lending import Charging, Lending, by_lease, give_back
from acp_proxy.ledger.accounts.spending import organisation_of
from acp_proxy.ledger.bill_sources import BillSource, sources
from acp_proxy.ledger.budgets import Decision, DecisionCount, Grant, Held, Overshoot
from acp_proxy.ledger.columns import OF_SESSION, key_values
from acp_proxy.ledger.exports import Exporter, Exports
from acp_proxy.ledger.journal.recovery import append_all, recover
from acp_proxy.ledger.notices import DeliveryCount, Outbox, note
from acp_proxy.ledger.open_turns import dead_turns, open_turn, open_turns
from acp_proxy.ledger.owners import Owner, hosts_of
from acp_proxy.ledger.settings import Settings
from acp_proxy.ledger.sql_reader import SqlReader
from acp_proxy.ledger.statements import NotAsAssumedError, Run, execute, insertions
from acp_proxy.ledger.sums import tallies, totals
from acp_proxy.ledger.sums.reading import read_sums
from acp_proxy.ledger.sums.tallied import Tallied
from acp_proxy.ledger.sums.tallies import SHARDS
from acp_proxy.ledger.tables import Tables
from acp_proxy.ledger.writing.appending import Appending
from acp_proxy.ledger.writing.at_once import Known
from acp_proxy.ledger.writing.copied_tables import CopiedTables
from acp_proxy.ledger.writing.correcting import Correcting
from acp_proxy.ledger.writing.rows import NOTE_TITLE, STATE, costs_of, state_of, title_values

if TYPE_CHECKING:
    from acp_proxy.core.budget.requests import MoreRequest, Wish

T = TypeVar("T")

_ASKED_AT_ONCE = 200  # ids


class _OwnersGoneError(Exception):
    """Holds that prevent admission belong to processes that are gone."""


class SqlLedger(SqlReader):
    """A `BudgetLedger`."""

    fails_over = False

    def __init__(self, warn: Warn, journals: Sequence[Path]) -> None:
        super().__init__(warn, journals)
        self._known = Known()
        self._incarnation = os.urandom(8).hex()
        self._unkept: list[tuple[int, Account]] = []  # since when an account's sum is missing
        self._shard = 0 if self.dialect.serial else random.randrange(SHARDS)  # noqa: S311  (of no use to guess)

    @abstractmethod
    def _write(self, work: Callable[[Run], T], *, early: bool = False) -> T:
        """Run `work` in one transaction, and return its result; `early` where others wait for what it locks."""

    @abstractmethod
    def _lock(self, run: Run, accounts: Sequence[Account]) -> None:
        """Prevent other holds against these accounts until this transaction ends."""

    def _insert(self, run: Run, inserts: Sequence[holding.Insert]) -> None:
        """Into several tables, while everyone else may be waiting."""
        for insert in inserts:
            execute(run, insertions(*insert))

    @abstractmethod
    def _lock_sums(self, run: Run, organisation: str) -> None:
        """Prevent others from creating or updating balances of this organisation until this transaction ends."""

    @abstractmethod
    def _lock_totals(self, run: Run) -> None:
        """Prevent other writes of totals until this transaction ends."""

    @abstractmethod
    def check(self) -> str: ...

    def takes_over(self) -> None:
        """A database takes the rows of anybody."""

    def rest(self) -> None:
        """A file keeps nothing that others lack."""

    def is_sure(self) -> bool:
        return True

    def is_everywhere(self) -> bool:
        """Whether all that anybody has written by now is where a failover keeps it; unknown is no."""
        return True

    def incarnation(self) -> str:
        """Another text where the ledger may have been set back meanwhile: a file is between two openings."""
        return self._incarnation

    def note_restored(self, origin: Origin, id: str, at: int, count: int, lost_until: int | None) -> None:
        """So many rows were sent again that had been lost; of all calls with this id it is one line."""
        said = (origin.organisation, id, at, origin.host, origin.user, count, lost_until)
        self._write(lambda run: restored.note(run, *said))

    def append(self, rows: Sequence[Row], *, in_order: bool = False) -> int:
        return len(self._appended(rows, in_order=in_order))

    def append_together(self, of_each: Sequence[Sequence[Row]], *, in_order: bool = False) -> list[int]:
        """How many rows of each were new. Those that go on with what is there wait for none that begins something."""
        rows = [row for some in of_each for row in some]
        begun = [row for row in rows if self.dialect.remote and self._known.goes_on(row)]
        ids = {id(row) for row in begun}
        new = Counter[tuple[str, str]]()
        for some in (begun, [row for row in rows if id(row) not in ids]):
            if some:
                new.update((row.origin.organisation, row.entry.id) for row in self._appended(some, in_order=in_order))
        return [sum(_taken(new, row) for row in some) for some in of_each]

    def _appended(self, rows: Sequence[Row], *, in_order: bool) -> Sequence[Row]:
        """Those that were new."""
        self._known.look_again(time.monotonic())
        appending = Appending(rows, self._known, self.dialect, self._shard, in_order=in_order)
        self._append(appending)
        appending.committed()
        for organisation in appending.due:
            with suppress(LedgerError):  # the rows are there, and count: the next append adds them up
                self._write(partial(self._add_up, organisation))
        self._keep_sums()
        return appending.new

    def correct(self, before: Row, after: Row, now: int) -> bool:
        correcting = Correcting(before, after, now)
        series = self._write(lambda run: correcting.write(run, self._known.series, self._lock_sums))
        self._known.series |= series or set()
        return series is not None

    def _append(self, appending: Appending) -> None:
        for write in appending.tries(self._lock):
            with suppress(NotAsAssumedError):
                self._write(write)
                return

    def _add_up(self, organisation: str, run: Run) -> None:
        """Does nothing while somebody else does."""
        if turns := self._take_pending(run, organisation):
            pending_rows.add_up(run, organisation, turns)

    def _take_pending(self, run: Run, organisation: str) -> list[str]:  # noqa: ARG002
        """Rows that are in no sum yet, locked like `_lock_sums`: they are there no more, for who adds them up."""
        return []

    def note_session(self, origin: Origin, session: str, title: str | None, at: int) -> None:
        self._write(lambda run: run(NOTE_TITLE, title_values(origin, session, title, at)))

    def state_of(self, origin: Origin, session: str) -> SessionState | None:
        key = key_values(origin, booked(session))
        found = self._read(STATE, key)
        return state_of(found[0], self._read(*costs_of(self.dialect, key))) if found else None

    def hold(
        self, turn: OpenTurn, wants: Sequence[tuple[Account, HoldSize]], now: int, until: int, *, unpriced: bool = False
    ) -> Held:
        if not wants:
            return Held(decide((), ()), ())
        accounts = [account for account, _ in wants]
        request = holding.HoldRequest(turn, wants, until, unpriced=unpriced)
        question = standings.Question(accounts, now, self.dialect, turn.id)
        held = self._hold_at_once(request, question, now) if self.dialect.remote and not request.is_denied else None
        if held is None:
            try:
                held = self._write(partial(self._hold, request, question, now, look_for_dead=True), early=True)
            except _OwnersGoneError:
                self.settle_dead(now)
                held = self._write(partial(self._hold, request, question, now, look_for_dead=False), early=True)
        return self._opened(turn, request, held)

    def hold_together(self, prompts: Sequence[Prompt]) -> list[Held | RowRefusedError]:
        """As `hold` of each, in one transaction as far as a server is certain that they fit."""
        found: dict[int, Held] = {}
        batch = BatchedHolds(prompts if self.dialect.remote else (), self.dialect)
        if len(batch) > 1:
            with suppress(RowRefusedError, NotAsAssumedError):  # because of one: which, is found out one by one
                for number, request, held in batch.held(self._write(partial(batch.ask, self._lock), early=True)):
                    found[number] = self._opened(prompts[number].turn, request, held)
        return [found.get(number) or self._held(prompt) for number, prompt in enumerate(prompts)]

    def _held(self, prompt: Prompt) -> Held | RowRefusedError:
        try:
            return self.hold(prompt.turn, prompt.wants, prompt.now, prompt.until, unpriced=prompt.unpriced)
        except RowRefusedError as error:
            return error

    def _opened(self, turn: OpenTurn, request: holding.HoldRequest, held: Held) -> Held:
        if self.dialect.remote and (opened := request.opened(held)):
            self._known.opened(turn.id, opened)
        return held

    def _hold_at_once(self, request: holding.HoldRequest, question: standings.Question, now: int) -> Held | None:
        """Where the server is certain that it fits; else None, and nothing is held."""
        try:
            rows = self._write(partial(self._ask_to_hold, request, question), early=True)
            held, (found, missing) = request.admitted(question, rows), question.answered(rows)
            # Few rows are added up for a session. The sum is kept when no prompt waits for it.
            if held is None and missing and all(map(balances.is_small, missing)):
                question = question.with_kept(found)
                held = request.admitted(
                    question, self._write(partial(self._ask_to_hold, request, question), early=True)
                )
                self._unkept += [(now, account) for account in missing]
        except RowRefusedError:  # a kept sum that cannot be read, perhaps: it is made anew
            return None
        return held

    def _ask_to_hold(
        self, request: holding.HoldRequest, question: standings.Question, run: Run
    ) -> list[tuple[Any, ...]]:
        self._lock(run, question.accounts)
        return run.each([request.at_once(question)], last=True)[0]

    def _keep_sums(self) -> None:
        """Those that were missing when a prompt was in a hurry."""
        unkept, self._unkept = self._unkept, []
        for now, account in unkept:
            with suppress(LedgerError):  # the next prompt adds it up again
                self._write(partial(self._make_sums, now=now, accounts=[account]))

    def _hold(
        self, request: holding.HoldRequest, question: standings.Question, now: int, run: Run, *, look_for_dead: bool
    ) -> Held:
        self._lock(run, question.accounts)
        found = question.ask(run, partial(self._make_sums, run, now))
        held = request.decide(run, found, self.dialect, self._insert)
        # Asking the system costs 20 µs an owner, so only when it matters: a hold that would be forgotten unbooked, or
        # one that is in the way.
        suspects = found.expired if held.admitted else standings.owners_of(run, question.accounts)
        if look_for_dead and self._any_dead(suspects):
            raise _OwnersGoneError
        return held

    def _any_dead(self, owners: Collection[Owner]) -> bool:
        hosts = hosts_of(self._journals) if owners else ()
        return any(owner.host in hosts and owner.is_gone for owner in owners)

    def _make_sums(self, run: Run, now: int, accounts: Sequence[Account]) -> None:
        self._lock_sums(run, organisation_of(accounts[0]))
        balance_updates.make(run, accounts, now, self.dialect)

    def release(self, organisation: str, turn: str, *, asked_elsewhere: bool = False) -> None:
        """`asked_elsewhere` is whether another connection may have asked to hold for it."""
        self._known.turns.pop(turn, None)
        self._write(partial(self._release, organisation, turn, asked_elsewhere and self.dialect.remote))
        self._known.released(turn)
        self._keep_sums()

    def _release(self, organisation: str, turn: str, asked_elsewhere: bool, run: Run) -> None:
        """Under the lock, what an earlier question of its prompt did is seen, and what one does later sees this."""
        if unsure := self._known.unsure.get(turn):
            self._lock(run, unsure)
        if unsure or asked_elsewhere:
            holding.forbid(run, organisation, turn, time.time_ns())
        holding.end(run, organisation, [turn])

    def lend(
        self,
        lease: OpenTurn,
        wants: Sequence[tuple[Account, HoldSize]],
        terms: Terms,
        now: int,
        returned: Sequence[str] = (),
    ) -> dict[str, int]:
        """Of these accounts a part of what is left, by their keys, held as by the turn `lease` until it is returned."""
        lending = Lending(lease, wants, terms, now, self.dialect, returned)

        def work(run: Run) -> dict[str, int]:
            return lending.write(run, self._lock, partial(self._make_sums, run, now), self._insert)

        return self._write(work, early=True)

    def give_back(self, organisation: str, user: str, leases: Sequence[str]) -> None:
        self._write(lambda run: give_back(run, organisation, user, leases))

    def charge_leases(self, rows: Iterable[Row], until: int) -> None:
        """Take out of leases what these rows were paid with; each row is to be appended before `until`."""
        for lease, some in by_lease(rows).items():
            charging = Charging(lease, some, until, self.dialect)
            self._write(partial(charging.write, lock=self._lock, insert_all=self._insert), early=True)

    def beat(self, organisation: str, turns: Sequence[str], until: int) -> None:
        if turns:
            ahead, clock = self.dialect.ahead()
            end, some = f"? + {ahead}", ", ".join("?" * len(turns))
            which = f"org_id = ? AND turn IN ({some}) AND expires_at < {end}"
            sql = f"UPDATE open_turn SET expires_at = {end} WHERE {which}"
            self._write(lambda run: run(sql, (until, *clock, organisation, *sorted(turns), until, *clock)))

    def settle_dead(self, now: int) -> int:
        recover(self, self._journals, self._warn)
        dead = dead_turns(self._read, self._journals, now, self.dialect)
        for each in dead:
            self._book(each, now)
        return len(dead)

    def book_held(self, organisation: str, turn: str, now: int, *, from_zero: bool) -> bool:
        found = self._read(*open_turns(self.dialect, "org_id = ? AND turn = ?", (organisation, turn)))
        return bool(found) and self._book(found[0], now, from_zero=from_zero)

    def _book(self, found: tuple[Any, ...], now: int, *, from_zero: bool = False) -> bool:
        turn, _ = open_turn(found)
        holds = self._read(holding.HOLDS_OF_TURN, (turn.origin.organisation, turn.id))
        if holds:  # else it was settled or released meanwhile, or held nothing of anything
            row = holding.last_known(found, holds, now)
            if from_zero and not self._said_since(turn):
                row = replace(row, state=SessionState(model=row.entry.model, from_zero=True))
            append_all(self, [row], self._warn)
        self.release(turn.origin.organisation, turn.id)  # also of a row that is refused: it would come up at each start
        return bool(holds)

    def _said_since(self, turn: OpenTurn) -> bool:
        """Whether its session has a row that ended after it began, as where its prompt waited behind another."""
        sql = f"SELECT 1 FROM session WHERE {OF_SESSION} AND ended_at > ?"
        return bool(self._read(sql, (*key_values(turn.origin, turn.session), turn.started_at)))

    def users_of(self, organisation: str, turns: Sequence[str]) -> dict[str, str]:
        """Whose these turns are, of those that run or have a row, by their ids."""
        found: dict[str, str] = {}
        for start in range(0, len(turns), _ASKED_AT_ONCE):
            some = turns[start : start + _ASKED_AT_ONCE]
            marks = ", ".join("?" * len(some))
            sql = f"""
                SELECT id, user_id FROM turn WHERE org_id = ? AND id IN ({marks})
                UNION ALL SELECT turn, user_id FROM open_turn WHERE org_id = ? AND turn IN ({marks})
            """
            found.update(self._read(sql, (organisation, *some, organisation, *some)))
        return found

    def turns_of(self, hosts: Sequence[str], abandoned: int) -> list[tuple[OpenTurn, int]]:
        """Open turns of these hosts' processes, or that expired before a time, with when they expire."""
        some = f"owner_host IN ({', '.join('?' * len(hosts))})" if hosts else "1 = 0"
        found = self._read(*open_turns(self.dialect, f"{some} OR expires_at < ?", (*hosts, abandoned)))
        return [open_turn(each) for each in found]

    def grant(self, grant: Grant) -> None:
        self._write(lambda run: self.grant_in(run, grant))

    def grant_in(self, run: Run, grant: Grant) -> None:
        """The same within a transaction, beside what others change in it."""
        values = [getattr(grant, name) for name in _GRANT_FIELDS]
        sql = f"INSERT INTO granted VALUES ({', '.join('?' * len(values))}) ON CONFLICT DO NOTHING RETURNING 1"
        if run(sql, values):
            self._insert(run, holding.granting(grant))
            exports.note(run, grant.organisation, "grant", [grant.id], grant.at)

    def ask_for_more(self, wish: Wish) -> MoreRequest:
        raise LedgerForbiddenError(f"ledger {self.url}: nobody to ask for more of {wish.budget!r}: that needs a hub")

    def announce(self, account: Account, threshold: int, notice: Notice | None = None) -> bool:
        return self._announce((organisation_of(account), account.notice_key, threshold), notice)

    def _announce(self, key: tuple[str, str, int], notice: Notice | None) -> bool:
        teller = os.urandom(8).hex()  # so that who asks again, having lost the answer, is told the same

        def work(run: Run) -> bool:
            run("INSERT INTO announced VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", (*key, teller))
            note(run, [notice] if notice else [])
            sql = "SELECT teller FROM announced WHERE org_id = ? AND notice = ? AND threshold = ?"
            return run(sql, key) == [(teller,)]

        return self._write(work)

    def note_plan(self, origin: Origin, windows: Sequence[PlanWindow]) -> list[PlanState]:
        return self._write(lambda run: plans.note(run, origin.organisation, origin.user, origin.agent, windows))

    def announce_plan(
        self,
        organisation: str,
        state: PlanState,
        threshold: int,
        notice: Notice | None = None,
        budget: str | None = None,
    ) -> bool:
        return self._announce((organisation, plans.notice_key(state, budget), threshold), notice)

    def count_decisions(self, decided: Iterable[tuple[Account, Decision]]) -> None:
        self._count(holding.counting(decided))

    def count_plan_decisions(self, organisation: str, standings: Iterable[PlanStanding]) -> None:
        self._count(holding.counting_of_plans(organisation, standings))

    def _count(self, inserts: Sequence[holding.Insert]) -> None:
        """Increments only, which nothing tells from those of another call."""
        self._write(lambda run: self._insert(run, inserts))

    def decision_counts(self, organisation: str) -> list[DecisionCount]:
        sql = """
            SELECT layer, budget, decision, sum(count) FROM decision WHERE org_id = ? GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        """
        return [DecisionCount(*found) for found in self._read(sql, (organisation,))]

    def overshoots(self, organisation: str) -> list[Overshoot]:
        of_each = groupby(self._read(overshoot.READ, (organisation,)), itemgetter(0, 1, 2))
        return [
            Overshoot(layer, budget, unit, sum(each[-1] for each in found)) for (layer, budget, unit), found in of_each
        ]

    def clock_ahead(self) -> int:
        ahead, clock = self.dialect.ahead()
        ((found,),) = self._read(f"SELECT {ahead}", clock)
        return int(found)

    def note_settings(self, said: Settings) -> None:
        if settings.is_news(self._read, said):
            self._write(lambda run: settings.note(run, said))

    def settings(self, organisation: str, now: int) -> list[Settings]:
        return settings.seen(self._read, organisation, now)

    @property
    def outbox(self) -> Outbox:
        return Outbox(self._read, self._write, self.dialect)

    @property
    def exports(self) -> Exports:
        return Exports(self._read, self._write)

    @property
    def beside(self) -> CopiedTables:
        return CopiedTables(self._read, self._write)

    @property
    def tables(self) -> Tables:
        return Tables(self._read, self._write, self.dialect)

    def exporters(self, organisation: str) -> list[Exporter]:
        return self.exports.exporters(organisation)

    def bill_sources(self, organisation: str) -> list[BillSource]:
        return sources(self._read, organisation)

    def delivery_counts(self, organisation: str) -> list[DeliveryCount]:
        return self.outbox.counts(organisation)

    @property
    def tallied(self) -> Tallied:
        return Tallied(self._read, self._write, self._shard)

    def rebuild(self) -> bool:
        def work(run: Run) -> bool:
            self._lock_totals(run)
            before = read_sums(run, Query(), (), self.dialect)
            organisations = [organisation for (organisation,) in run("SELECT DISTINCT org_id FROM session", ())]
            for organisation in sorted(organisations):
                self._lock_sums(run, organisation)
            totals.rebuild(run, organisations)
            tallies.rebuild(run, organisations)
            session_keys.note_all(run)  # of sessions that somebody has given another user
            balance_updates.forget(run)
            return read_sums(run, Query(), (), self.dialect) == before

        return self._write(work)


_GRANT_FIELDS = ("organisation", "id", "layer", "budget", "value", "amount", "unit", "at", "until", "who", "why")


def _taken(new: Counter[tuple[str, str]], row: Row) -> int:
    """1 for a row that was new, of several with one id for the first."""
    key = row.origin.organisation, row.entry.id
    found = min(new[key], 1)
    new[key] -= found
    return found


def sized(rows: int, size: int) -> str:
    """`10,887 rows, 5.1 MB`; `size` is bytes."""
    return f"{rows:,} {'row' if rows == 1 else 'rows'}, {size / 1e6:,.1f} MB"
