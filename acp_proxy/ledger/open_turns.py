"""Turns that run, as the ledger has them, and those of them whose process did not live to end them. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acp_proxy.core.entry import Origin
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import OpenTurn
from acp_proxy.ledger.owners import Owner, hosts_of
from acp_proxy.ledger.places import journal_of
from acp_proxy.ledger.statements import Read

# After its expiry a turn of another host, or with its journal elsewhere, is booked by any process. A laptop that
# slept over a long weekend comes first: it knows what the turn has cost.
ABANDONED = 4 * DAY
OPEN_TURNS = """
SELECT org_id, user_id, team, project, host, agent, agent_version, client,
    turn, session, started_at, model, process, owner_host, owner_pid, owner_started, expires_at
FROM open_turn
"""


def open_turn(found: tuple[Any, ...]) -> tuple[OpenTurn, int]:
    """A row of `OPEN_TURNS`, with when its holds expire (Unix ns)."""
    turn, session, started_at, model, process, host, pid, started, expires_at = found[8:]
    owner = Owner(host, pid, started)
    return OpenTurn(turn, Origin(*found[:8]), session, started_at, owner, model, process), expires_at


def dead_turns(read: Read, journals: Sequence[Path], now: int) -> list[tuple[Any, ...]]:
    """Rows of `OPEN_TURNS` that are to be booked at what they hold, as `BudgetLedger.settle_dead` says."""
    hosts = hosts_of(journals)
    sql = f"{OPEN_TURNS} WHERE owner_host IN ({', '.join('?' * len(hosts))}) OR expires_at < ?"
    return [each for each in read(sql, (*hosts, now - ABANDONED)) if _is_dead(each, hosts, journals, now)]


def _is_dead(found: tuple[Any, ...], hosts: Sequence[str], journals: Sequence[Path], now: int) -> bool:
    turn, expires_at = open_turn(found)
    owner = turn.owner
    if owner.host not in hosts:
        return True  # abandoned long ago, or it would not have been found
    # Whatever the clock says: a machine may have slept for days. A journal that is still there is being read by
    # another process, which will know better.
    return owner.is_gone and (expires_at <= now or not journal_of(owner, journals))
