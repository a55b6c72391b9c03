"""Who a hub knows: people of the identity provider, holders of tokens, and others who have rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct

from acp_proxy.core.windows import SECOND
from acp_proxy.hub.api.desk import Desk
from acp_proxy.hub.api.spending.calls import Actor
from acp_proxy.hub.store.people import People, Person
from acp_proxy.hub.store.tokens import Tokens
from acp_proxy.ledger import Query


class Member(Struct, frozen=True):
    """With their teams: those they are in or, of somebody who is only known by rows, those that the rows have."""

    actor: Actor
    teams: tuple[str, ...]

    @property
    def user(self) -> str:
        return self.actor.user_id


def members(desk: Desk, since: int) -> dict[str, Member]:
    """By user: of today, and who has rows since a time (Unix ns); not who has left. Raises LedgerError."""
    organisation = desk.who.organisation
    desk.policies.store(desk.ledger, organisation)  # makes the tables
    people = {each.user: each for each in People(desk.ledger.tables, organisation).all()}
    teams = _teams(desk, people.values())
    known = {*teams}
    for sums in desk.ledger.summed(Query(since=since, where=(("organisation", organisation),)), ["user", "team"]):
        user, team = str(sums.key[0]), sums.key[1]
        if user not in known:
            teams.setdefault(user, set()).update([] if team is None else [str(team)])
    return {
        user: Member(_actor(user, people.get(user)), tuple(sorted(teams[user])))
        for user in sorted(teams)
        if user not in people or people[user].active
    }


def users_of(desk: Desk, teams: Collection[str]) -> set[str]:
    """Who is in one of these teams, as the provider and their tokens have it. Raises LedgerError."""
    organisation = desk.who.organisation
    desk.policies.store(desk.ledger, organisation)  # makes the tables
    known = _teams(desk, People(desk.ledger.tables, organisation).all())
    return {user for user, theirs in known.items() if not theirs.isdisjoint(teams)}


def actor_of(desk: Desk, user: str) -> Actor:
    """Also of who has left."""
    return _actor(user, People(desk.ledger.tables, desk.who.organisation).find(user))


def _teams(desk: Desk, people: Iterable[Person]) -> dict[str, set[str]]:
    """Of each user, as the provider and their tokens have them."""
    tokens = Tokens(desk.ledger.tables, desk.who.organisation).all()
    held = [each for each in tokens if each.kind == "token" and each.holds(desk.now // SECOND)]
    found: dict[str, set[str]] = {}
    for user, team in [*((each.user, each.team) for each in people), *((each.user, each.team) for each in held)]:
        found.setdefault(user, set()).update([] if team is None else [team])
    return found


def _actor(user: str, person: Person | None) -> Actor:
    return Actor(user) if person is None else Actor(user, person.name, person.email, deleted=not person.active)
