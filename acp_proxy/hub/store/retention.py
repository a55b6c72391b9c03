"""What a hub removes once a day because it is old enough, by `[retention]` of its settings; several hubs do it once."""

from __future__ import annotations

from msgspec import Struct

from acp_proxy.hub.store.audit import Audit
from acp_proxy.hub.store.forgetting import Forgetting, NotKnownError
from acp_proxy.ledger.statements import Run
from acp_proxy.ledger.tables import Tables

DAY = 86400  # seconds
_NS = 10**9
ACTOR = "hub"


class Retention(Struct, frozen=True, forbid_unknown_fields=True):
    """Days; 0 is for ever. `names_days` are after the last activity of who can sign in no more."""

    names_days: int = 0
    titles_days: int = 0
    requests_days: int = 0
    audit_days: int = 0

    @property
    def keeps_all(self) -> bool:
        return not (self.names_days or self.titles_days or self.requests_days or self.audit_days)


class Removed(Struct, frozen=True):
    names: int = 0
    titles: int = 0
    requests: int = 0
    lines: int = 0  # of the log of changes


class Retaining:
    """Of one organisation. All methods raise LedgerError."""

    def __init__(self, tables: Tables, organisation: str) -> None:
        self._tables = tables
        self._organisation = organisation
        self._audit = Audit(tables, organisation)
        self._forgetting = Forgetting(tables, organisation)

    def is_due(self, now: int) -> bool:
        """Whether it was not done in the last day; it is then done by who has asked."""
        sql = """
            INSERT INTO hub_daily VALUES (?, 'retention', ?) ON CONFLICT (org_id, task)
            DO UPDATE SET ran_at = excluded.ran_at WHERE hub_daily.ran_at <= ? RETURNING 1
        """
        return bool(self._tables.write(lambda run: run(sql, (self._organisation, now, now - DAY))))

    def run(self, retention: Retention, now: int) -> Removed:
        """Each in a transaction of its own. Who has been forgotten is a line in the log, the alias alone."""
        names = self.left_before(now - retention.names_days * DAY) if retention.names_days else []
        forgotten = sum(self._forgotten(name, now) for name in names)
        titles = self._titles(now - retention.titles_days * DAY) if retention.titles_days else 0
        requests = self._requests(now - retention.requests_days * DAY) if retention.requests_days else 0
        lines = self._lines(now - retention.audit_days * DAY, now) if retention.audit_days else 0
        return Removed(forgotten, titles, requests, lines)

    def left_before(self, before: int) -> list[str]:
        """Names of who can sign in no more and did nothing since, in the ledger or at the hub."""
        known = """
            SELECT user_id FROM session WHERE org_id = ? UNION SELECT user_id FROM hub_person WHERE org_id = ?
            UNION SELECT user_id FROM hub_token WHERE org_id = ?
        """
        stays = """
            SELECT user_id FROM hub_person WHERE org_id = ? AND (active = 1 OR seen_at >= ? OR created_at >= ?)
            UNION SELECT user_id FROM hub_token
                WHERE org_id = ? AND (created_at >= ? OR revoked_at >= ? OR revoked_at IS NULL AND kind = 'token')
            UNION SELECT user_id FROM hub_family WHERE org_id = ? AND (refreshed_at >= ? OR revoked_at >= ?)
            UNION SELECT user_id FROM session WHERE org_id = ? AND ended_at >= ?
        """
        of_org, alias = self._organisation, "former-%"
        sql = f"SELECT user_id FROM ({known}) known WHERE user_id NOT LIKE ? AND user_id NOT IN ({stays}) ORDER BY 1"
        people, tokens, families = (of_org, before, before), (of_org, before, before), (of_org, before, before)
        values = (of_org, of_org, of_org, alias, *people, *tokens, *families, of_org, before * _NS)
        return [name for (name,) in self._tables.rows(sql, *values)]

    def _forgotten(self, name: str, now: int) -> int:
        try:
            self._forgetting.forget(name, None, ACTOR, now)
        except NotKnownError:
            return 0
        return 1

    def _titles(self, before: int) -> int:
        sql = """
            UPDATE session SET title = NULL, title_folded = NULL
            WHERE org_id = ? AND ended_at < ? AND title IS NOT NULL RETURNING 1
        """
        return len(self._tables.write(lambda run: run(sql, (self._organisation, before * _NS))))

    def _requests(self, before: int) -> int:
        sql = "DELETE FROM hub_request WHERE org_id = ? AND at < ? AND state <> 'pending' RETURNING 1"
        return len(self._tables.write(lambda run: run(sql, (self._organisation, before * _NS))))

    def _lines(self, before: int, now: int) -> int:
        def work(run: Run) -> int:
            self._audit.lock(run)
            return self._audit.trim(run, before, ACTOR, now)

        return self._tables.write(work)
