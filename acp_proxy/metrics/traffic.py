"""Metrics of sessions and relays, and histograms, from the tallies of a ledger. Pure.

Names and labels are public: dashboards, rules and docs have them. Each histogram is one of
`ledger.sums.tallies.BOUNDS`, with labels in the order in which it is tallied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from acp_proxy.core.traffic import ERRORS, EXITS
from acp_proxy.ledger.sums.tallies import BOUNDS, SESSIONS, Tally
from acp_proxy.metrics.exposition import Buckets, Family, Histogram, Values
from acp_proxy.metrics.labels import Labels
from acp_proxy.metrics.readings import Readings

DIRECTIONS = ("client_to_agent", "agent_to_client")

_HISTOGRAMS = {
    "turn_cost": (("agent", "model", "currency"), "Cost of a turn in units of the currency."),
    "turn_duration_seconds": (("agent",), "From a prompt to its answer."),
    "context_used_ratio": (("agent", "model"), "How full the context was at the end of a turn, of its size."),
}


def tallied(readings: Readings) -> Iterator[Family | Histogram]:
    labels, tallies = readings.labels, list(readings.tallies)
    sessions: dict[Values, int] = {(agent, "unknown"): 0 for agent in readings.agents}
    sessions |= _counts(tallies, SESSIONS, ("agent", "client"), labels)
    yield Family("acp_proxy_sessions_total", "counter", "Sessions with a row.", ("agent", "client"), sessions.items())
    active: dict[Values, int] = {(labels.of("agent", each.agent),): 0 for each in readings.series.values()}
    for agent, number in readings.active.items():
        series = (labels.of("agent", agent),)
        active[series] = active.get(series, 0) + number
    yield Family(
        "acp_proxy_sessions_active", "gauge", "Sessions with a turn within 5 minutes.", ("agent",), active.items()
    )
    for family, (names, text) in _HISTOGRAMS.items():
        yield Histogram(
            f"acp_proxy_{family}", text, names, BOUNDS[family], _buckets(tallies, family, names, labels).items()
        )
    yield from _relayed(tallies)


def _relayed(tallies: Iterable[Tally]) -> Iterator[Family | Histogram]:
    for family, text in (
        ("relay_messages", "Messages that came from a side, forwarded or answered."),
        ("relay_bytes", "Bytes that came from a side."),
    ):
        counts: dict[Values, int] = {(direction,): 0 for direction in DIRECTIONS} | _plain(tallies, family)
        yield Family(f"acp_proxy_{family}_total", "counter", text, ("direction",), counts.items())
    seconds: dict[Values, Buckets] = {(direction,): Buckets({}, 0) for direction in DIRECTIONS}
    seconds |= _buckets(tallies, "relay_seconds", ("direction",), None)
    yield Histogram("acp_proxy_relay_seconds", _RELAY_SECONDS, ("direction",), BOUNDS["relay_seconds"], seconds.items())
    for family, text, reasons in (
        ("relay_errors", "What went wrong in relays, none of which stopped one.", ERRORS),
        ("agent_exits", "How agents ended: stopped is at the client's or the user's wish.", EXITS),
    ):
        counts = {(reason,): 0 for reason in reasons} | _plain(tallies, family)
        yield Family(f"acp_proxy_{family}_total", "counter", text, ("reason",), counts.items())


_RELAY_SECONDS = "From the read of a chunk of lines until it was written, or waits for its reader; of one in 64."


def _plain(tallies: Iterable[Tally], family: str) -> dict[Values, int]:
    """Labels that only this program makes."""
    return {
        tuple(map(str, tally.labels)): tally.number
        for tally in tallies
        if tally.family == family and len(tally.labels) == 1
    }


def _counts(tallies: Iterable[Tally], family: str, names: tuple[str, ...], labels: Labels) -> dict[Values, int]:
    counts: dict[Values, int] = {}
    for tally in tallies:
        if tally.family == family and len(tally.labels) == len(names):
            series = _shown(tally, names, labels)
            counts[series] = counts.get(series, 0) + tally.number
    return counts


def _buckets(
    tallies: Iterable[Tally], family: str, names: tuple[str, ...], labels: Labels | None
) -> dict[Values, Buckets]:
    counts: dict[Values, dict[int, int]] = {}
    sums: dict[Values, int] = {}
    for tally in tallies:
        if tally.family == family and len(tally.labels) == len(names):
            series = _shown(tally, names, labels)
            slots = counts.setdefault(series, {})
            slots[tally.slot] = slots.get(tally.slot, 0) + tally.number
            sums[series] = sums.get(series, 0) + tally.nano
    return {series: Buckets(slots, sums[series]) for series, slots in counts.items()}


def _shown(tally: Tally, names: tuple[str, ...], labels: Labels | None) -> Values:
    if labels is None:
        return tuple(map(str, tally.labels))
    return tuple([labels.of(name, value) for name, value in zip(names, tally.labels, strict=True)])
