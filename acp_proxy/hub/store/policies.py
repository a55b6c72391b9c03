"""Versions of the policy: each change is a row of its own, beside its lines in the log of changes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from acp_proxy.hub.store.audit import Audit, Change
from acp_proxy.ledger.hub.policy import Document, Kept
from acp_proxy.ledger.statements import Run
from acp_proxy.ledger.tables import Tables
from acp_proxy.policy import differences
from acp_proxy.system.decoding import json_decoder

_LAST = "SELECT version, document, at, actor FROM hub_policy WHERE org_id = ? ORDER BY version DESC LIMIT ?"
NONE = Kept(0, Document())


class Policies:
    """Of one organisation. All methods raise LedgerError."""

    def __init__(self, tables: Tables, organisation: str) -> None:
        self._tables = tables
        self._organisation = organisation
        self._audit = Audit(tables, organisation)

    def current(self) -> Kept:
        return next(iter(self.history(1)), NONE)

    def history(self, most: int) -> list[Kept]:
        """The latest first."""
        return [_kept(*found) for found in self._tables.rows(_LAST, self._organisation, most)]

    def change(self, change: Callable[[Document], Document], expected: int | None, who: str, now: int) -> Kept | None:
        """The new version; None where the current one is not the `expected` one. What changes nothing makes none.

        What `change` raises goes through, and then nothing is changed.
        """

        def work(run: Run) -> Kept | None:
            self._audit.lock(run)  # changes come one after the other
            found = run(_LAST, (self._organisation, 1))
            before = _kept(*found[0]) if found else NONE
            if expected not in (None, before.version):
                return None
            document = change(before.document)
            different = list(differences(before.document, document))
            if not different:
                return before
            after = Kept(before.version + 1, document, now, who)
            text = msgspec.json.encode(document).decode()
            run("INSERT INTO hub_policy VALUES (?, ?, ?, ?, ?)", (self._organisation, after.version, now, who, text))
            for kind, name, old, new in different:
                action = f"{kind}.removed" if new is None else f"{kind}.set"
                self._audit.note(run, Change(who, action, name, old, new), now)
            return after

        return self._tables.write(work)


def _kept(version: int, document: str, at: int, who: str) -> Kept:
    return Kept(version, json_decoder(Document).decode(document), at, who)
