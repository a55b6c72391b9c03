"""`acp-proxy prices`: the catalog of prices."""

from __future__ import annotations

import argparse
import os
import sys
import time

from acp_proxy.cli import options
from acp_proxy.cli.arguments import add_action, add_common, text, tokens
from acp_proxy.core.usage import Usage

EXAMPLE = "prices show claude-sonnet-5"


def add_options(command: argparse.ArgumentParser) -> None:
    add_common(command)
    actions = command.add_subparsers(metavar="ACTION", title="actions", dest="action", required=True)
    listed = add_action(actions, "list", "every model of the catalog", "prices list opus")
    listed.add_argument("search", metavar="TEXT", nargs="?", default="", help="only names that contain it")
    shown = add_action(actions, "show", "what a model id resolves to, and its prices", "prices show claude-sonnet-5")
    priced = add_action(actions, "cost", "what tokens cost", "prices cost claude-sonnet-5 --input 1200 --output 800")
    for action in (shown, priced):
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


def main(asked: argparse.Namespace) -> int:
    from acp_proxy import prices
    from acp_proxy.config.applied import catalog_of

    config = options.config(asked)
    catalog = catalog_of(config)
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


def _model(given: str) -> str:
    if not given.strip():
        raise argparse.ArgumentTypeError("expected a model's name")
    return text(given)
