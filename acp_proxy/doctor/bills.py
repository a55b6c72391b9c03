"""The check of `doctor` for bills that are fetched: when each was, and what is wrong with it. Asks no provider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from acp_proxy.config import Config, ConfigError
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.bill_sources import BillSource
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.text.times import to_the_second

_LATE = DAY  # after which nobody seems to ask
_GONE = 30 * DAY  # after which nobody means to


def bill_troubles(
    config: Config, ledger: BudgetLedger, environ: Mapping[str, str], now: int
) -> Iterator[tuple[str, str]]:
    """Each provider in words, with what is wrong with it, or nothing. `now` is Unix ns."""
    if trouble := _own_trouble(config, environ):
        yield "bills", trouble
    try:
        found = ledger.bill_sources(config.identity.organisation)
    except LedgerError:  # a hub tells them only those who see all, and one of an earlier version nobody
        return
    for each in found:
        if now - each.tried_at < _GONE or each.provider in config.bills:
            yield f"bills: {each.provider}, {_fetched(each)}", _trouble(each, now)


def _own_trouble(config: Config, environ: Mapping[str, str]) -> str:
    """With `[bills]` of this machine."""
    if not config.bills:
        return ""
    from acp_proxy.reconcile.fetching import Fetching  # few have any

    try:
        Fetching.of(config, environ, _unheard)
    except ConfigError as error:
        return str(error)
    return ""


def _unheard(event: str, **fields: object) -> None:
    """Nothing is opened here."""


def _fetched(source: BillSource) -> str:
    return f"fetched {to_the_second(source.fetched_at)}" if source.fetched_at else "never fetched"


def _trouble(source: BillSource, now: int) -> str:
    if now - source.due_at > _LATE:
        asks = "no acp-proxy serve or hub with [bills] seems to run"
        return f"{asks}; the last try said: {source.trouble}" if source.trouble else asks
    if source.trouble:
        return f"{source.trouble}; tried {to_the_second(source.tried_at)}, again from {to_the_second(source.due_at)}"
    return ""
