"""A call as a row of the ledger. Pure, but for the name of the project, which is asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from msgspec.structs import replace

from acp_proxy.books import Call
from acp_proxy.core.entry import IMPORT, CostSource, Entry, Kind, Origin, UsageLine
from acp_proxy.core.pricing import Pricer
from acp_proxy.ledger import Row

_KINDS: dict[str, Kind] = {"main": "call", "subagent": "subagent", "compaction": "compaction", "side": "side"}
FROM_BOOK = "from the agent's own files"


def row_of(call: Call, agent: str, who: Origin, project_of: Callable[[str], str], pricer: Pricer) -> Row:
    """`who` says whose calls these are; `project_of` names the project of a directory."""
    project = who.project or (project_of(call.cwd) if call.cwd else None)
    origin = replace(who, agent=agent, agent_version=call.version, project=project, client=IMPORT)
    line, source, why = _priced(call, pricer)
    used = call.usage.total if call.kind == "main" else None
    entry = Entry(
        id=id_of(call, agent),
        session=call.session,
        kind=_KINDS[call.kind],
        started_at=call.at,
        ended_at=call.at,
        stop_reason=None,
        lines=(line,),
        usage_source="agent",
        cost_source=source,
        detail="; ".join(filter(None, (FROM_BOOK, why))),
        context_used=used,
        context_size=None if used is None else pricer.window(call.model),
    )
    return Row(origin, entry)


def _priced(call: Call, pricer: Pricer) -> tuple[UsageLine, CostSource, str]:
    """The user's prices over the agent's cost over the catalog, as for a relayed turn."""
    priced = pricer.price(call.model, call.usage, call.at, call.usage.prompt)
    if call.cost is not None and not priced.configured:
        return UsageLine(call.model, call.usage, call.cost), "agent", ""
    source: CostSource = "unknown" if priced.cost is None else "estimated" if priced.estimated else "computed"
    return UsageLine(call.model, call.usage, priced.cost, priced.row), source, priced.detail


def id_of(call: Call, agent: str) -> str:
    """A UUID (version 8) that is the same wherever the call is read. Its time is not in it: a copy may have another."""
    digest = hashlib.blake2b(f"{agent}\0{call.id}".encode("utf-8", "replace"), digest_size=16).digest()
    value = int.from_bytes(digest, "big")
    value = value & ~(0xF << 76) | 0x8 << 76  # RFC 9562, 5.8
    value = value & ~(0b11 << 62) | 0b10 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
