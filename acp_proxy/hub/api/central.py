"""The hub's own budgets: which of them a turn is charged to is for the hub to say, whatever a proxy knows of them."""

from __future__ import annotations

from collections.abc import Sequence

from acp_proxy.core.budget import Account, Budget, account_of, accounts_for
from acp_proxy.core.budget.hold_size import RECENT, HoldSize, in_unit
from acp_proxy.core.scope import Subject
from acp_proxy.hub.api.desk import SEES_ALL, Desk
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.ledger import OpenTurn
from acp_proxy.ledger.hub.wire import Want
from acp_proxy.text.times import zone_info

LAYER = "hub"


def wants_of(desk: Desk, turn: OpenTurn, claimed: Sequence[Want], now: int) -> list[tuple[Account, HoldSize]]:
    """What a turn is to hold of the policy's budgets; its origin is the token's.

    Who sends it knows best what its turns use, but no turn is let in below what a budget's own size would ask for.
    """
    budgets = desk.policies.of(desk.ledger, desk.who.organisation).policy.budgets
    if not budgets:
        return []
    subject = turn.origin.subject(turn.model, turn.session, turn.process)
    sizes = {want.account.key: want.size for want in claimed if want.account.budget.layer == LAYER}
    return [
        (account, _size(desk, account, turn, sizes.get(account.key)))
        for account in accounts_for(budgets, subject, now, zone_info, turn.id)
    ]


def account_for(desk: Desk, claimed: Account) -> Account:
    """The account that is meant, as the policy has it: a pool's is everybody's, any other is of who asks.

    Raises RefusedError for a budget that the policy does not have, or not any more.
    """
    if claimed.budget.layer != LAYER:
        return desk.claims.account(claimed)
    who, known = desk.who, dict(claimed.filter.where)
    user, team = who.user, who.team
    if who.role in SEES_ALL:
        user, team = known.get("user", user), known.get("team", team)
    elif known.get("team") in who.teams_led:
        team = known["team"]
    project, agent = known.get("project"), known.get("agent", "")
    subject = Subject(who.organisation, user, team, project, known.get("host", ""), agent, None, known.get("session"))
    budget = _named(desk, claimed.budget.name)
    if budget.per is not None and subject.of(budget.per) is None:
        raise RefusedError(403, f"budget {budget.name!r} has none for you")
    return account_of(budget, subject, desk.now, zone_info(budget.zone), known.get("turn", ""))


def _named(desk: Desk, name: str) -> Budget:
    for budget in desk.policies.of(desk.ledger, desk.who.organisation).policy.budgets:
        if budget.name == name:
            return budget
    raise RefusedError(409, f"budget {name!r}: the policy has none of that name any more")


def _size(desk: Desk, account: Account, turn: OpenTurn, claimed: HoldSize | None) -> HoldSize:
    least = HoldSize.of(account.budget).floor
    if claimed is not None:
        return HoldSize(max(claimed.wanted, least), max(claimed.floor, least))
    origin, ledger = turn.origin, desk.ledger

    def recent(unit: str) -> list[int]:
        return ledger.recent_costs(origin.organisation, origin.agent, unit, n=RECENT)

    return HoldSize.of(account.budget, (), in_unit(account.budget, recent))
