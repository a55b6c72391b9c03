"""The policy as a hub holds to it: read again after a second at most, and shown to each as far as it is about them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.scope import fits
from acp_proxy.hub.identity import Identity
from acp_proxy.hub.store.policies import NONE, Policies
from acp_proxy.hub.store.schema import prepare
from acp_proxy.ledger.hub.policy import Document, Kept, Table, Whose
from acp_proxy.ledger.sql_ledger import SqlLedger
from acp_proxy.policy import Policy, differences, understood

MOST_OF_A_TEAM = 20  # budgets that its leads may set: the policy has room for 500
_HOLDS = 1.0  # seconds until another hub's change is seen here
_SEES_ALL = ("administrator", "finance")


class Current(Struct, frozen=True):
    """A version, as values and as it is kept."""

    kept: Kept
    policy: Policy


class CurrentPolicies:
    """Of all organisations of one hub. Called in the ledger's threads, with their ledgers."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._found: dict[str, tuple[float, Current]] = {}
        self._is_prepared = False

    def of(self, ledger: SqlLedger, organisation: str) -> Current:
        """Raises LedgerError."""
        now = self._clock()
        at, current = self._found.get(organisation, (now - _HOLDS, _NOTHING))
        if now < at + _HOLDS:
            return current
        kept = self.store(ledger, organisation).current()
        if kept != current.kept:
            current = Current(kept, understood(kept.document))
        self._found[organisation] = (now, current)
        return current

    def store(self, ledger: SqlLedger, organisation: str) -> Policies:
        tables = ledger.tables
        if not self._is_prepared:
            prepare(tables)
            self._is_prepared = True
        return Policies(tables, organisation)

    def forget(self, organisation: str) -> None:
        """It was changed here."""
        self._found.pop(organisation, None)


_NOTHING = Current(NONE, Policy())


def shown_to(who: Identity, kept: Kept) -> Kept:
    """What of it is about somebody: all of it for those who see all, else what may count what they do."""
    whose = Whose(who.organisation, who.user, who.team, who.role, who.teams_led)
    if who.role in _SEES_ALL:
        return replace(kept, whose=whose)
    budgets = [table for table in kept.document.budgets if _concerns(who, table)]
    return Kept(kept.version, Document(budgets, kept.document.prices), whose=whose)


def history_for(who: Identity, kept: Sequence[Kept]) -> list[Kept]:
    """The same of versions, the latest first; those that change nothing of it are left out, but for the first."""
    shown = [replace(shown_to(who, each), at=each.at, who=each.who, whose=None) for each in kept]
    befores = [*shown[1:], *([None] if shown else [])]
    return [
        each for each, before in zip(shown, befores, strict=True) if before is None or each.document != before.document
    ]


def not_theirs(who: Identity, before: Document, after: Document) -> str | None:
    """What of it is not theirs to change, as a line for them; None where all is.

    A lead's are the budgets of one of their teams that are named after it: those that an administrator has set for the
    team have other names, and no lead can give their team more than these.
    """
    if who.role == "administrator":
        return None
    for kind, name, old, new in differences(before, after):
        tables = [table for table in (old, new) if table is not None]
        if kind != "budget" or not all(is_led(who, table) for table in tables):
            teams = " or ".join(f'"{team}/…" of team {team}' for team in who.teams_led) or "of a team"
            return f"{kind} {name!r} is an administrator's to set; a lead sets budgets {teams}"
    for team in who.teams_led:
        if sum(_is_of_team(table, team) for table in after.budgets) > MOST_OF_A_TEAM:
            return f"a lead sets at most {MOST_OF_A_TEAM} budgets of team {team}"
    return None


def is_led(who: Identity, table: Table) -> bool:
    """Whether a budget is one of those that this lead may set."""
    return who.role == "lead" and any(_is_of_team(table, team) for team in who.teams_led)


def _is_of_team(table: Table, team: str) -> bool:
    """A `*` in a scope stands for any text, and so for the names of other teams."""
    scope = table.get("scope")
    teams = scope.get("team") if isinstance(scope, dict) else None
    return "*" not in team and teams in (team, [team]) and str(table.get("name")).startswith(f"{team}/")


def tag_for(who: Identity, kept: Kept) -> str:
    """The ETag of what is shown to somebody: another one for who has changed teams meanwhile."""
    role = "all" if who.role in _SEES_ALL else ""
    return _tag(kept.version, "\0".join((role, who.user, who.team or "", *who.teams_led)))


@lru_cache(maxsize=1024)  # asked with each prompt
def _tag(version: int, whose: str) -> str:
    return f'"{version}-{hashlib.sha256(whose.encode()).hexdigest()[:12]}"'


def version_of(tag: str) -> int | None:
    """None for what is no tag of ours."""
    number = tag.strip().removeprefix("W/").strip('"').partition("-")[0]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else None


def _concerns(who: Identity, table: Table) -> bool:
    scope = table.get("scope")
    if not isinstance(scope, dict):
        return True
    return _has(scope, "user", (who.user,)) and _has(scope, "team", (who.team, *who.teams_led))


def _has(scope: Table, key: str, values: tuple[str | None, ...]) -> bool:
    patterns = scope.get(key, [])
    patterns = [patterns] if isinstance(patterns, str) else patterns
    return not patterns or any(fits(pattern, value) for pattern in patterns for value in values if value is not None)
