"""`acp-proxy ledger`: a ledger copied into another one, and a name taken out of it."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing

from acp_proxy.cli import arguments, options
from acp_proxy.ledger import Query, open_ledger
from acp_proxy.system.errors import UsageError
from acp_proxy.text.figures import clean, counted

EXAMPLE = "ledger copy --to postgresql://db.example.com/acp_proxy"


def add_options(command: argparse.ArgumentParser) -> None:
    arguments.add_common(command)
    actions = command.add_subparsers(metavar="ACTION", title="actions", dest="action", required=True)
    into = "copy all rows and grants into another ledger, which keeps what it has"
    copied = arguments.add_action(actions, "copy", into, "ledger copy --to postgresql://db.example.com/acp_proxy")
    arguments.add_common(copied)
    for option, dest in (("--from", "source"), ("--to", "target")):
        copied.add_argument(
            option, metavar="PATH", dest=dest, help=f"the {dest}, as --ledger; by default the configured"
        )

    forgotten = "put an alias in place of a user's name and machines, in all that a ledger or a hub keeps"
    left = arguments.add_action(actions, "forget-user", forgotten, "ledger forget-user alice --alias former-1")
    arguments.add_common(left)
    left.add_argument("user", metavar="USER", type=arguments.text, help="who left, as reports name them")
    aliased = "a name that nobody has; by default one is made"
    left.add_argument("--alias", metavar="ALIAS", type=arguments.text, help=aliased)


def main(asked: argparse.Namespace) -> int:
    return _forget(asked) if asked.action == "forget-user" else _copy(asked)


def _forget(asked: argparse.Namespace) -> int:
    import time

    from acp_proxy.hub.store.forgetting import NotKnownError, forget_at
    from acp_proxy.ledger.hub.ledger import HubLedger

    config = options.config(asked)
    if asked.alias is not None and not (asked.alias.strip() and asked.alias.isprintable()):
        raise UsageError(f"ledger forget-user: --alias: expected a name, not {asked.alias!r}")
    with closing(open_ledger(config.ledger.url, must_exist=True)) as ledger:
        if isinstance(ledger, HubLedger):
            found = ledger.forget_user(asked.user, asked.alias)
        else:
            of = (config.identity.organisation, asked.user, asked.alias)
            try:
                found = forget_at(ledger.tables, *of, "command", int(time.time()))
            except NotKnownError as error:
                raise UsageError(f"ledger forget-user: {error} of organisation {of[0]!r} in {ledger.url}") from error
    log = f", {counted(found.lines, 'line')} of the log of changes" if found.lines else ""
    sys.stdout.write(
        f"{counted(found.rows, 'row')} under the alias {clean(found.alias)}{log}. Sums are as they were.\n"
    )
    return 0


def _copy(asked: argparse.Namespace) -> int:
    from acp_proxy.config.applied import keeps_titles
    from acp_proxy.ledger.writing.copying import copy

    config = options.config(asked)
    source, target = (options.ledger_url(asked, name) or config.ledger.url for name in ("source", "target"))
    with closing(open_ledger(source, must_exist=True)) as old, closing(open_ledger(target)) as new:
        copied = copy(old, new, titles=keeps_titles(config, target))
        by_organisation = old.summed(Query(), ("organisation",))
    grants = f" and {counted(copied.grants, 'grant')}" if copied.grants else ""
    part = f"{copied.rows:,} of " if copied.rows < copied.read else ""
    rows = f"{part}{counted(copied.read, 'row')}"
    sys.stdout.write(f"Copied {rows}{grants} to {new.url}, which keeps what it had.\n")
    ours = config.identity.organisation
    for sums in by_organisation:
        if (theirs := str(sums.key[0])) != ours:
            rows, hidden = counted(sums.rows, "row"), f'reports and budgets of "{clean(ours)}" do not count them'
            sys.stdout.write(f'{rows} of organisation "{clean(theirs)}": {hidden}.\n')
    return 0
