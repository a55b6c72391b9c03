"""A relayed turn that was told only in part, completed from the agent's book. Pure; nothing where it is not certain."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.books import Call
from acp_proxy.core.entry import Entry
from acp_proxy.core.pricing import Pricer
from acp_proxy.core.usage import Usage
from acp_proxy.importing.bills import bill_of
from acp_proxy.importing.rows import FROM_BOOK
from acp_proxy.importing.turns import AFTER, MILLISECOND, Calls, calls_of, used
from acp_proxy.ledger import Row
from acp_proxy.text.figures import counted
from acp_proxy.text.times import SECOND

_RESOLUTION: Mapping[str, int] = {"goose": SECOND}  # of the times in a book
_TELLS_CUT_SHORT = {"claude-code": (2, 1, 84)}  # whose books have calls that the user cut short, from this version on
_WHOLE = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal"})
_BESIDE = frozenset({"subagent", "compaction", "side"})  # rows that relays book beside a turn, and kinds of calls


class Book(Struct, frozen=True):
    """What was read of a session: its calls and those of its subagents, each once, from `since` (Unix ns) on all."""

    agent: str  # as `import` names it
    calls: Sequence[Call]
    imported: Collection[str] = ()  # ids of calls that are rows of their own already
    since: int = 0
    tells_cost: bool = False  # the agent told relays what this session costs
    may_tell_cost: bool = False  # it does so where it knows prices


def is_incomplete(entry: Entry) -> bool:
    """Whether a book may tell more of it."""
    return entry.kind == "turn" and (entry.usage_source != "agent" or entry.detail.startswith(FROM_BOOK))


def completed(rows: Sequence[Row], book: Book, pricer: Pricer, until: int) -> Iterator[tuple[Row, Row]]:
    """Turns that ended `until` then, with what they become. `rows` are all that relays booked of a session, by time:
    where a later turn begins, the calls of the one before it end.
    """
    turns = [row for row in rows if row.entry.kind == "turn"]
    if not turns:
        return
    session, order = turns[0].entry.session, sorted(book.calls, key=lambda call: call.at)
    family = _family(session, order)
    own = [call for call in order if call.session == session and call.kind == "main"]
    others = [call for call in order if call.kind != "main" and call.session in family]
    found = calls_of(turns, own, _RESOLUTION.get(book.agent, MILLISECOND))
    for index, turn in enumerate(turns):
        mine, end = found[index], _end(turns, index)
        if mine is None or not is_incomplete(turn.entry) or turn.entry.started_at < book.since:
            continue
        if turn.entry.ended_at > until or _is_disturbed(turn, rows, end):
            continue
        if turn is turns[-1] and _may_be_of_the_next(turn, mine):
            continue
        booked = {row.entry.kind for row in rows if _is_beside(row, turn, end)}
        beside = [call for call in others if turn.entry.started_at <= call.at < end and call.kind not in booked]
        made = (*mine, *beside)
        if any(call.id in book.imported for call in made):
            continue  # they are rows of their own
        after = _of_calls(turn, made, book, pricer)
        if after is not None:
            yield turn, after


def _family(session: str, calls: Sequence[Call]) -> set[str]:
    """The session, and those that it started, or that these did."""
    found, before = {session}, 0
    while len(found) > before:
        before = len(found)
        found |= {call.session for call in calls if call.kind == "subagent" and call.parent in found}
    return found


def _end(turns: Sequence[Row], index: int) -> int:
    latest = turns[index].entry.ended_at + AFTER
    return latest if index + 1 == len(turns) else min(latest, turns[index + 1].entry.started_at)


def _may_be_of_the_next(turn: Row, calls: Calls) -> bool:
    """Whether calls came after the last turn that is booked: another may run by now, and no figures tell them apart."""
    told_nothing = turn.entry.usage_source in ("none", "estimated")
    return told_nothing and any(call.at > turn.entry.ended_at for call in calls)


def _is_beside(row: Row, turn: Row, end: int) -> bool:
    return row.entry.kind in _BESIDE and row.entry.ended_at >= turn.entry.started_at and row.entry.started_at < end


def _is_disturbed(turn: Row, rows: Sequence[Row], end: int) -> bool:
    """Whether a row without a prompt has what was used meanwhile."""
    return any(
        row.entry.kind == "autonomous"
        and row.entry.usage.total
        and row.entry.ended_at > turn.entry.started_at
        and row.entry.started_at < end
        for row in rows
    )


def _of_calls(turn: Row, calls: Calls, book: Book, pricer: Pricer) -> Row | None:
    """None where the calls are not all of the turn, or nothing is new."""
    entry, usage = turn.entry, used(calls)
    whole = entry.stop_reason in _WHOLE or (entry.stop_reason == "cancelled" and _tells_cut_short(calls, book.agent))
    again = entry.detail.startswith(FROM_BOOK) and usage.total <= entry.usage.total
    if not calls or again or not _covers(usage, entry, whole=whole):
        return None
    to_come = book.tells_cost or (book.may_tell_cost and entry.stop_reason not in _WHOLE)
    bill = bill_of(entry, calls, pricer, to_come=to_come)
    if bill is None:
        return None
    after = replace(
        entry,
        lines=bill.lines,
        usage_source="agent" if whole else "partial",
        cost_source=bill.source,
        detail="; ".join(filter(None, (f"{FROM_BOOK} ({counted(len(calls), 'call')})", bill.detail))),
    )
    return replace(turn, entry=after)


def _covers(usage: Usage, entry: Entry, *, whole: bool) -> bool:
    """What was told of a turn was used in any case; an estimate gives way to what all of its calls used."""
    told = entry.usage
    if entry.usage_source == "estimated":
        return whole or usage.total > told.total
    at_least = usage.prompt >= told.prompt and usage.completion >= told.completion
    return at_least and (whole or usage.total > told.total)


def _tells_cut_short(calls: Calls, agent: str) -> bool:
    first = _TELLS_CUT_SHORT.get(agent)
    return first is not None and all(_version(call) >= first for call in calls)


def _version(call: Call) -> tuple[int, ...]:
    parts = (call.version or "").split(".")
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()
