"""A month of recorded sessions: rows of a ledger, and the calls of a provider's bill for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from acp_proxy.bills import By, File, Provider, read
from acp_proxy.catalog import Catalog
from acp_proxy.core.usage import Usage
from acp_proxy.core.windows import DAY as A_DAY
from acp_proxy.ledger import Row, open_ledger
from acp_proxy.reconcile import Finding, Reconciliation, reconcile
from acp_proxy.reconcile.cells import Side
from acp_proxy.reconcile.prices import cost, rates_on
from harness.recordings import RECORDINGS, metered_by
from harness.rows import ALICE, BOB, MINUTE
from tests.bills.made import Call

FIRST = 20_758  # 2026-11-01
DAYS = 30
AGENTS = ("claude-agent-acp-0.100.0", "claude-agent-acp-0.101.0", "codex-acp-2.6.0", "goose-anthropic-1.52.0")
CATALOG = Catalog()
UNCERTAIN = {"estimated", "at_least", "unpriced", "unnamed", "booked"}
"""What is said of rows that were recorded, whatever the bill is."""


@cache
def rows() -> tuple[Row, ...]:
    """Those of each recording, one a day at noon, of two users in turn."""
    found: list[Row] = []
    recordings = [path for path in RECORDINGS if path.parts[0] in AGENTS]
    for number, recording in enumerate(recordings):
        origin = replace((ALICE, BOB)[number % 2], agent=recording.parts[0])
        for place, entry in enumerate(metered_by(CATALOG, recording).rows):
            at = (FIRST + (3 * number + place) % DAYS) * A_DAY + A_DAY // 2
            ids = {"id": f"{number:04}-{entry.id}", "session": f"{number}-{entry.session}"}
            found.append(Row(origin, replace(entry, started_at=at, ended_at=at + MINUTE, **ids)))
    return tuple(found)


def calls_of(some: Iterable[Row], lab: str = "anthropic", *, hour: bool = False) -> list[Call]:
    """What the provider billed for them, at list prices; with `hour` what is written to the cache is for an hour."""
    return [
        priced(Call(row.entry.started_at // A_DAY, line.model, row.origin.user, f"key-{row.origin.user}", tokens))
        for row in some
        for line in row.entry.lines
        if line.model and CATALOG.lab(line.model) == lab and line.usage.total
        for tokens in [_tokens(line.usage, hour)]
    ]


def _tokens(usage: Usage, hour: bool) -> tuple[int, int, int, int, int]:
    written = (0, usage.cached_write) if hour else (usage.cached_write, 0)
    return (usage.input, usage.cached_read, *written, usage.completion)


def priced(call: Call, catalog: Catalog = CATALOG) -> Call:
    uncached, read_, write, write_1h, output = call.tokens
    nano = cost(rates_on(catalog, call.model, call.day), Side(Usage(uncached, read_, write, output), write_1h))
    return replace(call, amount=Decimal(nano or 0).scaleb(-9))


def whole_month(calls: Sequence[Call]) -> list[Call]:
    """With a call of nothing on the first and the last day, so that a bill covers the month."""
    model = calls[0].model
    nothing = [Call(day, model, tokens=(0, 0, 0, 0, 0), amount=Decimal(0)) for day in (FIRST, FIRST + DAYS - 1)]
    return [*calls, *nothing]


def reconciled(
    directory: Path,
    ledger_rows: Sequence[Row],
    files: Sequence[File],
    provider: Provider = "anthropic",
    *,
    by: By = "model",
    catalog: Catalog = CATALOG,
    people: Mapping[str, str] | None = None,
) -> Reconciliation:
    ledger = open_ledger(f"sqlite:///{directory}/ledger.db", journals=())
    try:
        ledger.append(ledger_rows)
        return reconcile(read(provider, files, {}), ledger, catalog, "default", by, people or {})
    finally:
        ledger.close()


def certain(found: Reconciliation) -> list[Finding]:
    return [finding for finding in found.findings if finding.kind not in UNCERTAIN]


def without(some: Sequence[Row], is_left_out: Callable[[Row], bool]) -> tuple[list[Row], list[Row]]:
    """Those that stay, and those that are left out."""
    return [row for row in some if not is_left_out(row)], [row for row in some if is_left_out(row)]
