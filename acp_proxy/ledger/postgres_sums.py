"""What an account has spent, kept on PostgreSQL as a sum together with the snapshot in which it was added up.

Who appends rows knows nothing of it: `turn.written_in` is the transaction that did, and whoever reads a sum adds the
rows whose transactions its snapshot does not see. That is exact at every isolation, and nobody waits for anybody.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from operator import itemgetter
from typing import Any

import msgspec

from acp_proxy.core.budget import Account
from acp_proxy.core.digest import digest
from acp_proxy.core.windows import HOUR
from acp_proxy.ledger import kept_sums
from acp_proxy.ledger.adding_up import encoded, fits
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.kept_sums import Kept, spent_of
from acp_proxy.ledger.summing import Asked, Spent, organisation_of, spent, spent_in_rows
from acp_proxy.ledger.totals import Run, insert

# Rows from before this step belong to the transaction that took it. An index of an organisation's rows by transaction,
# for those that are news are always the last ones.
TABLES = (
    "ALTER TABLE turn ADD COLUMN written_in xid8 NOT NULL DEFAULT pg_current_xact_id()",
    "CREATE INDEX turn_by_writing ON turn (org_id, written_in)",
    """
    CREATE TABLE sum_as_of (
        org_id TEXT COLLATE "C" NOT NULL,
        key TEXT COLLATE "C" NOT NULL,
        cluster BIGINT NOT NULL,
        as_of TEXT NOT NULL,
        kept_until BIGINT NOT NULL,
        spent TEXT NOT NULL,
        PRIMARY KEY (org_id, key)
    ) WITH (fillfactor = 50)
    """,
)
_REPLACE = """
ON CONFLICT (org_id, key) DO UPDATE SET
    cluster = excluded.cluster, as_of = excluded.as_of, kept_until = excluded.kept_until, spent = excluded.spent
"""
# In which snapshot a statement reads, and of which server: numbers of transactions mean nothing to one that a dump was
# brought to.
_NOW = """
SELECT 'now', pg_current_snapshot()::text, '', system_identifier, 0, 0, 0, 0, '', '' FROM pg_control_system()
"""
_LONGEST = HOUR  # then it is made anew, which costs next to nothing
_MOST_BEHIND = 500  # rows that are looked through; beyond that totals are faster
_ONE_OF_MANY = frozenset({"user", "session", "process"})


def kept_of(account: Account) -> Kept | None:
    """None for what few rows are added up for: others would write more between two prompts than that saves."""
    kept = kept_sums.kept_of(account)
    if kept is None or not _ONE_OF_MANY.isdisjoint(msgspec.json.decode(kept.whose, type=dict[str, str])):
        return None
    return kept


def read(index: int, account: Account, kept: Kept, now: int, dialect: Dialect) -> Asked:
    """Finds 'kept', with how many rows the sum is behind, and what these add up to; or nothing that could be used."""
    organisation = organisation_of(account)
    counted, values = spent_in_rows(index, account, kept.bounds, dialect, turns="news")
    sql = f"""(
        WITH kept AS MATERIALIZED (
            SELECT spent, as_of::pg_snapshot AS as_of FROM sum_as_of
            WHERE org_id = ? AND key = ? AND kept_until >= ?
                AND cluster = (SELECT system_identifier FROM pg_control_system())
        ), news AS MATERIALIZED (
            SELECT t.* FROM kept CROSS JOIN LATERAL (
                SELECT * FROM turn WHERE org_id = ? AND written_in >= pg_snapshot_xmin(as_of)
                    AND NOT pg_visible_in_snapshot(written_in, as_of)
                ORDER BY org_id, written_in LIMIT {_MOST_BEHIND + 1}
            ) t
        ), behind AS MATERIALIZED (SELECT count(*) AS number FROM news)
        SELECT 'kept', '{index}', '', number, 0, 0, 0, 0, spent, '' FROM kept, behind WHERE number <= {_MOST_BEHIND}
        UNION ALL {counted}
    )"""
    return sql, [organisation, _key(kept), now, organisation, *values]


def make(run: Run, accounts: Iterable[Account], now: int, dialect: Dialect) -> None:
    """Keep the sums of accounts as of now: those that are there with what is news, others anew."""
    keeping = [(_key(kept), account, kept) for account in accounts if (kept := kept_of(account))]
    for key, account, kept in sorted(keeping, key=itemgetter(0)):  # nobody waits crosswise
        organisation = organisation_of(account)
        as_of, cluster, total = _added_up(run, account, kept, now, dialect)
        run("DELETE FROM sum_as_of WHERE org_id = ? AND kept_until < ?", (organisation, now))
        if fits(total):
            insert(run, "sum_as_of", [(organisation, key, cluster, as_of, now + _LONGEST, encoded(total))], _REPLACE)


def _added_up(run: Run, account: Account, kept: Kept, now: int, dialect: Dialect) -> tuple[str, int, Spent]:
    """The snapshot, the server, and the sum: one statement finds all three."""
    found = _with_now(run, [read(0, account, kept, now, dialect)])
    if not any(each[0] == "kept" for each in found):
        found = _with_now(run, spent(0, account, kept.bounds, dialect))
    ((as_of, cluster),) = ((each[1], int(each[3])) for each in found if each[0] == "now")
    total = Spent()
    for each in found:
        match each[0]:
            case "kept":
                total.add_all(spent_of(each[8]))
            case "spent":
                total.add(each)
    return as_of, cluster, total


def _with_now(run: Run, parts: Iterable[Asked]) -> list[tuple[Any, ...]]:
    sql, values = zip((_NOW, []), *parts, strict=True)
    return run(" UNION ALL ".join(sql), list(chain.from_iterable(values)))


def _key(kept: Kept) -> str:
    """Short, however long a scope is."""
    return digest(f"{kept.whose} {kept.what}".encode(), 16)
