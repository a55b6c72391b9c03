"""Budgets of the policy as the page shows them: in full where they count nobody else.

Of a budget that several share the limit and what is left are told, which a refusal names and the proxy needs, and what
who looks has spent of it; what each of the others has spent is told nobody who does not see all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from msgspec.structs import replace

from acp_proxy.budget import on_plans
from acp_proxy.budget.accounts import accounts_of
from acp_proxy.budget.listing import described
from acp_proxy.core.budget import Account, Standing, account_key
from acp_proxy.core.money import exact_text
from acp_proxy.core.scope import Subject
from acp_proxy.hub.api.desk import SEES_ALL
from acp_proxy.hub.identity import Identity
from acp_proxy.hub.page.seen import SeenLedger
from acp_proxy.hub.policy import CurrentPolicies, shown_to
from acp_proxy.ledger.sql_ledger import SqlLedger
from acp_proxy.policy import understood


def budgets_for(
    who: Identity, own: Subject, ledger: SqlLedger, seen: SeenLedger, policies: CurrentPolicies, now: int
) -> bytes:
    """As the view of `serve` tells them. Raises LedgerError."""
    kept = policies.of(ledger, who.organisation).kept
    policy = understood(shown_to(who, kept).document)
    accounts = [each for each in accounts_of(seen, policy.budgets, own, now) if not _is_of_another(who, each)]
    shared = [account for account in accounts if not _is_seen(who, account)]
    standings = ledger.standing([*accounts, *(_own(who, account) for account in shared)], now)
    theirs = dict(zip([account.key for account in shared], standings[len(accounts) :], strict=True))
    told = [
        _of_several(standing, theirs[standing.account.key]) if standing.account.key in theirs else described(standing)
        for standing in standings[: len(accounts)]
    ]
    of_plans = [on_plans.described(each) for each in on_plans.standings(seen, policy.plan_budgets, own, now)]
    return orjson.dumps({"budgets": told, "plan_budgets": of_plans})


def _is_of_another(who: Identity, account: Account) -> bool:
    """A lead sees what a member spends in the team, and not what they have left elsewhere."""
    return who.role not in SEES_ALL and dict(account.filter.where).get("user", who.user) != who.user


def _is_seen(who: Identity, account: Account) -> bool:
    """Whether all that it counts is what this person may see."""
    if who.role in SEES_ALL:
        return True
    where, scope = dict(account.filter.where), account.filter.scope
    if who.user in (where.get("user"), account.budget.owner) or scope.user == (who.user,):
        return True
    teams = (where["team"],) if "team" in where else scope.team
    return who.role == "lead" and bool(teams) and {*teams} <= {*who.teams_led}


def _own(who: Identity, account: Account) -> Account:
    """What they have spent themselves of what it counts."""
    where = (*(each for each in account.filter.where if each[0] != "user"), ("user", who.user))
    key = account_key(account.budget, where, account.bounds)
    return replace(account, key=key, filter=replace(account.filter, where=where))


def _of_several(standing: Standing, own: Standing) -> Mapping[str, Any]:
    unit = standing.account.unit
    told = {name: value for name, value in described(own).items() if name != "held"}  # by others, at this moment
    granted = {"granted": exact_text(standing.granted, unit)}
    return told | granted | {"left": exact_text(standing.left, unit), "shared": True}
