"""In which ledger a hub keeps what it acknowledges: its name, and whether it may have been set back meanwhile."""

from __future__ import annotations

from acp_proxy.hub.identity import Identity
from acp_proxy.hub.store.schema import prepare
from acp_proxy.ledger.hub.place import Place
from acp_proxy.ledger.sql_ledger import SqlLedger

_MOST = 100  # incarnations: of a file each opening is one


class Places:
    """Of one hub. Called in the ledger's threads, with their ledgers."""

    def __init__(self) -> None:
        self._installations: dict[str, str] = {}  # by incarnations

    def of(self, ledger: SqlLedger, who: Identity) -> Place:
        """Raises LedgerError."""
        incarnation = ledger.incarnation()
        installation = self._installations.get(incarnation)
        if installation is None:  # another database may be there as well
            installation = prepare(ledger.tables)
            known = self._installations if len(self._installations) < _MOST else {}
            self._installations = {**known, incarnation: installation}
        return Place(installation, who.organisation, who.user, incarnation, ledger.fails_over)
