"""`acp-proxy` alone: today's spend, or, in a ledger without rows, how to begin."""

from __future__ import annotations

import argparse
import stat
import sys
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from os import fstat

from acp_proxy.budget.current_user import own_subject
from acp_proxy.cli import options
from acp_proxy.config import Config
from acp_proxy.ledger import Query, open_reader
from acp_proxy.status.formats import as_line
from acp_proxy.status.overview import status
from acp_proxy.system.errors import UsageError
from acp_proxy.text.figures import clean
from acp_proxy.text.times import Zone

BEGIN = """\
To begin:

  acp-proxy setup --list          the editors on this machine and their agents
  acp-proxy setup zed             puts Zed's agents behind acp-proxy; other editors in the same way
  acp-proxy run -- AGENT ARG...   relays an agent, wherever its command stood
  acp-proxy import                what agents wrote about their calls before acp-proxy was there
  acp-proxy demo                  plays a session: its cost, a budget that refuses, the report
"""
_GO_ON = """
  acp-proxy report       spend by day; report week, report --by model, report today
  acp-proxy session      the last session, turn by turn
  acp-proxy budget list  what is left of each budget
  acp-proxy serve        the same as a page
  acp-proxy --help       all commands
"""


def overview(config: Config, zone: Zone, now: int) -> str:
    """Text for people. Raises LedgerError."""
    with closing(open_reader(config.ledger.url)) as ledger:
        if not ledger.summed(Query(), ()):
            return f"Nothing in the ledger yet: {clean(ledger.url)}\n{BEGIN}"
        return as_line(status(ledger, config, own_subject(config, None), zone, now)) + _GO_ON


def is_asked_by_a_program(descriptors: Sequence[int] = (0, 1)) -> bool:
    """Whether stdin and stdout are pipes or sockets: an editor that lacks the agent's command expects ACP there."""
    for descriptor in descriptors:
        with suppress(OSError):  # closed
            mode = fstat(descriptor).st_mode
            if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
                continue
        return False
    return True


def main(asked: argparse.Namespace) -> int:
    """`acp-proxy` without a command. Raises UsageError where a program asked, which would wait for an agent."""
    if is_asked_by_a_program():
        raise UsageError("no command given; in an editor's settings: acp-proxy run -- AGENT; see acp-proxy --help")
    config, zone = options.config(asked), options.zone(None)
    sys.stdout.write(overview(config, zone, time.time_ns()))
    return 0
