"""The checks of `doctor` for channels: their hosts, and failed deliveries. Sends nothing, shows no URL."""

from __future__ import annotations

from collections.abc import Iterator

from acp_proxy.config import Config, ConfigError
from acp_proxy.config.channels import Channel
from acp_proxy.core.notice import KINDS
from acp_proxy.core.windows import SECOND
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.notices import Undelivered
from acp_proxy.notify.destinations import destination
from acp_proxy.text.figures import counted

_PATIENCE = 60 * SECOND  # who serves looks every few seconds


def channel_troubles(config: Config, ledger: BudgetLedger, now: int) -> Iterator[tuple[str, list[str]]]:
    """Each channel in words, with what is wrong with it. `now` is Unix ns."""
    for channel in config.channels:
        try:
            to = destination(channel, config.identity.organisation)
        except ConfigError as error:
            yield f'notify: "{channel.name}" ({channel.layer}): {channel.format}', [str(error)]
            continue
        undelivered = ledger.outbox.undelivered(to.wanted, now, now - _PATIENCE)
        wants = _wants(channel)
        yield (
            f'notify: "{channel.name}" ({channel.layer}): {channel.format} to {to.host}, {wants}',
            list(_late(undelivered)),
        )


def _wants(channel: Channel) -> str:
    kinds = "everything" if channel.kinds == KINDS else ", ".join(channel.kinds)
    return f"{kinds} of {', '.join(channel.budgets)}" if channel.budgets else kinds


def _late(undelivered: Undelivered) -> Iterator[str]:
    if undelivered.waiting:
        unsent = f"{counted(undelivered.waiting, 'notice')} of the last day unsent"
        if undelivered.retried or undelivered.failed:  # the channel pauses, which looks as if nothing were sent
            yield f"{unsent}: after a failure `acp-proxy serve` waits up to an hour; restart it to retry at once"
        else:
            yield f"{unsent}: only `acp-proxy serve` sends notices, and none seems to run"
    if undelivered.retried:
        yield f"{counted(len(undelivered.retried), 'notice')} will be retried ({undelivered.retried[-1]})"
    if undelivered.failed:
        given_up = f"{counted(len(undelivered.failed), 'notice')} of the last day given up ({undelivered.failed[-1]})"
        yield f"{given_up}; `acp-proxy notify test` tries it"
