"""`acp-proxy budget`: what is left of budgets, grants, and changes of the configuration."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import get_args

from acp_proxy.cli import options
from acp_proxy.cli.arguments import add_action, add_common, add_since, text, tokens
from acp_proxy.config import load
from acp_proxy.config.checks import WINDOWS
from acp_proxy.core.budget import Mode, OnExceed, Per
from acp_proxy.core.budget.plan_limits import OnOverage
from acp_proxy.system.errors import UsageError

Parser = argparse.ArgumentParser

EXAMPLE = "budget list"


def add_options(command: argparse.ArgumentParser) -> None:
    add_common(command)
    actions = command.add_subparsers(metavar="ACTION", title="actions", dest="action", required=True)
    listed = add_action(actions, "list", "what is used, held and left of each budget; its reset", "budget list --json")
    admitted = "whether a prompt would be admitted now: status 0, or 3 when not"
    checked = add_action(actions, "check", admitted, "budget check --model claude-opus-5-5")
    more = "budget grant daily --amount 5 --for 2h --reason release"
    granted = add_action(actions, "grant", "allow more for a while", more)
    grants = add_action(actions, "grants", "who granted what, and why", "budget grants --json")
    wish = "budget request daily --amount 5 --reason release"
    wished = add_action(actions, "request", "ask a team's hub for more", wish)
    waiting = add_action(actions, "requests", "who asked for more, and what became of it", "budget requests --json")
    approve = "budget approve 3f9c1e7a20 --for 2d"
    approved = add_action(actions, "approve", "give what a request asks for, or less, until an end", approve)
    deny = "budget deny 3f9c1e7a20 --reason 'next week'"
    denied = add_action(actions, "deny", "give nothing for a request, and say why", deny)
    past = "which past turns the budgets of --config would have refused"
    simulated = add_action(actions, "simulate", past, "budget simulate --config proposed.toml --since 30d")
    added = add_action(actions, "add", "add a budget to the configuration", "budget add daily --amount 5 --window day")
    changed = add_action(actions, "set", "change a budget of the configuration", "budget set daily --amount 8")
    removed = add_action(actions, "remove", "remove a budget from the configuration", "budget remove daily")
    undone = add_action(actions, "undo", "take back the last add, set or remove", "budget undo")
    changes = "who changed which budget or price of a hub, when, and how"
    past_changes = add_action(actions, "history", changes, "budget history daily")
    for action in (listed, checked, granted, grants, wished, waiting, approved, denied, simulated):
        add_common(action)
    for action in (added, changed, removed, undone, past_changes):
        add_common(action)
    for action in (added, changed):
        _add_budget_values(action)
    for action in (added, changed, removed):
        action.add_argument("name", metavar="NAME", type=text, help="the name of the budget")
    for action in (added, changed, removed, undone):
        action.add_argument("--dry-run", action="store_true", help="show the change, and write nothing")
        own = "with a hub: your own configuration, not what holds for everybody"
        action.add_argument("--own", action="store_true", help=own)
        unless = "with a hub: only if that is the last version of its history"
        action.add_argument("--if-version", metavar="N", type=tokens, help=unless)
    past_changes.add_argument("name", metavar="NAME", nargs="?", type=text, help="only of this budget or model")
    for action in (listed, grants, waiting, simulated, past_changes):
        action.add_argument("--json", action="store_true", help="exact figures, for programs")
    for name in ("agent", "model", "user", "team", "project"):
        default = "yours" if name in ("user", "team", "project") else "not known"
        says = f"the prompt's {name}; by default {default}"
        checked.add_argument(f"--{name}", metavar="NAME", type=text, help=says)
    _add_grant_values(granted, wished, approved, denied)
    waiting.add_argument("--own", action="store_true", help="your own only")
    add_since(simulated)


def main(asked: argparse.Namespace) -> int:
    from acp_proxy.budget import command
    from acp_proxy.budget.current_user import here

    if asked.action in ("add", "set", "remove", "undo"):
        sys.stdout.write(_budget_edited(asked))
        return 0
    now, zone, tell = time.time_ns(), options.zone(None), options.tell(asked)
    place = command.Place(now, zone, here(), os.environ, options.width(), tell)
    if asked.action == "simulate":
        asked.since = options.instant(asked, "since", place.zone, place.now)
        config = command.proposed(options.common(asked), os.environ)
    else:
        config = options.config(asked)
    status, answer = command.main(asked, config, place)
    sys.stdout.write(answer)
    return status


def _add_grant_values(granted: Parser, wished: Parser, approved: Parser, denied: Parser) -> None:
    """What is granted, asked for, or decided on."""
    for action in (granted, wished):
        action.add_argument("name", metavar="NAME", help="the name of the budget")
        says = "in the budget's currency, or tokens or turns"
        action.add_argument("--amount", metavar="N", required=True, help=says)
        action.add_argument("--reason", metavar="TEXT", required=True, help="why; it is kept")
        which = "whose, if two budgets have this name: a file's or the hub's"
        action.add_argument("--layer", choices=("admin", "user", "hub"), help=which)
    for name in get_args(Per):
        says = f"if the budget is per {name}: which one, by default yours; * for all"
        granted.add_argument(f"--for-{name}", metavar="NAME", type=text, help=says)
    for name in ("project", "agent"):
        says = f"if the budget is per {name}: which one"
        wished.add_argument(f"--for-{name}", metavar="NAME", type=text, help=says)
    for action in (approved, denied):
        action.add_argument("id", metavar="ID", type=text, help="of the request, or how it begins")
        action.add_argument("--reason", metavar="TEXT", required=action is denied, help="for who has asked; it is kept")
    approved.add_argument("--amount", metavar="N", help="by default what was asked for")
    for action in (granted, approved):
        says = "how long: 90m, 2h, 7d"
        action.add_argument("--for", metavar="DURATION", required=True, dest="duration", help=says)


def _add_budget_values(action: argparse.ArgumentParser) -> None:
    """The keys of a `[[budget]]` that people type; all others are written into the file."""
    limit = action.add_mutually_exclusive_group()
    limit.add_argument("--amount", metavar="N", help="the limit as an amount of money")
    limit.add_argument("--tokens", metavar="N", type=tokens, help="the limit in tokens")
    limit.add_argument("--turns", metavar="N", type=tokens, help="the limit in turns")
    window = "the limit as a percent of a plan's window: five_hour, seven_day …"
    limit.add_argument("--plan", metavar="WINDOW", type=text, help=window)
    action.add_argument("--percent", metavar="N", type=tokens, help="of the plan's window; by default 100")
    overage = "of a plan: whether prompts go that are paid beside it"
    action.add_argument("--on-overage", choices=get_args(OnOverage), help=overage)
    action.add_argument("--currency", metavar="CODE", type=text, help="of the amount; by default USD")
    action.add_argument("--window", metavar="WINDOW", type=text, help=f"{', '.join(WINDOWS)}, or a length such as 5h")
    action.add_argument("--per", metavar="KEY", choices=get_args(Per), help="one for each user, team, project or agent")
    scope = "only what matches: team=core, model=*opus*; may be repeated"
    action.add_argument("--scope", metavar="KEY=VALUE", action="append", type=text, help=scope)
    action.add_argument("--timezone", metavar="ZONE", type=text, help="of its days, weeks and months; by default UTC")
    action.add_argument("--mode", metavar="MODE", choices=get_args(Mode), help="shadow, warn or enforce (default)")
    ends = "what happens to a turn that goes beyond it"
    action.add_argument("--on-exceed", metavar="WHAT", choices=get_args(OnExceed), help=ends)


def _budget_edited(asked: argparse.Namespace) -> str:
    from acp_proxy.budget import editing
    from acp_proxy.config.files import expanded, user_file
    from acp_proxy.ledger.hub_address import is_hub
    from acp_proxy.system.directories import state_directory

    common = options.common(asked)
    path = expanded(common["config"], os.environ) if "config" in common else user_file(os.environ)
    given = vars(asked)
    wanted = editing.Asked(asked.action, given.get("name"), options.budget_values(asked), asked.dry_run)
    if not asked.own and is_hub(url := options.config(asked).ledger.url):
        from acp_proxy.budget import at_hub

        return at_hub.edit(wanted, at_hub.Hub(url, path, asked.if_version), options.zone(None))
    if asked.if_version is not None:
        raise UsageError(f"--if-version: {path} has no versions; only the budgets of a hub do")
    config = load({}, os.environ)
    admins = [budget.name for budget in config.budgets if budget.layer == "admin"]
    admins += [budget.name for budget in config.plan_budgets if budget.layer == "admin"]
    colours = options.width() is not None and not os.environ.get("NO_COLOR")
    return editing.edit(wanted, path, state_directory(os.environ), admins, colours=colours)
