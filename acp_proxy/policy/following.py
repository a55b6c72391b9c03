"""The policy of a hub as a proxy follows it: as it was heard last, kept on disk for the next start without a hub."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.budget import Account, Budget, OnUnavailable, accounts_for
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.lease import PREFIX
from acp_proxy.core.budget.plan_limits import PlanBudget
from acp_proxy.core.scope import Subject
from acp_proxy.ledger import LedgerError, OpenTurn
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.hub.lease_store import LeaseStore, steady
from acp_proxy.ledger.hub.policy import Document, Whose
from acp_proxy.ledger.owners import Owner
from acp_proxy.policy import Policy, understood
from acp_proxy.system.decoding import json_decoder
from acp_proxy.system.ids import uuid7
from acp_proxy.text.times import zone_info

Told = Callable[[Policy], object]


class _Kept(Struct, frozen=True):
    tag: str
    document: Document
    whose: Whose | None = None


class Followed:
    """`told` is called with each policy, the one on disk as well; `refresh` belongs to the ledger's thread.

    `unsaid` is what happens without the hub where a budget says nothing of it; `owner` is this process.
    """

    def __init__(
        self, url: str, directory: Path, unsaid: OnUnavailable, told: Told, owner: Owner | None = None
    ) -> None:
        self._path = directory / f"{quote(url, safe='')}.policy"
        self._unsaid = unsaid
        self._told = told
        self.lease_store = LeaseStore(url, directory, owner=owner)
        self.tag: str | None = None
        self._whose: Whose | None = None
        self.policy = Policy()

    @property
    def budgets(self) -> tuple[Budget, ...]:
        return self.policy.budgets

    @property
    def plan_budgets(self) -> tuple[PlanBudget, ...]:
        return self.policy.plan_budgets

    def accounts_of(self, subject: Subject, at: int, turn: str) -> tuple[Account, ...]:
        """Who it is about is who the hub knows, whatever this machine's configuration calls them."""
        if self._whose is not None:
            subject = self._whose.subject(subject)
        return accounts_for(self.policy.budgets, subject, at, zone_info, turn)

    def borrow(self, ledger: BudgetLedger, turn: OpenTurn, wants: Sequence[tuple[Account, HoldSize]], now: int) -> None:
        """What the lease before had left goes back, once the hub has the rows that it pays for. Raises LedgerError."""
        from acp_proxy.ledger.hub.ledger import HubLedger

        if not isinstance(ledger, HubLedger):
            return
        if gone := self.lease_store.left_behind():
            self.lease_store.settle_lost([turn for owner in ledger.taken_over(gone) for turn in gone[owner]])
        began, lease = steady(), f"{PREFIX}{uuid7(now)}"
        returned = self.lease_store.ask_for(lease)
        if returned is None:
            return
        try:
            lent, usable = ledger.lend(replace(turn, id=lease), wants, now, returned)
        except LedgerError:
            self.lease_store.lose(lease)
            raise
        self.lease_store.take(lease, lent, began, usable, returned)

    def read(self) -> None:
        """What was kept of an earlier one; what cannot be read is as none, until the hub answers."""
        with suppress(OSError, msgspec.MsgspecError):
            self._heard(json_decoder(_Kept).decode(self._path.read_bytes()))

    def refresh(self, ledger: BudgetLedger) -> None:
        """Raises LedgerError."""
        from acp_proxy.ledger.hub.ledger import HubLedger  # which the ledger's thread has by now

        found = ledger.policy(self.tag) if isinstance(ledger, HubLedger) else None
        if found is not None:
            tag, kept = found
            heard = _Kept(tag, kept.document, kept.whose)
            self._heard(heard)
            with suppress(OSError):  # it is asked for again
                self._keep(heard)

    def _heard(self, kept: _Kept) -> None:
        policy = understood(kept.document)
        budgets = tuple(replace(each, on_unavailable=each.on_unavailable or self._unsaid) for each in policy.budgets)
        self.tag, self._whose, self.policy = kept.tag, kept.whose, replace(policy, budgets=budgets)
        self.lease_store.whose = kept.whose.user if kept.whose else ""
        self._told(self.policy)

    def _keep(self, kept: _Kept) -> None:
        """Whole or not at all, and for nobody else to read."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self._path.with_suffix(f".{os.getpid()}")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(kept))
        new.replace(self._path)
