"""The checks of `doctor` for OpenTelemetry: whether receivers take a request with nothing in it, and what waits."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Iterator, Mapping

from acp_proxy.config import Config, ConfigError
from acp_proxy.config.values import Otlp
from acp_proxy.core.windows import SECOND
from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.text.figures import counted
from acp_proxy.text.times import to_the_second

_LATE = 600 * SECOND  # a receiver that is away is asked each minute


def exporter_troubles(config: Config, ledger: BudgetLedger, now: int) -> Iterator[tuple[str, str]]:
    """Each exporter of the ledger, wherever it runs, with what is wrong with it, or nothing. `now` is Unix ns."""
    try:
        found = ledger.exporters(config.identity.organisation)
    except LedgerError:  # a hub tells them only those who see all, and one of an earlier version nobody
        return
    for each in found:
        told = f"otlp: exporter {each.name}, at work {to_the_second(each.seen_at)}"
        waits = ""
        if each.since is not None and now - each.since > _LATE:
            oldest = to_the_second(each.since)
            waits = f"{counted(each.waiting, 'span or log record')}, the oldest from {oldest}, not taken yet"
        gone = "no acp-proxy serve or hub seems to send any more" if now - each.seen_at > _LATE else ""
        yield told, "; ".join(part for part in (gone, waits) if part)


def telemetry_troubles(config: Config, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each signal in words, with what is wrong with it, or nothing."""
    if config.otlp == Otlp() and not any(name.startswith("OTEL_") for name in environ):
        return
    try:
        from acp_proxy.otlp.settings import settings_of  # few send any, and its HTTP client need not be installed

        settings = settings_of(config, environ)
        for target in settings.targets if settings else ():
            from acp_proxy.otlp.sending import Outcome, Poster

            async def posted(poster: Poster) -> Outcome:
                try:
                    return await poster.post(gzip.compress(b"", mtime=0) if poster.to.gzip else b"")
                finally:
                    await poster.aclose()

            outcome = asyncio.run(posted(Poster(target, time.time_ns)))
            yield f"otlp: {target.signal} to {target.host}", "" if outcome.result == "sent" else outcome.error or ""
    except ConfigError as error:
        yield "otlp", str(error)
    except ModuleNotFoundError as error:
        yield "otlp", f"needs {error.name}: pip install '.[serve]'"
