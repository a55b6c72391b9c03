"""The reads that both backends share, in the same SQL. A backend implements `_read`, and opens its database.

Imports no code that writes: read-only commands, above all `status`, start often.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acp_proxy.core.budget import Account, Standing
from acp_proxy.ledger import Query, Row, SessionInfo, Sums, TurnTimes, Warn
from acp_proxy.ledger.columns import LINE_TOKENS
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.reading.recent import Recent
from acp_proxy.ledger.reading.rows import read_rows
from acp_proxy.ledger.sums.reading import read_sums

if TYPE_CHECKING:
    from acp_proxy.core.budget.requests import MoreRequest
    from acp_proxy.core.plans import PlanChange, PlanState
    from acp_proxy.ledger.budgets import Grant
    from acp_proxy.ledger.durability import Replication, Restored

_ASKED_AT_ONCE = 500  # ids
_LOOKED_THROUGH = 1000  # turns, for those that resemble one


class SqlReader(ABC):
    """A `BudgetReader`. `journals` are the directories in which processes of this host keep theirs."""

    dialect: Dialect
    url: str

    def __init__(self, warn: Warn, journals: Sequence[Path]) -> None:
        self._warn = warn
        self._journals = journals

    @abstractmethod
    def _read(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """All rows of one statement, read in one short transaction of its own."""

    @abstractmethod
    def settle_dead(self, now: int) -> int: ...

    @abstractmethod
    def close(self) -> None: ...

    @property
    def recent(self) -> Recent:
        return Recent(self._read, self.dialect)

    def rows(self, query: Query) -> Iterator[Row]:
        return read_rows(self._read, query, self.dialect)

    def existing(self, organisation: str, ids: Iterable[str]) -> set[str]:
        wanted, found = iter(ids), set[str]()
        while some := tuple(islice(wanted, _ASKED_AT_ONCE)):
            marks = ", ".join("?" * len(some))
            sql = f"SELECT id FROM turn WHERE org_id = ? AND id IN ({marks})"
            found.update(each for (each,) in self._read(sql, (organisation, *some)))
        return found

    def turn_times(self, organisation: str, user: str, *, without_client: str) -> Iterator[TurnTimes]:
        sql = """
            SELECT session, kind, started_at, ended_at, usage_source FROM turn
            WHERE org_id = ? AND user_id = ? AND (client IS NULL OR client <> ?)
        """
        return (TurnTimes(*found) for found in self._read(sql, (organisation, user, without_client)))

    def costliest(self, query: Query, currencies: Sequence[str], most: int) -> list[Row]:
        from acp_proxy.ledger.reading.costliest import read_costliest  # not for a status

        return read_costliest(self._read, query, currencies, most, self.dialect)

    def summed(self, query: Query, by: Sequence[str]) -> list[Sums]:
        return read_sums(self._read, query, by, self.dialect)

    def session_sums(self, query: Query) -> Iterator[tuple[SessionInfo, Sums]]:
        from acp_proxy.ledger.reading.by_session import read_session_sums  # not for a status

        return read_session_sums(self._read, query, self.dialect)

    def costliest_sessions(
        self, query: Query, currencies: Sequence[str], most: int
    ) -> tuple[list[tuple[SessionInfo, Sums]], int]:
        from acp_proxy.ledger.reading.by_session import read_costliest_sessions

        return read_costliest_sessions(self._read, query, currencies, most, self.dialect)

    def sessions(self, query: Query) -> Iterator[SessionInfo]:
        from acp_proxy.ledger.reading.by_session import read_sessions

        return read_sessions(self._read, query, self.dialect)

    def standing(self, accounts: Sequence[Account], now: int) -> list[Standing]:
        if not accounts:
            return []
        from acp_proxy.ledger.accounts.live_standings import live_standings

        return live_standings(self._read, accounts, now, self.dialect, self.settle_dead)

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
        resembles, values = "t.kind = 'turn'", list[Any]()
        if user is not None:
            resembles += " AND t.user_id = ?"
            values.append(user)
        if model is not None:
            of_turn = "l.org_id = t.org_id AND l.turn = t.id"
            resembles += f" AND EXISTS (SELECT 1 FROM line l WHERE {of_turn} AND l.model = ?)"
            values.append(model)
        amount, known = _amount_of(unit)
        sql = f"""
            SELECT {amount}
            FROM (
                SELECT * FROM (
                    SELECT * FROM turn WHERE org_id = ? AND agent = ? ORDER BY started_at DESC LIMIT {_LOOKED_THROUGH}
                ) t WHERE {resembles} AND {known} ORDER BY t.started_at DESC LIMIT {n}
            ) t JOIN line l ON l.org_id = t.org_id AND l.turn = t.id
            GROUP BY t.started_at, t.id ORDER BY t.started_at DESC, t.id DESC
        """
        found = self._read(sql, (*([unit] if "?" in amount else []), organisation, agent, *values))
        return [int(amount) for (amount,) in found if amount is not None]

    def plans(self, organisation: str, user: str | None = None) -> list[PlanState]:
        from acp_proxy.ledger import plans

        return plans.latest(self._read, organisation, user)

    def plan_changes(
        self, organisation: str, since: int | None = None, until: int | None = None, user: str | None = None
    ) -> list[PlanChange]:
        from acp_proxy.ledger import plans

        return plans.changes(self._read, organisation, since, until, user)

    def restored(self, organisation: str, since: int = 0) -> Restored:
        from acp_proxy.ledger import restored  # not for a status

        return restored.read(self._read, organisation, since)

    def replication(self) -> Replication | None:
        return None

    def requests(self, *, own: bool) -> list[MoreRequest]:  # noqa: ARG002
        return []

    def grants(self, organisation: str, at: int | None = None) -> list[Grant]:
        from acp_proxy.ledger.budgets import Grant  # and all that is held, which few ask for

        counts = "" if at is None else "AND starts_at <= ? AND ends_at > ?"
        sql = f"""
            SELECT id, org_id, layer, budget, value, amount, unit, starts_at, ends_at, who, why
            FROM granted WHERE org_id = ? {counts} ORDER BY starts_at, id
        """
        return [Grant(*found) for found in self._read(sql, (organisation, *([] if at is None else [at, at])))]


def _amount_of(unit: str) -> tuple[str, str]:
    """SQL for a turn's usage in `unit`, and a condition for turns with known usage."""
    match unit:
        case "turns":
            return "1", "1 = 1"
        case "tokens":
            # No prompt takes 0: it failed, or only cost is told.
            return f"nullif(sum({LINE_TOKENS}), 0)", "t.usage_source <> 'none'"
    return "sum(CASE WHEN l.currency = ? THEN l.cost_nano END)", "t.unpriced = 0"
