"""The check of `doctor` for turns that two acp-proxies in one chain have booked. Changes nothing."""

from __future__ import annotations

from acp_proxy.config import Config
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import LedgerReader, Query


def turns_booked_twice(config: Config, ledger: LedgerReader, now: int) -> int:
    """How many of this user's turns of the last day stand twice. `now` is Unix ns.

    Of two in one session that used the same, one runs while the other does: a session's own follow each other.
    """
    user = (("organisation", config.identity.organisation), ("user", config.identity.user))
    rows = [row for row in ledger.rows(Query(since=now - DAY, where=user)) if row.entry.kind == "turn"]
    ends: dict[tuple[str, str, int], int] = {}  # of the latest with so many tokens, by host and session
    twice = 0
    for row in sorted(rows, key=lambda row: row.entry.started_at):
        entry = row.entry
        same = (row.origin.host, entry.session, entry.usage.total)
        twice += entry.usage.total > 0 and entry.started_at < ends.get(same, 0)
        ends[same] = entry.ended_at
    return twice
