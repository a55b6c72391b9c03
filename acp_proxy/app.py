"""The relay around an agent that runs already, from its configuration to its exit status."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from acp_proxy.config import Config
from acp_proxy.config.applied import billed_by
from acp_proxy.core.traffic import Traffic
from acp_proxy.interceptors.summary import Summary
from acp_proxy.log import Log, takes_a_line
from acp_proxy.relay import Relay, run
from acp_proxy.wiring import wired

if TYPE_CHECKING:
    from acp_proxy.system.spawn import Started

_UNREAD = 0.1  # seconds that a line of the summary waits for a reader of stderr


def run_relay(started: Started, command: Sequence[str], config: Config) -> int:
    """Relay and meter until it is over; the exit status is the agent's."""
    return run(lambda: _relay(started, command, config))


async def _relay(started: Started, command: Sequence[str], config: Config) -> int:
    log = Log(config.log.level, config.log.file)
    summary = Summary(config.run.agent or "", lambda agent: billed_by(config, agent).by)
    traffic = Traffic()
    dispatcher = wired(config, command, log, [summary], traffic=traffic)
    status = await Relay(started, dispatcher, traffic=traffic).run()
    dispatcher.finish()
    if config.run.summary:
        _say(summary, log)
    await dispatcher.aclose()
    return status


def _say(summary: Summary, log: Log) -> None:
    """The summary on stderr. Its failure changes neither the exit status nor our end."""
    try:
        if text := summary.render():
            for line in ("", *text.splitlines()):
                if not takes_a_line(sys.stderr, _UNREAD):
                    return
                sys.stderr.write(f"{line}\n")
                sys.stderr.flush()
    except (OSError, ValueError) as error:
        log("warning", "summary not written", error=type(error).__name__)
