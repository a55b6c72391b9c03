"""A month's bill beside a month of work, as `reconcile --keep` leaves it: half of two days unseen, and one model."""

from __future__ import annotations

from contextlib import closing

from acp_proxy.bills import Provider, read
from acp_proxy.catalog import Catalog
from acp_proxy.ledger import open_ledger
from acp_proxy.reconcile import reconcile
from acp_proxy.reconcile.command import keep
from harness.rows import MINUTE, line, row
from tests.bills.made import Call, anthropic
from tests.reconcile.month import FIRST, priced, whole_month
from tests.serve.house import Home

A_DAY = 86_400 * 10**9
KEPT_AT = (FIRST + 30) * A_DAY


def bill(home: Home, *, unseen: int = 2, provider: Provider = "anthropic") -> None:
    """Of 28 days; on so many days the ledger has half of them, and of two the bill has another model."""
    calls = [priced(Call(FIRST + day, tokens=(1000 * (day % 7 + 3), 0, 0, 0, 500))) for day in range(28)]
    rows = [
        row(line(call.model, f"{call.amount:f}", input=call.tokens[0], output=500), at=call.day * A_DAY + MINUTE)
        for call in calls
    ]
    twice = [*calls, *calls[:unseen]]
    other = [priced(Call(FIRST + day, "claude-haiku-5-5", tokens=(900, 0, 0, 0, 90))) for day in (3, 4)]
    home.append(rows)
    with closing(open_ledger(home.url, journals=())) as ledger:
        found = reconcile(
            read(provider, anthropic(whole_month([*_added(twice), *other])), {}),
            ledger,
            Catalog(),
            "default",
            "day",
            {},
        )
    keep(found, home.url, "default", KEPT_AT)


def _added(calls: list[Call]) -> list[Call]:
    """Those of one day as one."""
    found: dict[int, Call] = {}
    for call in calls:
        before = found.get(call.day)
        tokens = call.tokens if before is None else tuple(map(sum, zip(before.tokens, call.tokens, strict=True)))
        found[call.day] = priced(Call(call.day, call.model, tokens=tokens))  # type: ignore[arg-type]
    return list(found.values())
