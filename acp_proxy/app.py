"""The only wiring: configuration, ledger, interceptors and relay around an agent that runs already."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from acp_proxy.catalog import Catalog
from acp_proxy.config import Config
from acp_proxy.core.agents import ProfileOverride
from acp_proxy.core.conversation import Conversation
from acp_proxy.core.entry import Origin
from acp_proxy.core.meter import Meter
from acp_proxy.dispatch import Dispatcher
from acp_proxy.ids import uuid7
from acp_proxy.interceptors.recorder import Recorder
from acp_proxy.interceptors.summary import Summary
from acp_proxy.interceptors.usage_updates import UsageUpdates
from acp_proxy.ledger.worker import LedgerWorker
from acp_proxy.log import Log
from acp_proxy.plugins import installed
from acp_proxy.project import project_of
from acp_proxy.relay import Relay, run

if TYPE_CHECKING:
    from acp_proxy.spawn import Started


_LATER = 0.002  # seconds until an update is looked into that nobody waits for


def run_relay(started: Started, command: Sequence[str], config: Config) -> int:
    """Relay and meter until it is over; the exit status is the agent's."""
    return run(lambda: _relay(started, command, config))


async def _relay(started: Started, command: Sequence[str], config: Config) -> int:
    log = Log(config.log.level, config.log.file)
    meter = Meter(
        Catalog.load().with_overrides(config.pricing.prices, config.aliases, config.pricing.cache_write),
        uuid7,
        profiles={name: ProfileOverride(counts.scope, counts.input) for name, counts in config.agents.items()},
        estimate=config.run.estimate,
        agent_name=config.run.agent,
    )
    summary = Summary()
    recorder = Recorder(
        LedgerWorker.at(config.ledger.url, os.environ, partial(log, "warning")),
        _origin(config, command),
        lambda restored: dispatcher.announce(restored),
        agent=config.run.agent,
        project_of=None if config.identity.project else project_of,
    )
    dispatcher = Dispatcher(
        Conversation(uuid7),
        meter,
        [recorder, UsageUpdates(), summary, *installed(log)],  # a row is safe before anything else is done about it
        clock=time.time_ns,
        log=log,
        later=partial(asyncio.get_running_loop().call_later, _LATER),
        admission_timeout=config.ledger.admission_timeout,
    )
    status = await Relay(started, dispatcher).run()
    dispatcher.finish()
    if config.run.summary:
        _say(summary, log)
    await dispatcher.aclose()
    return status


def _origin(config: Config, command: Sequence[str]) -> Origin:
    """Who and where, as far as it is known before the agent and the client have named themselves."""
    return Origin(
        organisation=config.identity.organisation,
        user=config.identity.user,
        team=config.identity.team,
        project=config.identity.project,
        host=socket.gethostname(),
        agent=Path(command[0]).name,
        agent_version=None,
        client=None,
    )


def _say(summary: Summary, log: Log) -> None:
    """The summary for whoever started us; that it fails never changes the exit status."""
    try:
        if text := summary.render():
            sys.stderr.write(f"\n{text}\n")
            sys.stderr.flush()
    except (OSError, ValueError) as error:
        log("warning", "summary not written", error=type(error).__name__)
