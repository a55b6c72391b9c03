"""`acp-proxy status`: from the arguments to one line, which `cache.py` prints and caches."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from acp_proxy.budget.current_user import here, own_subject
from acp_proxy.config import ADMIN_FILE, Config, ConfigError, load_to_answer
from acp_proxy.config.files import expanded, user_file
from acp_proxy.ledger import LedgerError, Tell, open_reader
from acp_proxy.ledger.hub_address import is_hub
from acp_proxy.ledger.places import is_shared, journal_directories, sqlite_path
from acp_proxy.status import formats
from acp_proxy.status.cache import keep, marked, say
from acp_proxy.status.overview import Status, status
from acp_proxy.text.figures import clean
from acp_proxy.text.times import SECOND, day_after, system_zone

if TYPE_CHECKING:
    from acp_proxy.ledger.hub.ledger import HubLedger

_KEPT = 60 * SECOND  # holds and rolling windows change with time alone
_KEPT_REMOTE = 10 * SECOND  # a database does not tell that rows came


def main(asked: Sequence[str], options: Mapping[str, str], environ: Mapping[str, str]) -> str | None:
    """Prints the line, and caches it for the same question; a failure to cache it is ignored.

    `options` are "config", "ledger" and "format" as given. Returns an error for the user, in one line.
    """
    form = options.get("format")
    if form != "json" and (wrong := formats.wrong_with(form or "")):
        return f"--format: {wrong}"
    try:
        watched = marked(_configuration(options, environ))
        config = load_to_answer(options, environ)
        watched += marked(_ledger(config, environ))
        told = list[str]()
        found = _found(config, environ, told.append if "ledger" in options else None)
    except (ConfigError, LedgerError) as error:
        return clean(str(error))
    text = _rendered(found, form)
    if wrong := say(text):
        return wrong
    if told:  # each time, not only at first
        sys.stderr.writelines(f"acp-proxy: {clean(each)}\n" for each in told)
        return None
    keep(asked, environ, text, watched, _until(found, is_shared(config.ledger.url)))
    return None


def _found(config: Config, environ: Mapping[str, str], tell: Tell | None) -> Status:
    zone = system_zone(environ)
    with closing(open_reader(config.ledger.url, tell=tell)) as ledger:
        now = time.time_ns()
        if not is_hub(config.ledger.url):
            return status(ledger, config, own_subject(config, _place(config)), zone, now)
        from acp_proxy.budget.central import known
        from acp_proxy.policy.borrowed import borrowed
        from acp_proxy.status import at_hub

        at = known(ledger, config, here())  # whose budgets may need a project is not known before
        config = replace(config, budgets=tuple(at.budgets), plan_budgets=tuple(at.plan_budgets))
        found = status(ledger, config, at.own, zone, now)
        asked = cast("HubLedger", ledger).requests(own=True)
        lent = borrowed(config.ledger.url, at.own.user, environ, now)
        return replace(found, requests=tuple(at_hub.news(asked, now)), lent=tuple(lent))


def _place(config: Config) -> Path | None:
    """The directory of the project, only if a budget needs one: finding it doubles the time of the command."""
    asked = any(budget.per == "project" or budget.scope.project for budget in config.budgets)
    return here() if asked else None


def _rendered(found: Status, form: str | None) -> str:
    if form == "json":
        return formats.as_json(found)
    return formats.as_line(found) if form is None else formats.as_text(found, form)


def _until(found: Status, remote: bool) -> int:
    """How long the answer can be kept, in Unix ns."""
    ends = [standing.account.resets_at for standing in found.standings]
    ends += [at for state in found.plans if (at := state.told.resets_at) is not None and at > found.at]
    latest = found.at + (_KEPT_REMOTE if remote else _KEPT)
    return min(latest, day_after(found.at, found.zone), *(end for end in ends if end is not None))


def _configuration(options: Mapping[str, str], environ: Mapping[str, str]) -> Iterator[str]:
    """Files that may have some of it."""
    yield str(ADMIN_FILE)
    yield str(expanded(options["config"], environ) if "config" in options else user_file(environ))


def _ledger(config: Config, environ: Mapping[str, str]) -> Iterator[str]:
    """Files and directories that have rows."""
    yield from map(str, journal_directories(environ))
    if not is_shared(config.ledger.url):
        ledger = sqlite_path(config.ledger.url)
        yield from (str(ledger), f"{ledger}-wal")
