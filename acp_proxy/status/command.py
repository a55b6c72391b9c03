"""`acp-proxy status`: from what was typed to one line, which `answers.py` then keeps. Writes to no stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

from acp_proxy.answers import keep
from acp_proxy.budget import zone_of
from acp_proxy.config import ADMIN_FILE, Config
from acp_proxy.config.files import expanded, user_file
from acp_proxy.core.scope import Subject
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.places import is_postgres, journal_directories, sqlite_path
from acp_proxy.status import Status, formats, next_day, status
from acp_proxy.times import SECOND, Zone

_KEPT = 60 * SECOND  # holds and rolling windows change with time alone
_KEPT_REMOTE = 10 * SECOND  # nobody tells that rows came to a database


def answer(config: Config, own: Subject, zone: Zone, form: str | None, now: int) -> tuple[str, int]:
    """The line, or JSON, and until when it can be kept (Unix ns). Raises LedgerError, and ValueError for the format."""
    if form is not None and form != "json":
        formats.checked(form)
    with closing(open_ledger(config.ledger.url)) as ledger:
        found = status(ledger, config, own, zone, zone_of, now)
    text = (
        formats.as_json(found) if form == "json" else formats.as_text(found, form) if form else formats.as_line(found)
    )
    return text, _until(found, is_postgres(config.ledger.url))


def _rendered(found: Status, form: str | None) -> str:
    if form == "json":
        return formats.as_json(found)
    return formats.as_line(found) if form is None else formats.as_text(found, form)


def keep_answer(
    asked: Sequence[str], environ: Mapping[str, str], options: Mapping[str, str], config: Config, text: str, until: int
) -> None:
    """For the next who asks the same. A failure to do so is none to tell of."""
    keep(asked, environ, text, _watched(config, options, environ), until)


def _until(found: Status, remote: bool) -> int:
    ends = [standing.account.bounds.end for standing in found.standings]
    latest = found.at + (_KEPT_REMOTE if remote else _KEPT)
    return min(latest, next_day(found.zone, found.at), *(end for end in ends if end is not None))


def _watched(config: Config, options: Mapping[str, str], environ: Mapping[str, str]) -> Iterator[str]:
    """Files that the answer was made of."""
    yield str(ADMIN_FILE)
    yield str(expanded(options["config"], environ) if "config" in options else user_file(environ))
    yield from map(str, journal_directories(environ))
    if not is_postgres(config.ledger.url):
        ledger = sqlite_path(config.ledger.url)
        yield from (str(ledger), f"{ledger}-wal")
