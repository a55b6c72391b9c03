"""A hub's policy changed by who types: what was read is what is changed, or nothing is. And its history.

Writes to no stream. What may be changed by whom is the hub's to say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from acp_proxy.core.windows import SECOND
from acp_proxy.ledger import LedgerChangedError, LedgerForbiddenError, open_ledger
from acp_proxy.ledger.hub.policy import Changes, Document, Kept, Table, Whose
from acp_proxy.policy import differences
from acp_proxy.system.errors import UsageError
from acp_proxy.text.figures import clean
from acp_proxy.text.times import Zone

if TYPE_CHECKING:
    from acp_proxy.ledger.hub.ledger import HubLedger

_NO_ONE = Whose("", "")


class Read(Struct, frozen=True):
    """A version, and how a hub names it to who asks."""

    tag: str
    kept: Kept

    @property
    def document(self) -> Document:
        return self.kept.document

    @property
    def whose(self) -> Whose:
        return self.kept.whose or _NO_ONE


class Change(Struct, frozen=True):
    """Of one budget or price; `at` is Unix s."""

    version: int
    at: int | None
    who: str | None
    kind: str
    name: str
    before: Table | None
    after: Table | None

    @property
    def did(self) -> str:
        return "removed" if self.after is None else "added" if self.before is None else "changed"


@contextmanager
def opened(url: str) -> Iterator[HubLedger]:
    """Raises LedgerError."""
    with closing(open_ledger(url, journals=())) as hub:
        yield cast("HubLedger", hub)


def read(hub: HubLedger) -> Read:
    found = hub.policy(None)
    return Read(*found) if found else Read("", Kept(0, Document()))


def changed(
    hub: HubLedger, change: Callable[[Read], Changes], zone: Zone, *, version: int | None = None, dry: bool = False
) -> str:
    """Makes a change of what it is given, and says what became of it, a line for each budget and price.

    With `version` only of that one; `dry` only says it. Raises UsageError and LedgerError, and then nothing was done.
    """
    before = read(hub)
    if version not in (None, before.kept.version):
        raise UsageError(_changed_meanwhile(hub, zone))
    wanted = change(before)
    if dry:
        return said(before.document, _after(before.document, wanted))
    try:
        after = hub.change_policy(wanted, before.tag)
    except LedgerChangedError:
        raise UsageError(_changed_meanwhile(hub, zone)) from None
    return said(before.document, after.document)


def taken_back(read: Read, history: Sequence[Kept], zone: Zone) -> Changes:
    """What undoes the last change of who asks. Raises UsageError where the last one is another's, or unknown."""
    last, before = (*history, None, None)[:2]
    if last is None or (before is None and last.version != 1):
        raise UsageError("nothing to undo: the hub knows no change of these budgets and prices")
    if last.who != read.whose.user:
        when = _moment(last.at, zone)
        raise UsageError(f"the last change is of {clean(last.who or 'somebody else')}, {when}, nothing was done")
    budgets: dict[str, Table | None] = {}
    prices: dict[str, Table | None] = {}
    for kind, name, old, new in differences(before.document if before else Document(), last.document):
        if kind == "price":
            prices[name] = old
        else:
            budgets[name] = None if old is None else {**dict.fromkeys(new or ()), **old}
    return Changes(budgets, prices)


def changes_of(history: Sequence[Kept]) -> Iterator[Change]:
    """The latest first. Of the oldest version it is known what it changed only where it is the first of all."""
    befores: list[Document | None] = [*(each.document for each in history[1:])]
    befores += [Document() if each.version == 1 else None for each in history[-1:]]
    for each, before in zip(history, befores, strict=True):
        if before is not None:
            for kind, name, old, new in differences(before, each.document):
                yield Change(each.version, each.at, each.who, kind, name, old, new)


def said(before: Document, after: Document) -> str:
    """A line for each budget and price that is another one."""
    return "".join(
        clean(f'{kind} "{name}": {in_words(old, new)}') + "\n" for kind, name, old, new in differences(before, after)
    )


def in_words(before: Table | None, after: Table | None) -> str:
    """`limit 5 USD → 8 USD`; of what is new all of it."""
    if after is None:
        return "removed"
    old, new = _parts(before or {}), _parts(after)
    if before is None:
        return ", ".join(f"{key} {value}" for key, value in new.items())
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    return ", ".join(f"{key} {old.get(key, 'none')} → {new.get(key, 'none')}" for key in keys)


def _parts(table: Mapping[str, Any]) -> dict[str, str]:
    return {key: _text(key, value) for key, value in table.items() if key != "name"}


def _text(key: str, value: Any) -> str:
    match key, value:
        case "limit", {"amount": amount, "currency": currency}:
            return f"{amount} {currency}"
        case "limit", {"plan": window, "percent": percent}:
            return f"{percent} % of {window}"
        case ("limit", {"tokens": count}) | ("limit", {"turns": count}):
            return f"{count:,} {next(iter(value))}" if isinstance(count, int) else str(value)
        case _, dict():
            return " and ".join(f"{name} {_text('', each)}" for name, each in value.items())
        case _, list():
            return " or ".join(map(str, value))
        case _, str():
            return value
    return json.dumps(value)


def _after(document: Document, changes: Changes) -> Document:
    from acp_proxy.config.files import ConfigError
    from acp_proxy.policy import changed as applied
    from acp_proxy.policy import policy_of

    try:
        after = applied(document, changes)
        named = [table for table in after.budgets if table.get("name") in changes.budgets]
        policy_of(Document(named, {name: after.prices[name] for name in changes.prices if name in after.prices}))
    except ConfigError as error:
        raise UsageError(f"{error}, nothing was done") from error
    return after


def _changed_meanwhile(hub: HubLedger, zone: Zone) -> str:
    by = ""
    try:
        if last := next(iter(hub.policy_history()), None):
            by = f" by {clean(last.who or 'somebody')}, {_moment(last.at, zone)}"
    except LedgerForbiddenError:
        pass  # who may not see who it was
    said = f"the hub's budgets and prices were changed meanwhile{by}, nothing was done"
    return f"{said}; acp-proxy budget history says how"


def _moment(at: int | None, zone: Zone) -> str:
    return "-" if at is None else f"{zone.local(at * SECOND):%Y-%m-%d %H:%M}"
