"""`acp-proxy session`: one session's turns."""

from __future__ import annotations

import argparse
import os
import sys
import time

from acp_proxy.cli import options
from acp_proxy.cli.arguments import add_common, add_zone, text
from acp_proxy.ledger import open_reader
from acp_proxy.system.errors import UsageError

EXAMPLE = "session last"


def add_options(command: argparse.ArgumentParser) -> None:
    add_common(command)
    called = "its id, the first characters of its key in a report by session, a part of its title, or last"
    command.add_argument("session", metavar="ID", nargs="?", default="last", type=text, help=f"{called} (default)")
    command.add_argument("--all", action="store_true", help="list every turn, not only the latest 40")
    add_zone(command)
    command.add_argument("--json", action="store_true", help="exact figures, for programs")


def main(asked: argparse.Namespace) -> int:
    from acp_proxy.report import session, session_formats

    config, zone, now = options.config(asked), options.zone(asked.tz), time.time_ns()
    mine = (("organisation", config.identity.organisation), ("user", config.identity.user))
    ledger = open_reader(config.ledger.url, tell=options.tell(asked))
    try:
        if asked.json:
            info = session.session_called(ledger, asked.session, mine, now)
            line, rows = session.session_line(ledger, info), session.session_rows(ledger, info)
            sys.stdout.writelines(session_formats.as_json(line, rows))
            return 0
        most = None if asked.all else session_formats.MOST_TURNS
        found = session.session_report(ledger, asked.session, mine, zone, now, most)
        if width := options.width():
            sys.stdout.writelines(session_formats.coloured(found, width, os.environ, every=asked.all))
        else:
            sys.stdout.writelines(session_formats.plain(found, every=asked.all))
    except session.NoSuchSession as error:
        raise UsageError(str(error)) from error
    finally:
        ledger.close()
    return 0
