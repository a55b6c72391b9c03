"""Reports of rows that were just appended, and what of them is compared."""

from __future__ import annotations

import json
from typing import Any

from acp_proxy.ledger import Ledger, Query, Row
from acp_proxy.report import Report, formats, report
from acp_proxy.text import times


def found(ledger: Ledger, by: str, *rows: Row, zone: times.Zone = times.UTC_ZONE, where: Query | None = None) -> Report:
    ledger.append(rows)
    return report(ledger, by, where or Query(), zone)


def keys(report: Report) -> list[str]:
    return [line.key for line in report.lines]


def as_json(report: Report) -> Any:
    return json.loads("".join(formats.as_json(report)))
