"""`acp-proxy prices`: the catalog of prices, and those of a hub."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING

from acp_proxy.cli import options
from acp_proxy.cli.arguments import add_action, add_common, text, tokens
from acp_proxy.config import Config
from acp_proxy.core.usage import Usage
from acp_proxy.system.errors import UsageError
from acp_proxy.text.figures import clean

if TYPE_CHECKING:
    from acp_proxy.catalog import Catalog

EXAMPLE = "prices show claude-sonnet-5"
_RATES = {
    "input": "of input, except those read from or written to a cache",
    "output": "of output and thinking",
    "cached_read": "read from a cache",
    "cached_write": "written to a cache for five minutes",
    "cached_write_1h": "written to a cache for an hour",
}


def add_options(command: argparse.ArgumentParser) -> None:
    add_common(command)
    actions = command.add_subparsers(metavar="ACTION", title="actions", dest="action", required=True)
    listed = add_action(actions, "list", "every model of the catalog", "prices list opus")
    listed.add_argument("search", metavar="TEXT", nargs="?", default="", help="only names that contain it")
    shown = add_action(actions, "show", "what a model id resolves to, and its prices", "prices show claude-sonnet-5")
    priced = add_action(actions, "cost", "what tokens cost", "prices cost claude-sonnet-5 --input 1200 --output 800")
    changed = add_action(actions, "set", "set a hub's price of a model", "prices set big-model --input 3 --output 9")
    removed = add_action(actions, "remove", "remove a hub's price of a model", "prices remove big-model")
    for action in (shown, priced, changed, removed):
        action.add_argument("model", metavar="MODEL", type=_model, help="as an agent reports it")
    for name, says in (
        ("input", "input tokens, except those read from or written to a cache"),
        ("output", "output tokens, except thinking"),
        ("thought", "tokens of thinking"),
        ("cached-read", "input tokens read from a cache"),
        ("cached-write", "input tokens written to a cache; [pricing] cache_write says for how long"),
        ("cached-write-1h", "input tokens written to a cache for an hour"),
    ):
        priced.add_argument(f"--{name}", metavar="N", type=tokens, default=0, help=says)
    used = "the largest request's context in tokens; without it all tokens are one request"
    priced.add_argument("--context-used", metavar="N", type=tokens, help=used)
    for action in (listed, shown, priced):
        add_common(action)
        action.add_argument("--at", metavar="TIME", help="prices of that time, by default now: 2026-11-01, 7d …")
        action.add_argument("--json", action="store_true", help="exact figures, for programs")
    for key, of in _RATES.items():
        says = f"US dollars per million tokens {of}"
        changed.add_argument(f"--{key.replace('_', '-')}", metavar="N", type=text, help=says)
    changed.add_argument("--context", metavar="N", type=tokens, help="the model's context window in tokens")
    for action in (changed, removed):
        add_common(action)
        action.add_argument("--dry-run", action="store_true", help="show the change, and make none")
        unless = "only if that is the last version of the hub's history"
        action.add_argument("--if-version", metavar="N", type=tokens, help=unless)


def main(asked: argparse.Namespace) -> int:
    from acp_proxy import prices

    config = options.config(asked)
    if asked.action in ("set", "remove"):
        sys.stdout.write(_edited(asked, config))
        return 0
    catalog = _catalog(config)
    now = time.time_ns()
    asked_for = options.instant(asked, "at", options.zone(None), now)
    at = now if asked_for is None else asked_for
    match asked:
        case argparse.Namespace(action="list", search=search, json=as_json):
            answer = prices.list_prices(catalog, at, search, as_json=as_json, width=options.width(), environ=os.environ)
        case argparse.Namespace(action="show", model=model, json=as_json):
            answer = prices.show(catalog, model, at, as_json=as_json)
        case argparse.Namespace(model=model, context_used=context, json=as_json) as given:
            usage = Usage(given.input, given.cached_read, given.cached_write, given.output, given.thought)
            amount = prices.Tokens(usage, given.cached_write_1h)
            answer = prices.cost(catalog, model, amount, at, context, as_json=as_json)
    sys.stdout.write(answer)
    # JSON says in itself what is not known; who reads a line of text should not take it for a price.
    found = asked.json or asked.action == "list" or catalog.find(asked.model)
    return 0 if found else 1


def _catalog(config: Config) -> Catalog:
    from acp_proxy.policy.prices import catalog_here

    return catalog_here(config, os.environ, lambda told: sys.stderr.write(f"acp-proxy: {clean(told)}\n"))


def _edited(asked: argparse.Namespace, config: Config) -> str:
    from acp_proxy.config.files import expanded, user_file
    from acp_proxy.policy.prices import Asked, edit

    given = vars(asked)
    values = {key: given[key] for key in (*_RATES, "context") if given.get(key) is not None}
    if asked.action == "set" and not values:
        raise UsageError("prices set: expected a price, such as --input 3 --output 9")
    common = options.common(asked)
    own = expanded(common["config"], os.environ) if "config" in common else user_file(os.environ)
    wanted = Asked(asked.action, asked.model, values, asked.dry_run, asked.if_version)
    return edit(wanted, config, own, options.zone(None))


def _model(given: str) -> str:
    if not given.strip():
        raise argparse.ArgumentTypeError("expected a model's name")
    return text(given)
