"""What a hub keeps of people: who they are, what they sign in with, and a log of every change.

Tables of its own (`hub_*`) in the ledger's database, with a schema version of its own. Times are Unix seconds. Secrets
are kept as digests. A change and its line in the log are one transaction. `Store` belongs to the ledger's thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from acp_proxy.hub.store.audit import Audit
from acp_proxy.hub.store.devices import Devices
from acp_proxy.hub.store.families import Families
from acp_proxy.hub.store.forgetting import Forgetting
from acp_proxy.hub.store.keys import Keys
from acp_proxy.hub.store.limits import Limits
from acp_proxy.hub.store.people import People
from acp_proxy.hub.store.policies import Policies
from acp_proxy.hub.store.requests import Requests
from acp_proxy.hub.store.retention import Retaining
from acp_proxy.hub.store.schema import prepare
from acp_proxy.hub.store.tokens import Tokens
from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.tables import Tables

T = TypeVar("T")


class Store:
    """Of one organisation. Makes its tables where they are missing, unless told which `installation` they are of.

    All methods raise LedgerError.
    """

    def __init__(self, tables: Tables, organisation: str, installation: str | None = None) -> None:
        self.installation = installation or prepare(tables)
        self.organisation = organisation
        self.audit = Audit(tables, organisation)
        self.devices = Devices(tables, organisation)
        self.families = Families(tables, organisation)
        self.forgetting = Forgetting(tables, organisation)
        self.keys = Keys(tables, organisation)
        self.limits = Limits(tables, organisation)
        self.people = People(tables, organisation)
        self.policies = Policies(tables, organisation)
        self.requests = Requests(tables, organisation)
        self.retaining = Retaining(tables, organisation)
        self.tokens = Tokens(tables, organisation)

    def tidy(self, now: int) -> None:
        """Forget what ended long ago; the log of changes stays."""
        self.devices.tidy(now)
        self.families.tidy(now)
        self.limits.tidy(now)
        self.tokens.tidy(now)


class Ask(Protocol):
    """Puts a question to a store, in a thread that may block."""

    def __call__(self, question: Callable[[Store], T], /) -> Awaitable[T]: ...


class AskLedger(Protocol):
    """The same of a ledger."""

    def __call__(self, question: Callable[[BudgetLedger], T], /) -> Awaitable[T]: ...


class AskedStore:
    """An `Ask` of whichever ledger answers; the tables are looked at once, and again after an error."""

    def __init__(self, ask: AskLedger, organisation: str) -> None:
        self._ask = ask
        self._organisation = organisation
        self._installation: str | None = None

    async def __call__(self, question: Callable[[Store], T], /) -> T:
        def answer(ledger: BudgetLedger) -> T:
            store = Store(ledger.tables, self._organisation, self._installation)
            self._installation = store.installation
            return question(store)

        try:
            return await self._ask(answer)
        except LedgerError:
            self._installation = None
            raise
