"""`acp-proxy hub token`, `hub keys` and `hub audit`: at the hub's own database, with no hub in between."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from acp_proxy.cli import arguments, options
from acp_proxy.hub.identity import SCOPES, Role
from acp_proxy.system.errors import UsageError
from acp_proxy.text import times


def add_actions(actions: argparse._SubParsersAction[Any]) -> None:
    """Below the command `hub`."""
    people = "tokens for people without an account at the provider, and for programs"
    tokens = _group(actions, "token", people, "token list")
    made = arguments.add_action(
        tokens, "create", "make one: it is shown once", "hub token create ci --user ci-web --role service --for 90d"
    )
    made.add_argument("name", metavar="NAME", type=arguments.text, help="what it is called in lists")
    made.add_argument("--user", metavar="USER", type=arguments.text, required=True, help="who spends by it")
    roles = get_args(Role)
    made.add_argument("--role", metavar="ROLE", choices=roles, default="developer", help=", ".join(roles))
    made.add_argument("--team", metavar="TEAM", type=arguments.text, help="whose team's budgets count; by default none")
    led = "a team that its user leads; may be repeated"
    made.add_argument("--leads", metavar="TEAM", type=arguments.text, action="append", default=[], help=led)
    scopes = f"what it is good for: {', '.join(SCOPES)}; may be repeated; by default all that the role may do"
    made.add_argument("--scope", metavar="SCOPE", choices=SCOPES, action="append", default=[], help=scopes)
    made.add_argument("--for", metavar="DURATION", dest="duration", help="how long it holds: 12h, 90d; by default ever")
    listed = arguments.add_action(tokens, "list", "all that were made", "hub token list")
    revoked = arguments.add_action(tokens, "revoke", "end one, and what it signed in", "hub token revoke 5f2b61")
    revoked.add_argument("id", metavar="ID", type=arguments.text, help="as in the list")
    keys = _group(actions, "keys", "keys that access tokens are signed with", "keys rotate")
    rotated = arguments.add_action(keys, "rotate", "sign with a new one from now on", "hub keys rotate")
    forget = "end all earlier keys at once: every machine renews its token"
    rotated.add_argument("--forget", action="store_true", help=forget)
    audit = _group(actions, "audit", "the log of changes", "audit verify")
    exported = arguments.add_action(audit, "export", "all of it as lines of JSON", "hub audit export")
    verified = arguments.add_action(audit, "verify", "whether it was changed: status 1 if so", "hub audit verify")
    noted = "a digest that was noted earlier: it must be in the chain"
    verified.add_argument("--digest", metavar="HEX", type=arguments.text, help=noted)
    retained = arguments.add_action(
        actions, "retention", "remove now what is older than [retention] of hub.toml says", "hub retention"
    )
    for each in (made, listed):
        each.add_argument("--json", action="store_true", help="for programs")
    for each in (made, listed, revoked, rotated, exported, verified, retained):
        each.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help="hub.toml")


def main(asked: argparse.Namespace) -> int:
    with options.installed("hub", "hub"):
        from acp_proxy.hub import administration as does
    config = vars(asked).get("config")
    path = None if config is None else Path(config).expanduser()
    with does.opened(path, os.environ) as store:
        match asked.action, vars(asked).get("what"):
            case "retention", _:
                return _said([does.retain(store, does.retention_of(path, os.environ))])
            case "token", "create":
                return _said([does.make_token(store, _token(asked), as_json=asked.json)])
            case "token", "list":
                return _said([does.list_tokens(store, as_json=asked.json)])
            case "token", _:
                return _said([does.revoke_token(store, asked.id)])
            case "keys", _:
                return _said([does.rotate_keys(store, forget=asked.forget)])
            case _, "export":
                sys.stdout.buffer.writelines(does.exported(store))
                return 0
        status, text = does.verified(store, asked.digest)
        return _said([text]) or status


def _token(asked: argparse.Namespace) -> Any:
    """Raises UsageError."""
    from acp_proxy.hub.store.tokens import Asked

    try:
        seconds = None if asked.duration is None else times.duration(asked.duration) // 10**9
    except ValueError as error:
        raise UsageError(f"--for: {error}") from error
    until = None if seconds is None else int(time.time()) + seconds
    teams = (asked.team, tuple(asked.leads))
    return Asked(asked.name, asked.user, asked.role, *teams, tuple(asked.scope), until)


def _group(actions: argparse._SubParsersAction[Any], name: str, says: str, example: str) -> Any:
    group = arguments.add_action(actions, name, says, f"hub {example}")
    return group.add_subparsers(metavar="ACTION", title="actions", dest="what", required=True)


def _said(text: Iterable[str]) -> int:
    sys.stdout.writelines(text)
    return 0
