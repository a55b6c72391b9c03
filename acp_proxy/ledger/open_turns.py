"""Turns that run, as the ledger has them, and those of them whose process did not live to end them. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acp_proxy.core.entry import Origin
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import OpenTurn
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.owners import Owner, hosts_of
from acp_proxy.ledger.places import journal_of
from acp_proxy.ledger.statements import Read, Statement

# After its expiry a turn of another host, or with its journal elsewhere, is booked by any process. A laptop that
# slept over a long weekend comes first: it knows what the turn has cost.
ABANDONED = 4 * DAY


def open_turns(dialect: Dialect, where: str, values: Sequence[object]) -> Statement:
    """With when their holds expire, by this machine's clock, as `expires_at` does in `where`. A lease is no turn."""
    ahead, clock = dialect.ahead()
    sql = f"""
        SELECT * FROM (
            SELECT org_id, user_id, team, project, host, agent, agent_version, client, turn, session, started_at, model,
                process, owner_host, owner_pid, owner_started, expires_at - {ahead} AS expires_at
            FROM open_turn WHERE turn NOT LIKE 'lease-%'
        ) found WHERE {where}
    """
    return sql, [*clock, *values]


def open_turn(found: tuple[Any, ...]) -> tuple[OpenTurn, int]:
    """A row of `open_turns`, with when its holds expire (Unix ns)."""
    turn, session, started_at, model, process, host, pid, started, expires_at = found[8:]
    owner = Owner(host, pid, started)
    return OpenTurn(turn, Origin(*found[:8]), session, started_at, owner, model, process), expires_at


def dead_turns(read: Read, journals: Sequence[Path], now: int, dialect: Dialect) -> list[tuple[Any, ...]]:
    """Rows of `open_turns` that are to be booked at what they hold, as `BudgetLedger.settle_dead` says."""
    hosts = hosts_of(journals)
    where = f"owner_host IN ({', '.join('?' * len(hosts))}) OR expires_at < ?"
    found = read(*open_turns(dialect, where, (*hosts, now - ABANDONED)))
    return [each for each in found if is_dead(*open_turn(each), hosts, journals, now)]


def is_dead(turn: OpenTurn, expires_at: int, hosts: Sequence[str], journals: Sequence[Path], now: int) -> bool:
    """Whether a turn of one of these hosts, or an abandoned one, is to be booked at what it holds."""
    owner = turn.owner
    if owner.host not in hosts:
        return True  # abandoned long ago, or it would not have been found
    # Whatever the clock says: a machine may have slept for days. A journal that is still there is being read by
    # another process, which will know better.
    return owner.is_gone and (expires_at <= now or not journal_of(owner, journals))
