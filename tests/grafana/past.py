"""Half a working day of a small team in a real ledger, with all that dashboards show: refusals, overshoots …"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from acp_proxy.config import Config, load
from acp_proxy.core.money import NANO
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from grafana.look.history import Happening, Scrapes
from grafana.look.month import NOW, Month
from harness.rows import line, row

HOUR = 3600
BEGIN = NOW - 12 * HOUR  # four in the morning, UTC
FIRST_SCRAPE = BEGIN + 2 * HOUR  # turns were there before
SILENCE = range(NOW - 6 * HOUR, NOW - 6 * HOUR + 1200)  # nothing scraped the exporter

CONFIG = """
[identity]
team = "core"

[[budget]]
name = "all-month"
window = "month"
mode = "warn"
limit = { amount = "5", currency = "USD" }

[[budget]]
name = "jo-daily"
scope = { user = "jo" }
window = "day"
limit = { amount = "0.2", currency = "USD" }

[[budget]]
name = "tokens"
per = "user"
window = "rolling:24h"
mode = "shadow"
limit = { tokens = 1_000_000 }

[[notify]]
name = "alerts"
url = "https://hooks.example.com/alerts"
"""


def configured(home: Path, url: str, more: str = "") -> Config:
    file = home / "past.toml"
    file.write_text(CONFIG + more)
    return load({"config": str(file), "ledger": url}, {"HOME": str(home), "USER": "lead"}, admin_file=home / "none")


def opened(config: Config) -> BudgetLedger:
    return open_ledger(config.ledger.url, journals=())


def happenings(config: Config) -> list[Happening]:
    unpriced = [Happening(at, partial(_unpriced, at)) for at in range(BEGIN + 600, NOW, HOUR)]
    return sorted(chain(Month(config, since=BEGIN, until=NOW).happenings(), unpriced), key=lambda each: each.at)


def scraped(ledger: BudgetLedger, config: Config) -> Iterator[str]:
    """OpenMetrics text: every four minutes but in `SILENCE`; the exporter is started anew twice."""
    times = [at for at in range(FIRST_SCRAPE, NOW + 1, 240) if at not in SILENCE]
    scrapes = Scrapes(ledger, config, restarts=[NOW - 8 * HOUR, SILENCE.stop])
    yield from scrapes.lines(happenings(config), times)


def _unpriced(at: int, ledger: BudgetLedger) -> None:
    """One turn of a model that no price is known for."""
    one = line("our-own-llama", cost=None, input=1000, output=100)
    own = f"{at:08x}-0000-7000-8000-00000000abcd"  # those of `Month` are counted from 1
    ledger.append([row(one, id=own, session=f"llama-{at // 7200}", at=at * NANO, cost_source="unknown")])
