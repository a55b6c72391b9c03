"""What this machine was lent goes back to its hub, as its user signs out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import unquote

from acp_proxy.ledger import LedgerError, Warn, log_warning, open_ledger
from acp_proxy.ledger.hub.lease_store import SUFFIX, LeaseStore
from acp_proxy.ledger.hub.ledger import HubLedger
from acp_proxy.ledger.hub_address import hubs_of
from acp_proxy.system.directories import state_directory

_PATIENCE = 2.0  # seconds that the hub may take


def give_all_back(hub: str | None, environ: Mapping[str, str] = os.environ, warn: Warn = log_warning) -> None:
    """To one hub, or to all. Nothing more is spent here; what the hub cannot be told, or rows still need, it keeps held
    until the lease ends.
    """
    directory = state_directory(environ) / "hubs"
    for path in sorted(directory.glob(f"*{SUFFIX}")):
        url = unquote(path.name.removesuffix(SUFFIX))
        with suppress(LedgerError):
            if hub is None or hub in [each.url for each in hubs_of(url)]:
                _give_back(url, directory, warn)


def _give_back(url: str, directory: Path, warn: Warn) -> None:
    lease_store = LeaseStore(url, directory)
    owed: Sequence[str] = lease_store.put_back()
    with closing(open_ledger(url, patience=_PATIENCE, warn=warn)) as ledger:
        if not isinstance(ledger, HubLedger):
            return
        if gone := lease_store.left_behind():
            lease_store.settle_lost([turn for owner in ledger.taken_over(gone) for turn in gone[owner]])
            owed = lease_store.put_back()
        for lease in owed:
            ledger.give_back("", lease)
        lease_store.given_back(owed)
