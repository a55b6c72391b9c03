"""`catalog.json` as values: what scripts/build-catalog writes, read into rows. Looks nothing up."""

from __future__ import annotations

from datetime import UTC, date, datetime

from msgspec import Raw, Struct

from acp_proxy.core.pricing import Peak, PriceRow, Rates, Step, Tier
from acp_proxy.system.decoding import json_decoder


class _Row(Struct, frozen=True, array_like=True):
    window: int | None
    source: int
    steps: list[tuple[str, str, list[tuple[int, str]]]]


class Table(Struct, frozen=True):
    """`catalog.json`: a row is [window, index of its source, steps], a step [since, rates, tiers], oldest step first.

    Rates are `input output cached_read cached_write cached_write_1h` in US dollars per million tokens, `-` where
    unknown; `since` is a UTC date or minute, empty where unknown.
    """

    date: str
    sources: list[str]
    peaks: dict[str, PeakHours]  # by lab
    aliases: dict[str, str]  # other names of rows
    rows: dict[str, Raw]  # JSON until one is asked for: as values all of them take 0.4 MB in each relay

    @classmethod
    def read(cls, text: bytes) -> Table:
        """Raises msgspec.DecodeError."""
        return json_decoder(cls).decode(text)

    def name(self, name: str) -> str | None:
        """The row of that name or alias."""
        return name if name in self.rows else self.aliases.get(name)

    def row(self, name: str) -> PriceRow:
        """That of a name in `rows`."""
        row = json_decoder(_Row).decode(self.rows[name])
        peak = self.peaks.get(name.partition("/")[0])
        return PriceRow(
            tuple(
                Step(_ns(since), _rates(rates), tuple(Tier(above, _rates(text)) for above, text in tiers))
                for since, rates, tiers in row.steps
            ),
            row.window,
            peak.rule if peak else None,
            self.sources[row.source],
        )


class PeakHours(Struct, frozen=True):
    """The peak hours of a lab: `since` as in `Table`, `hours` half-open in UTC, `holidays` as dates."""

    since: str
    hours: list[tuple[int, int]]
    factor: int
    holidays: list[str]

    @property
    def rule(self) -> Peak:
        since = _ns(self.since) or 0
        return Peak(since, tuple(self.hours), self.factor, frozenset(map(date.fromisoformat, self.holidays)))


def _rates(text: str) -> Rates:
    return Rates.of(*(None if rate == "-" else rate for rate in text.split()))


def _ns(since: str) -> int | None:
    if not since:
        return None
    return int(datetime.fromisoformat(since).replace(tzinfo=UTC).timestamp()) * 1_000_000_000
