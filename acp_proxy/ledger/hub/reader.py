"""Reading a ledger by its hub: a `BudgetReader`. Who asks sees what their role may see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import cast

from msgspec.structs import asdict

from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.budget.requests import MoreRequest
from acp_proxy.core.entry import Origin
from acp_proxy.core.plans import PlanChange, PlanState
from acp_proxy.ledger import Context, OpenTurn, Query, Row, SessionInfo, Sums, TurnTimes
from acp_proxy.ledger.budgets import Grant
from acp_proxy.ledger.hub import asking, questions, wire
from acp_proxy.ledger.hub.connection import HubConnection
from acp_proxy.ledger.reading.recent import Recent

_ASKED_AT_ONCE = 5000  # ids
_ANY = Query()


class HubReader:
    """What both readers and ledgers do. `url` names the hubs."""

    def __init__(self, url: str, hub: HubConnection) -> None:
        self.url = url
        self._hub = hub

    @property
    def recent(self) -> Recent:
        return cast(Recent, HubRecent(self._hub))

    def rows(self, query: Query) -> Iterator[Row]:
        return self._hub.stream(questions.ROWS, questions.Wanted(query))

    def existing(self, organisation: str, ids: Iterable[str]) -> set[str]:
        wanted, found = iter(ids), set[str]()
        while some := list(islice(wanted, _ASKED_AT_ONCE)):
            there = self._hub.call(questions.EXISTING, questions.Ids(organisation, some))
            found.update(there)
        return found

    def turn_times(self, organisation: str, user: str, *, without_client: str) -> Iterator[TurnTimes]:
        return self._hub.stream(questions.TURN_TIMES, questions.UsersTurns(organisation, user, without_client))

    def costliest(self, query: Query, currencies: Sequence[str], most: int) -> list[Row]:
        return self._hub.call(questions.COSTLIEST, questions.Costliest(query, list(currencies), most))

    def summed(self, query: Query, by: Sequence[str]) -> list[Sums]:
        return self._hub.call(questions.SUMMED, questions.SummedBy(query, list(by)))

    def sessions(self, query: Query) -> Iterator[SessionInfo]:
        return self._hub.stream(questions.SESSIONS, questions.Wanted(query))

    def session_sums(self, query: Query) -> Iterator[tuple[SessionInfo, Sums]]:
        return self._hub.stream(questions.SESSION_SUMS, questions.Wanted(query))

    def costliest_sessions(
        self, query: Query, currencies: Sequence[str], most: int
    ) -> tuple[list[tuple[SessionInfo, Sums]], int]:
        asked = questions.Costliest(query, list(currencies), most)
        found = self._hub.call(questions.COSTLIEST_SESSIONS, asked)
        return found.sessions, found.number

    def standing(self, accounts: Sequence[Account], now: int) -> list[Standing]:
        if not accounts:
            return []
        found = self._hub.call(wire.STANDINGS, wire.Accounts(list(accounts), now))
        return standings_of(accounts, found)

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
        return self._hub.call(wire.RECENT_COSTS, wire.Resembling(organisation, agent, unit, model, user, n))

    def grants(self, organisation: str, at: int | None = None) -> list[Grant]:
        return self._hub.call(wire.GRANTS, wire.GrantsAt(organisation, at))

    def requests(self, *, own: bool) -> list[MoreRequest]:
        return self._hub.call(asking.REQUESTS, asking.Wanted(own=own))

    def plans(self, organisation: str, user: str | None = None) -> list[PlanState]:
        return self._hub.call(questions.PLANS, wire.Plans(organisation, user))

    def plan_changes(
        self, organisation: str, since: int | None = None, until: int | None = None, user: str | None = None
    ) -> list[PlanChange]:
        asked = wire.Plans(organisation, user, since, until)
        return self._hub.call(questions.PLAN_CHANGES, asked)

    def close(self) -> None:
        self._hub.close()


class HubRecent:
    """`Recent` by a hub."""

    def __init__(self, hub: HubConnection) -> None:
        self._hub = hub

    def sessions(
        self,
        organisation: str,
        most: int,
        before: SessionInfo | None = None,
        find: str | None = None,
        ended: tuple[int | None, int | None] = (None, None),
        query: Query = _ANY,
    ) -> list[SessionInfo]:
        asked = questions.RecentSessions(organisation, most, before, find, ended, query)
        return self._hub.call(questions.RECENT_SESSIONS, asked)

    def session(self, origin: Origin, session: str) -> SessionInfo | None:
        return self._hub.call(questions.SESSION, questions.SessionOf(origin, session)).session

    def named(self, session: str) -> Iterator[SessionInfo]:
        yield from self._hub.call(questions.NAMED, questions.Named(session))

    def keyed(self, beginning: str) -> Iterator[SessionInfo]:
        yield from self._hub.call(questions.KEYED, questions.Named(beginning))

    def agents(self) -> list[tuple[str, str | None, int]]:
        return self._hub.call(questions.AGENTS)

    def last_turn(self, organisation: str, user: str) -> Row | None:
        return self._hub.call(questions.LAST_TURN, questions.OfUser(organisation, user)).row

    def rows(self, session: SessionInfo, most: int) -> list[Row]:
        return self._hub.call(questions.LAST_ROWS, questions.LastRows(session, most))

    def contexts(self, session: SessionInfo) -> Iterator[Context]:
        return self._hub.stream(questions.CONTEXTS, questions.OneSession(session))

    def open_turns(self, organisation: str, at: int) -> list[OpenTurn]:
        return self._hub.call(questions.OPEN_TURNS, questions.At(organisation, at))

    def rows_by_four_weeks(self, organisation: str) -> Mapping[int, int]:
        return self._hub.call(questions.FOUR_WEEKS, questions.Of(organisation))

    def rows_by_day(self, organisation: str, four_weeks: int) -> Mapping[int, int]:
        return self._hub.call(questions.BY_DAY, questions.Days(organisation, four_weeks))


def standings_of(accounts: Sequence[Account], figures: Sequence[wire.Figures]) -> list[Standing]:
    """One by one."""
    return [Standing(account, **asdict(each)) for account, each in zip(accounts, figures, strict=True)]
