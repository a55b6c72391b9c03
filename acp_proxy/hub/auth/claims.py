"""What a provider's claims make of somebody: a user with team and role, or one line that says why nobody."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from acp_proxy.hub.identity import Role
from acp_proxy.hub.settings import Provider
from acp_proxy.hub.store.people import Person

_LONGEST = 256  # characters of a name


class RefusedError(Exception):
    """This account may not sign in; the text is for who wanted to."""


def user_of(claims: Mapping[str, Any], provider: Provider) -> str | None:
    """The name in the ledger; that of an e-mail address in lower case."""
    user = _text(claims.get(provider.user))
    return user.lower() if user is not None and user == _text(claims.get("email")) else user


def person(claims: Mapping[str, Any], provider: Provider, more: Collection[str] = ()) -> Person:
    """`more` are groups that its directory has told of. Raises RefusedError."""
    user = user_of(claims, provider)
    if user is None or _text(claims.get("sub")) is None:
        raise RefusedError(f"{provider.name} names nobody: its answer has no {provider.user}")
    email = _text(claims.get("email"))
    _check_email(claims, email, provider)
    groups = (*groups_of(claims, provider.groups), *more)
    if provider.allowed_groups and not set(groups) & set(provider.allowed_groups):
        raise RefusedError("your account is in none of the groups that may sign in")
    team, role, leads = rights(groups, provider)
    name = _text(claims.get("name"))
    subject = f"{provider.issuer} {claims['sub']}"
    return Person(user, role, team, leads, subject, name, email)


def groups_of(claims: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """By the name of a claim, or by a JSON pointer (RFC 6901); none where it leads nowhere."""
    found: Any = claims
    names = [where] if not where.startswith("/") else where[1:].split("/")
    for name in names:
        key = name.replace("~1", "/").replace("~0", "~") if where.startswith("/") else name
        match found:
            case Mapping():
                found = found.get(key)
            case list() if key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            case _:
                return ()
    if isinstance(found, str):
        return (found,)
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def rights(groups: Collection[str], provider: Provider) -> tuple[str | None, Role, tuple[str, ...]]:
    """Team, role and teams led. Where several groups fit, the first of the settings counts."""
    mine = set(groups)
    leads = tuple(dict.fromkeys(team for group, team in provider.leads.items() if group in mine))
    team = next((team for group, team in provider.teams.items() if group in mine), leads[0] if leads else None)
    role: Role = "lead" if leads else "developer"
    if mine & set(provider.finance):
        role = "finance"
    if mine & set(provider.administrators):
        role = "administrator"
    return team, role, leads


def _check_email(claims: Mapping[str, Any], email: str | None, provider: Provider) -> None:
    if claims.get("email_verified") in (False, "false"):
        raise RefusedError(f"{provider.name} has not verified your e-mail address")
    domain = (email or "").rpartition("@")[2].lower()
    if provider.domains and domain not in {each.lower() for each in provider.domains}:
        raise RefusedError(f"e-mail addresses of {domain or 'no domain'} may not sign in here")


def _text(value: object) -> str | None:
    if not isinstance(value, str) or not value.isprintable():
        return None
    return value.strip()[:_LONGEST] or None
