"""What an import found, as a table for people or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce

from acp_proxy.core.money import plus
from acp_proxy.core.usage import Usage
from acp_proxy.importing import Tally
from acp_proxy.report.formats import as_json_text
from acp_proxy.text import table
from acp_proxy.text.figures import clean, cost_text, counted, decimals_of, tokens_text
from acp_proxy.text.table import Column

_MORE = "docs/import.md"


def plain(found: Mapping[str, Tally], *, dry_run: bool) -> str:
    if not found:
        return f"No agent has session files here that acp-proxy can read ({_MORE}).\n"
    tallies = [*found.values(), *([_together(found)] if len(found) > 1 else [])]
    names = [*found, *(["total"] if len(found) > 1 else [])]
    decimals = decimals_of(cost for tally in tallies for cost in tally.costs)
    columns = [
        Column("agent", names, right=False, name=True),
        Column("files", [f"{tally.files:,}" for tally in tallies]),
        Column("new calls", [f"{tally.calls:,}" for tally in tallies]),
        Column("tokens", [tokens_text(tally.usage.total) for tally in tallies]),
        Column("cost", [_cost(tally, decimals) for tally in tallies]),
        *_unless_zero("relayed", [tally.relayed for tally in tallies]),
        *_unless_zero("turns completed", [tally.completed for tally in tallies]),
        *_unless_zero("imported before", [tally.known for tally in tallies]),
        *_unless_zero("too recent", [tally.waiting for tally in tallies]),
        *_unless_zero("not understood", [tally.not_understood.total() for tally in tallies]),
    ]
    return table.plain(columns, [*_notes(found), *(["Nothing was written (--dry-run)."] if dry_run else [])])


def as_json(found: Mapping[str, Tally], *, dry_run: bool) -> str:
    return as_json_text({"dry_run": dry_run, "agents": [_object(agent, tally) for agent, tally in found.items()]})


def _object(agent: str, tally: Tally) -> dict[str, object]:
    usage = tally.usage
    return {
        "agent": agent,
        "files": tally.files,
        "files_unchanged": tally.unchanged,
        "calls": tally.calls,
        "input": usage.input,
        "cached_read": usage.cached_read,
        "cached_write": usage.cached_write,
        "output": usage.output,
        "thought": usage.thought,
        "total": usage.total,
        "cost": {cost.currency: cost.text for cost in tally.costs},
        "unpriced": tally.unpriced,
        "relayed": tally.relayed,
        "turns_completed": tally.completed,
        "imported_before": tally.known,
        "too_recent": tally.waiting,
        "not_understood": dict(tally.not_understood),
    }


def _cost(tally: Tally, decimals: int) -> str:
    return cost_text(tally.costs, decimals, at_least=tally.unpriced > 0) if tally.calls else ""


def _unless_zero(title: str, counts: list[int]) -> list[Column]:
    return [Column(title, [f"{count:,}" if count else "" for count in counts])] if any(counts) else []


def _together(found: Mapping[str, Tally]) -> Tally:
    tallies = found.values()
    total = Tally(
        files=sum(tally.files for tally in tallies),
        calls=sum(tally.calls for tally in tallies),
        known=sum(tally.known for tally in tallies),
        relayed=sum(tally.relayed for tally in tallies),
        completed=sum(tally.completed for tally in tallies),
        waiting=sum(tally.waiting for tally in tallies),
        usage=sum((tally.usage for tally in tallies), Usage()),
        costs=reduce(plus, (tally.costs for tally in tallies), ()),
        unpriced=sum(tally.unpriced for tally in tallies),
    )
    for tally in tallies:
        total.not_understood.update(tally.not_understood)
    return total


def _notes(found: Mapping[str, Tally]) -> Iterator[str]:
    """What was left out, and what would make it whole."""
    unpriced = sum(tally.unpriced for tally in found.values())
    parts = [f"no price: {counted(unpriced, 'call')} (`acp-proxy prices show MODEL`)"] if unpriced else []
    for agent, tally in found.items():
        parts += [f"{agent}: {count:,} × {clean(reason)}" for reason, count in tally.not_understood.most_common(3)]
    if parts:
        yield " · ".join([*parts, _MORE])
