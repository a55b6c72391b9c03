"""One session of the ledger: found by what a user calls it, with its turns in the order of time. Renders nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.entry import Entry
from acp_proxy.ledger import LedgerReader, Query, Row, SessionInfo
from acp_proxy.ledger.budgets import BudgetReader
from acp_proxy.report import Line, Report, currencies_of, line_of, session_key, turn_line
from acp_proxy.times import SECOND, Zone

_HOUR = 3600 * SECOND
_BACK = (_HOUR, 24 * _HOUR, 14 * 24 * _HOUR, None)  # how far the last session is looked for, step by step
_SHORTEST_KEY = 4
_MOST_NAMED = 5

Where = tuple[tuple[str, str | None], ...]


class NoSuchSession(Exception):  # noqa: N818  it is a user's mistake, told in one line
    """No session, or more than one, is called so."""


class Point(Struct, frozen=True):
    """The context after one row: None where it is not known. `compacted` where there is less of it than there was."""

    at: int  # Unix ns
    used: int | None
    size: int | None
    compacted: bool


class SessionReport(Struct, frozen=True):
    line: Line  # as in a report by session, of all rows whenever they were
    info: SessionInfo
    turns: Report  # by turn, in the order of time; the latest of them, where no more were wanted
    context: list[Point]  # after each row, whether it is one of `turns` or not
    models: tuple[str, ...]  # in the order in which they came


def session_report(
    ledger: BudgetReader, name: str, mine: Where, zone: Zone, now: int, most: int | None = None
) -> SessionReport:
    """`name` is its id, its `key` in a report by session or the beginning of that, a part of its title, or `last`.

    `mine` says whose sessions count for `last`; `turns` are the latest `most`. Raises NoSuchSession and LedgerError.
    """
    info = _last(ledger, mine, now) if name == "last" else _called(ledger, name)
    origin = info.origin
    query = Query(
        where=(
            ("organisation", origin.organisation),
            ("user", origin.user),
            ("host", origin.host),
            ("agent", origin.agent),
            ("session", info.session),
        )
    )
    latest, models = deque[Row](maxlen=most), dict[str, None]()
    context = list(points(_seen(ledger.rows(query), latest, models)))
    lines = tuple(map(turn_line, latest))
    total = next((line_of("total", sums) for sums in ledger.summed(query, ())), Line("total"))
    summed = replace(total, key=session_key(origin, info.session), about=info)
    currencies = currencies_of(cost for line in lines for cost in line.costs)
    turns = Report("turn", query, zone, lines, total, currencies)
    return SessionReport(summed, info, turns, context, tuple(models))


def _seen(rows: Iterable[Row], latest: deque[Row], models: dict[str, None]) -> Iterator[Entry]:
    """Entries, of which no more are kept than `latest` has room for: a session may have a hundred thousand."""
    for row in rows:
        latest.append(row)
        models.update((line.model, None) for line in row.entry.lines if line.model)
        yield row.entry


def points(entries: Iterable[Entry]) -> Iterator[Point]:
    """A context that halves from one row to the next was compacted, also where the agent did not say so."""
    before: int | None = None
    for entry in entries:
        used = entry.context_used
        halved = used is not None and before is not None and used * 2 < before
        yield Point(entry.started_at, used, entry.context_size, entry.kind == "compaction" or halved)
        before = before if used is None else used


def _last(ledger: LedgerReader, mine: Where, now: int) -> SessionInfo:
    for back in _BACK:
        found = ledger.sessions(Query(since=None if back is None else now - back, where=mine))
        if last := max(found, key=lambda session: session.ended_at, default=None):
            return last
    raise NoSuchSession("there is no session in the ledger yet")


def _called(ledger: BudgetReader, name: str) -> SessionInfo:
    recent = ledger.recent
    found = list(recent.named(name))
    if not found and len(name) >= _SHORTEST_KEY:
        found = list(recent.keyed(name)) or list(ledger.sessions(Query(where=(("title", name),))))
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
