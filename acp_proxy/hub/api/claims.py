"""What a proxy says of itself, made what its token says: user, team and organisation of all that it writes and asks."""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import astuple, replace

from acp_proxy.core.budget import Account, account_key
from acp_proxy.core.budget.lease import PREFIX
from acp_proxy.core.entry import Origin
from acp_proxy.core.notice import Notice
from acp_proxy.core.windows import DAY
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.hub.identity import Identity
from acp_proxy.ledger import Query, Row, RowRefusedError
from acp_proxy.ledger.budgets import Grant
from acp_proxy.ledger.columns import seen

AHEAD = DAY  # that a row may begin or end after now, by the hub's clock
_LONGEST_ID = 64
_SEES_ALL = ("administrator", "finance")


class Claims(Protocol):
    """How what is claimed becomes what counts. Reading raises RefusedError for what is not the asker's to see."""

    def organisation(self, claimed: str) -> str: ...

    def origin(self, claimed: Origin) -> Origin: ...

    def row(self, claimed: Row, now: int) -> Row:
        """Raises RowRefusedError for what no sound proxy sends, whatever its agent told it."""

    def moved(self, claimed: Row, now: int) -> Row:
        """The same of a ledger that is moved: of its own user and team."""

    def is_own(self, user: str) -> bool:
        """Whether the asker may go on with a turn of this user's."""

    def now(self, claimed: int, clock: int) -> int:
        """The time to judge by: a proxy's clock may be wrong."""

    def account(self, claimed: Account) -> Account: ...

    def user(self, asked: str | None) -> str | None:
        """Whose: None is everybody's."""

    def own(self, asked: str | None) -> str | None:
        """As `user`, of who can only mean themselves: a proxy calls its user by a login, not by the token's name."""

    def writer(self, claimed: str) -> str:
        """Whose it is."""

    def team(self, claimed: str | None) -> str | None: ...

    def query(self, asked: Query) -> Query: ...

    def session_of(self, asked: Origin) -> Origin:
        """Where a session is looked for; `sees` says whether it may be shown."""

    def sees(self, origin: Origin) -> bool: ...

    def sees_user(self, user: str) -> bool: ...

    def sees_grant(self, grant: Grant) -> bool: ...

    def giver(self, grant: Grant) -> str:
        """Who gives it. Raises RefusedError for who may not."""

    def notice(self, claimed: Notice) -> Notice: ...


class ByToken:
    """Claims of who has this identity."""

    def __init__(self, who: Identity) -> None:
        self._who = who
        self._sees_all = who.role in _SEES_ALL

    def organisation(self, claimed: str) -> str:  # noqa: ARG002
        return self._who.organisation

    def origin(self, claimed: Origin) -> Origin:
        who = self._who
        return replace(claimed, organisation=who.organisation, user=who.user, team=who.team)

    def row(self, claimed: Row, now: int) -> Row:
        entry = claimed.entry
        if not (entry.id.isascii() and 0 < len(entry.id) <= _LONGEST_ID) or entry.id.startswith(PREFIX):
            raise RowRefusedError(f"expected an id of 1 to {_LONGEST_ID} ASCII characters")
        if max(entry.started_at, entry.ended_at) > now + AHEAD:
            raise RowRefusedError("its time is more than a day ahead of the hub's clock")
        if any(line.cost is not None and line.cost.nano < 0 for line in entry.lines):
            raise RowRefusedError("expected no negative cost")
        if any(count < 0 for line in entry.lines for count in astuple(line.usage) if count is not None):
            raise RowRefusedError("expected no negative count of tokens")
        return replace(claimed, origin=self.origin(claimed.origin))

    def moved(self, claimed: Row, now: int) -> Row:
        origin = replace(claimed.origin, organisation=self._who.organisation)
        return replace(self.row(claimed, now), origin=origin)

    def is_own(self, user: str) -> bool:
        return user == self._who.user

    def now(self, claimed: int, clock: int) -> int:  # noqa: ARG002
        return clock

    def account(self, claimed: Account) -> Account:
        """Of a proxy's own budget: it counts what its user spends, whatever else it is about.

        Else whoever invents a budget would be told what others have spent.
        """
        known = dict(claimed.filter.where)
        if not self._sees_all or "user" in known:
            known["user"] = self._who.user
        if "team" in known and not self._sees_all:
            known["team"] = self._who.team or ""
        known.pop("organisation", None)
        where = (("organisation", self._who.organisation), *known.items())
        value = known.get(claimed.budget.per) if claimed.budget.per in ("user", "team") else claimed.value
        key = account_key(claimed.budget, where, claimed.bounds)
        return replace(claimed, key=key, filter=replace(claimed.filter, where=where), value=value)

    def user(self, asked: str | None) -> str | None:
        if self._sees_all:
            return asked
        if asked not in (None, self._who.user):
            raise RefusedError(403, f"a {self._who.role} sees what is their own: user {self._who.user!r}")
        return self._who.user

    def own(self, asked: str | None) -> str | None:
        return asked if self._sees_all else self._who.user

    def writer(self, claimed: str) -> str:  # noqa: ARG002
        return self._who.user

    def team(self, claimed: str | None) -> str | None:  # noqa: ARG002
        return self._who.team

    def query(self, asked: Query) -> Query:
        """Only rows that may be seen: a lead's are their own and those of their teams."""
        who = self._who
        where = [(name, value) for name, value in asked.where if name != "organisation"]
        if who.role == "lead":
            where.append(seen(who.user, who.teams_led))
        elif not self._sees_all:
            user = self.user(dict(where).get("user"))
            where = [*((name, value) for name, value in where if name != "user"), ("user", user)]
        return replace(asked, where=(("organisation", self._who.organisation), *where))

    def session_of(self, asked: Origin) -> Origin:
        return replace(asked, organisation=self._who.organisation)

    def sees(self, origin: Origin) -> bool:
        who = self._who
        if origin.organisation != who.organisation:
            return False
        return self._sees_all or origin.user == who.user or (who.role == "lead" and origin.team in who.teams_led)

    def sees_user(self, user: str) -> bool:
        return self._sees_all or user == self._who.user

    def sees_grant(self, grant: Grant) -> bool:
        who = self._who
        return self._sees_all or grant.value in (None, who.user, who.team, *who.teams_led)

    def giver(self, grant: Grant) -> str:
        who = self._who
        is_own = grant.layer not in ("admin", "hub") and grant.value == who.user
        of_team = who.role == "lead" and grant.value in who.teams_led
        if not (who.role == "administrator" or is_own or of_team):
            raise RefusedError(403, f"a {who.role} gives no grant of budget {grant.budget!r}")
        return who.user

    def notice(self, claimed: Notice) -> Notice:
        """About the asker, but for what is about a budget that several have."""
        who = self._who
        if claimed.kind == "threshold":
            return replace(claimed, organisation=who.organisation)
        return replace(claimed, organisation=who.organisation, user=who.user, team=who.team)
