"""One session of the ledger: found by what a user calls it, with its turns in the order of time. Renders nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.windows import DAY, HOUR
from acp_proxy.ledger import Context, LedgerReader, Query, Row, SessionInfo
from acp_proxy.ledger.budgets import BudgetReader
from acp_proxy.report import Line, Report, currencies_of, line_of, session_key, sums_of_all, turn_line
from acp_proxy.report.context import Point, context_of, points, thinned
from acp_proxy.text.times import Zone

_BACK = (HOUR, DAY, 14 * DAY, None)  # how far the last session is looked for, step by step
_SHORTEST_KEY = 4
_MOST_NAMED = 5

Where = tuple[tuple[str, str | None], ...]


class NoSuchSession(Exception):  # noqa: N818  it is a user's mistake, told in one line
    """No session, or more than one, is called so."""


class SessionReport(Struct, frozen=True):
    """One session as people are shown it."""

    line: Line  # as in a report by session, of all rows whenever they were
    info: SessionInfo
    turns: Report  # by turn, in the order of time; the latest of them, where no more were wanted
    rows: int  # as many as there are, whether they are in `turns` or not
    context: list[Point]  # after each row, or of a long session the fullest of some that follow each other
    models: tuple[str, ...]  # in the order in which they came


class _Turns(Collection[Line]):
    """Read anew whenever they are wanted, as long as the ledger is open: there may be a hundred thousand."""

    def __init__(self, ledger: LedgerReader, query: Query, count: int) -> None:
        self._ledger = ledger
        self._query = query
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __contains__(self, one: object) -> bool:
        return any(each == one for each in self)

    def __iter__(self) -> Iterator[Line]:
        return map(turn_line, self._ledger.rows(self._query))


def session_report(
    ledger: BudgetReader, name: str, mine: Where, zone: Zone, now: int, most: int | None = None
) -> SessionReport:
    """`name` is its id, its `key` in a report by session or the beginning of that, a part of its title, or `last`.

    `mine` says whose sessions count for `last`, and of which organisation any other is; `turns` are the latest `most`,
    else all of them, that are read while the ledger is open. Raises NoSuchSession and LedgerError.
    """
    info = session_called(ledger, name, mine, now)
    query = Query.of_session(info)
    latest, models = deque[Row](maxlen=most or 0), dict[str, None]()
    context, _ = thinned(points(_seen(ledger.rows(query), latest, models)))
    sums = sums_of_all(ledger, query)
    total, count = line_of("total", sums), sums.rows if sums else 0
    lines = _Turns(ledger, query, count) if most is None else tuple(map(turn_line, latest))
    currencies = currencies_of(total.costs, lambda: ledger.summed(query, ("currency",)))
    turns = Report("turn", query, zone, lines, total, currencies)
    return SessionReport(_named(total, info), info, turns, count, context, tuple(models))


def session_called(ledger: BudgetReader, name: str, mine: Where, now: int) -> SessionInfo:
    """As in `session_report`."""
    return _last(ledger, mine, now) if name == "last" else _called(ledger, name, dict(mine)["organisation"])


def session_line(ledger: LedgerReader, info: SessionInfo) -> Line:
    """As in a report by session."""
    return _named(line_of("total", sums_of_all(ledger, Query.of_session(info))), info)


def session_rows(ledger: LedgerReader, info: SessionInfo) -> Iterator[Row]:
    """In the order of time."""
    return ledger.rows(Query.of_session(info))


def _named(total: Line, info: SessionInfo) -> Line:
    return replace(total, key=session_key(info.origin, info.session), about=info)


def _seen(rows: Iterable[Row], latest: deque[Row], models: dict[str, None]) -> Iterator[Context]:
    """After each row, of which no more are kept than `latest` has room for."""
    for row in rows:
        latest.append(row)
        models.update((line.model, None) for line in row.entry.lines if line.model)
        yield context_of(row.entry)


def _last(ledger: LedgerReader, mine: Where, now: int) -> SessionInfo:
    for back in _BACK:
        found = ledger.sessions(Query(since=None if back is None else now - back, where=mine))
        if last := max(found, key=lambda session: session.ended_at, default=None):
            return last
    if next(iter(ledger.sessions(Query())), None) is None:
        raise NoSuchSession("there is no session in the ledger yet")
    whose = " of ".join(f'{dimension} "{value}"' for dimension, value in reversed(mine))
    raise NoSuchSession(f"there is no session of {whose} in the ledger yet")


def _called(ledger: BudgetReader, name: str, organisation: str | None) -> SessionInfo:
    def ours(some: Iterable[SessionInfo]) -> list[SessionInfo]:
        return [session for session in some if session.origin.organisation == organisation]

    found = ours(ledger.recent.named(name))
    if not found and len(name) >= _SHORTEST_KEY:
        titled = Query(where=(("organisation", organisation), ("title", name)))
        found = ours(ledger.recent.keyed(name)) or list(ledger.sessions(titled))
    match found:
        case [session]:
            return session
        case [] if len(name) < _SHORTEST_KEY:
            least = f"{_SHORTEST_KEY} characters or more"
            raise NoSuchSession(f"no session has the id {name!r}; of a key or a title it takes {least}")
        case []:
            raise NoSuchSession(f"no session is called {name!r}; `acp-proxy report --by session --json` has their keys")
    keys = [session_key(session.origin, session.session) for session in found]
    named = ", ".join(keys[:_MOST_NAMED]) + (", …" if len(keys) > _MOST_NAMED else "")
    raise NoSuchSession(f"{len(found)} sessions are called {name!r}: give one of their keys, {named}")
