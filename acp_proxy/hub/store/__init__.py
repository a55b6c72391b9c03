"""What a hub keeps of people: who they are, what they sign in with, and a log of every change.

Tables of its own (`hub_*`) in the ledger's database, with a schema version of its own. Times are Unix seconds. Secrets
are kept as digests. A change and its line in the log are one transaction. `Store` belongs to the ledger's thread.
"""

from __future__ import annotations

from acp_proxy.hub.store.audit import Audit
from acp_proxy.hub.store.devices import Devices
from acp_proxy.hub.store.families import Families
from acp_proxy.hub.store.keys import Keys
from acp_proxy.hub.store.limits import Limits
from acp_proxy.hub.store.people import People
from acp_proxy.hub.store.schema import prepare
from acp_proxy.hub.store.tokens import Tokens
from acp_proxy.ledger.tables import Tables


class Store:
    """Of one organisation. Makes its tables where they are missing. All methods raise LedgerError."""

    def __init__(self, tables: Tables, organisation: str) -> None:
        self.installation = prepare(tables)
        self.organisation = organisation
        self.audit = Audit(tables, organisation)
        self.devices = Devices(tables, organisation)
        self.families = Families(tables, organisation)
        self.keys = Keys(tables, organisation)
        self.limits = Limits(tables, organisation)
        self.people = People(tables, organisation)
        self.tokens = Tokens(tables, organisation)

    def tidy(self, now: int) -> None:
        """Forget what ended long ago; the log of changes stays."""
        self.devices.tidy(now)
        self.families.tidy(now)
        self.limits.tidy(now)
        self.tokens.tidy(now)
