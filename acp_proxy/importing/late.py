"""Completes the turns of one session while its relay goes on: from its own books alone, and in a ledger of its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from acp_proxy.books.agents import family
from acp_proxy.config import Config
from acp_proxy.core.entry import Origin
from acp_proxy.core.pricing import Pricer
from acp_proxy.importing.sessions import Completed, Completer
from acp_proxy.importing.shelves import SHELVES
from acp_proxy.ledger import open_ledger
from acp_proxy.system.directories import home
from acp_proxy.text.times import SECOND

_UNSETTLED = 2 * SECOND  # of what ended later not all may be written


def complete(
    config: Config, environ: Mapping[str, str], pricer: Pricer, now: int, origin: Origin, session: str
) -> list[Completed]:
    """What was corrected. Blocks; raises LedgerError."""
    shelf = SHELVES.get(family(origin.agent))
    if shelf is None:
        return []
    paths = (path for path in shelf.files(home(environ), environ) if shelf.is_of(path, session))
    with closing(open_ledger(config.ledger.url, journals=(), must_exist=True)) as ledger:
        completer = Completer(config, pricer, ledger, now - _UNSETTLED, now)
        return completer.complete(shelf, session, paths, correct=ledger.correct)
