"""Metrics of bills that were laid beside the ledger: how much of them it had. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from acp_proxy.metrics.exposition import Family
from acp_proxy.metrics.readings import Readings


def captures(readings: Readings) -> Iterator[Family]:
    """Nothing of a provider whose bill nobody kept."""
    found = readings.captures
    ratios = [
        ((each.provider, of), ratio)
        for each in found
        for of, ratio in (("tokens", each.of_tokens), ("cost", each.of_cost))
        if ratio is not None
    ]
    text = "How much of a provider's bill the ledger had, when both were compared last."
    yield Family("acp_proxy_capture_ratio", "gauge", text, ("provider", "of"), ratios, nano=True)
    ends = [((each.provider,), each.until) for each in found]
    text = "The end of the days that this bill was about."
    yield Family("acp_proxy_capture_end_timestamp_seconds", "gauge", text, ("provider",), ends, nano=True)
