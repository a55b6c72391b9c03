"""`acp-proxy budget add|set|remove|undo|history` at a hub: of its budgets, which hold for everybody."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from acp_proxy.ledger import LedgerForbiddenError
from acp_proxy.ledger.hub.policy import Changes, Table
from acp_proxy.policy.editing import Change, Read, changed, changes_of, in_words, opened, taken_back
from acp_proxy.report.formats import as_json_text
from acp_proxy.system.errors import UsageError
from acp_proxy.text import table
from acp_proxy.text.figures import clean
from acp_proxy.text.table import Column
from acp_proxy.text.times import SECOND, Zone, rfc3339

if TYPE_CHECKING:
    from acp_proxy.budget.command import Place
    from acp_proxy.budget.editing import Asked

_ALL = 100  # percent


class Hub(Struct, frozen=True):
    """Where a budget is changed: at `url`, if it is version `version` yet. `own` is the file that has one's own."""

    url: str
    own: Path
    version: int | None = None


def edit(asked: Asked, at: Hub, zone: Zone) -> str:
    """Raises UsageError and LedgerError, and then nothing was done."""
    with opened(at.url) as hub:
        history = hub.policy_history() if asked.action == "undo" else []

        def change(read: Read) -> Changes:
            if asked.action == "undo":
                return taken_back(read, history, zone)
            return Changes({asked.name or "": _wanted(asked, read.document.budgets, at)})

        try:
            done = changed(hub, change, zone, version=at.version, dry=asked.dry_run)
        except LedgerForbiddenError as error:
            raise UsageError(f"{error}; with --own it is a budget of {at.own}") from error
    if asked.dry_run:
        return done or "Nothing would change.\n"
    return f"{done}It holds for everybody from now on.\n" if done else "It is so already.\n"


def history(url: str, name: str | None, place: Place, *, as_json: bool) -> str:
    """What was changed of budgets and prices, the latest first. Raises LedgerError."""
    with opened(url) as hub:
        found = [each for each in changes_of(hub.policy_history()) if name in (None, each.name)]
    if as_json:
        return as_json_text({"history": [_object(each) for each in found]})
    if not found:
        return "Nothing was changed yet.\n" if name is None else f"Nothing called {clean(name)} was changed yet.\n"
    columns = _columns(found, place.zone)
    if place.width is None:
        return table.plain(columns)
    return table.coloured(columns, (), None, place.width, place.environ)


def _columns(found: Sequence[Change], zone: Zone) -> list[Column]:
    at = partial(_moment, zone=zone)
    return [
        Column("version", [str(each.version) for each in found], spare=3),
        Column("when", [at(each.at) for each in found], right=False),
        Column("who", [clean(each.who or "-") for each in found], right=False, name=True),
        Column("did", [f"{each.did} {each.kind}" for each in found], right=False),
        Column("name", [clean(each.name) for each in found], right=False, name=True),
        Column("what changed", [clean(in_words(each.before, each.after)) for each in found], right=False, name=True),
    ]


def _object(change: Change) -> dict[str, object]:
    return {
        "version": change.version,
        "at": None if change.at is None else rfc3339(change.at * SECOND),
        "who": change.who,
        "kind": change.kind,
        "name": change.name,
        "before": change.before,
        "after": change.after,
    }


def _moment(at: int | None, zone: Zone) -> str:
    return "-" if at is None else f"{zone.local(at * SECOND):%Y-%m-%d %H:%M}"


def _wanted(asked: Asked, there: Sequence[Table], at: Hub) -> Table | None:
    """The keys of the budget that are to change; None removes it. Raises UsageError."""
    name = asked.name or ""
    known = next((each for each in there if each.get("name") == name), None)
    if asked.action == "add" and known is not None:
        raise UsageError(f'budget "{clean(name)}" is there already; `acp-proxy budget set` changes it')
    if asked.action != "add" and known is None:
        raise UsageError(_none(name, [str(each.get("name")) for each in there], at))
    if asked.action == "remove":
        return None
    values = {key: value for key, value in asked.values.items() if value is not None}
    if "plan" in values.get("limit", {}):
        values["limit"] = _of_plan((known or {}).get("limit"), values["limit"])
    return values


def _of_plan(before: Any, limit: dict[str, Any]) -> dict[str, Any]:
    """A limit of a plan with what was not given as it was."""
    kept = before if isinstance(before, dict) else {}
    window = limit["plan"] or kept.get("plan")
    percent = limit["percent"] or kept.get("percent", _ALL)
    return {"percent": percent} if window is None else {"plan": window, "percent": percent}


def _none(name: str, there: Sequence[str], at: Hub) -> str:
    close = get_close_matches(name, there, 1)
    hint = f"did you mean {clean(close[0])}?" if close else f"it has {', '.join(map(clean, there)) or 'none'}"
    return f'the hub has no budget "{clean(name)}" for you: {hint}; one of {at.own} is changed with --own'
