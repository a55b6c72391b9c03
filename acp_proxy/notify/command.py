"""`acp-proxy notify test`: a sample through each channel, with one line on what became of it. Asks no ledger."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence

from acp_proxy.config import Config
from acp_proxy.config.channels import Channel
from acp_proxy.core.notice import a_test
from acp_proxy.notify.destinations import Destination, destinations
from acp_proxy.notify.sending import Outcome, Sender
from acp_proxy.system.errors import UsageError
from acp_proxy.text.figures import aligned, clean


def test(config: Config, name: str | None, now: int) -> tuple[int, str]:
    """The status, 1 where one failed, and the lines. Raises UsageError and ConfigError."""
    to = destinations(_chosen(config.channels, name), config.identity.organisation)
    outcomes = asyncio.run(_send(to, config.identity.organisation, now))
    rows = [(each.name, each.format, each.host, _in_words(outcome)) for each, outcome in zip(to, outcomes, strict=True)]
    lines = aligned([[clean(cell) for cell in row] for row in rows], [False] * 4)
    return int(any(outcome.result != "sent" for outcome in outcomes)), lines


def _chosen(channels: Sequence[Channel], name: str | None) -> list[Channel]:
    if not channels:
        raise UsageError("notify: no [[notify]] is configured")
    chosen = [channel for channel in channels if name in (None, channel.name)]
    if not chosen:
        names = list(dict.fromkeys(channel.name for channel in channels))
        raise UsageError(f"notify: no channel {name!r}; there {'is' if len(names) == 1 else 'are'} {', '.join(names)}")
    return chosen


async def _send(to: Sequence[Destination], organisation: str, now: int) -> list[Outcome]:
    sender = Sender(lambda: now)
    try:
        # Another id each time, so that a receiver does not take it for one that it has.
        notice = a_test(organisation, socket.gethostname(), now, os.urandom(8).hex())
        return await asyncio.gather(*(sender.send(each, notice) for each in to))
    finally:
        await sender.aclose()


def _in_words(outcome: Outcome) -> str:
    return "sent" if outcome.result == "sent" else f"failed: {outcome.error}"
